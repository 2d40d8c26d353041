/** The proxy from the environment, and its failures, which errors distinguish from those of the target. */

import type { buildConnector, Dispatcher, Pool } from 'undici'
import { loopbackHost, parsedUrl } from '../shared/addresses.js'
import { isOk } from '../shared/statuses.js'
import { configurationError } from '../shared/validation.js'

/** The variables that undici reads, in its order for `https:` targets. */
export const proxyVariables = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'] as const

/** How long a proxy may take to answer, in milliseconds: the same as undici's limit for a connection. */
const answerTimeoutMs = 10_000

/** A proxy for `https:` targets. */
export interface HttpProxy {
  /** Without credentials. */
  readonly url: string
  /** Host and port, and the variable that names them; never the credentials. */
  readonly name: string
  /** The header with the credentials, if the address has some. */
  readonly authorization: string | undefined
  /** Whether a server is reached without the proxy: `NO_PROXY` names it, or it is on this machine, where no proxy reaches it. */
  isBypassedFor(origin: string): boolean
}

/** The proxy from the environment, if any. @throws `ConfigurationError` for a variable whose value is no usable proxy */
export function configuredProxy(): HttpProxy | undefined {
  const variable = proxyVariables.find((name) => process.env[name])
  const text = variable && process.env[variable]
  if (!text) return undefined
  const url = parsedUrl(text)
  const authorization = url && authorizationIn(url)
  if (url === undefined || authorization === undefined) {
    // The address is not shown, because it may hold a password.
    const message =
      'must be the URL of an HTTP proxy, such as `http://proxy.example.com:3128`, in which user name and password have ' +
      '`%25` for a `%`, `%5C` for a `\\` and `%2F` for a `/`'
    const issues = [{ path: [variable], message }]
    throw configurationError('The proxy that the environment names cannot be used')(issues)
  }
  // An empty variable counts as not set.
  const names = (process.env.no_proxy || process.env.NO_PROXY || '').split(/[\s,;"']/)
  return {
    url: url.origin,
    name: `${url.host}, which ${variable} names`,
    authorization: authorization || undefined,
    isBypassedFor(origin) {
      const target = new URL(origin)
      return loopbackHost.test(target.hostname) || names.some((name) => isNamedBy(name, target))
    },
  }
}

/** Empty if there are no credentials; `undefined` if the address is none of a proxy. Some have a path, which means nothing. */
function authorizationIn({ hash, password, pathname, protocol, search, username }: URL): string | undefined {
  // An `@` behind the host: a character in the credentials is not encoded, and the host is a part of them.
  if (!/^https?:$/.test(protocol) || (pathname + search + hash).includes('@')) return undefined
  try {
    const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`
    return credentials === ':' ? '' : `Basic ${Buffer.from(credentials).toString('base64')}`
  } catch {
    return undefined
  }
}

/** Whether `NO_PROXY` has the host, or a domain above it, in one of the ways in which other programs accept it. */
function isNamedBy(text: string, { hostname, port }: URL): boolean {
  const bare = text.replace(/^\w+:\/\//, '').replace(/^\*?\.+|^\*(?=.)/, '')
  const isIpv6 = /^[^[]*:.*:/.test(bare)
  // As of a scheme whose own port no service has: URL would leave it out.
  const entry = parsedUrl(`ftp://${isIpv6 ? `[${bare}]` : bare}`)
  if (entry === undefined) return false
  const host = hostname.replace(/\.$/, '')
  const named = entry.hostname.replace(/\.$/, '')
  const isBelow = host === named || host.endsWith(`.${named}`)
  return named === '*' || (isBelow && ['', port || '443'].includes(entry.port))
}

/** No connection to the proxy, or no tunnel through it: nothing was sent to the target. */
export class ProxyFailure extends Error {
  /**
   * @param refusal - the status that the proxy answered instead of making a tunnel. Not `status`: that would be the target's
   * @param schemes - the ways to authenticate that the proxy offers
   */
  constructor(
    readonly proxy: HttpProxy,
    override readonly cause: unknown,
    readonly refusal?: number,
    readonly schemes: readonly string[] = [],
  ) {
    super()
  }
}

/** The connections of undici's proxy agent to the proxy itself: their errors become a {@link ProxyFailure}. */
export function proxyPool(
  UndiciPool: typeof Pool,
  address: URL,
  { connect, proxy }: { connect: buildConnector.connector; proxy: HttpProxy },
): Dispatcher {
  const pool = new UndiciPool(address, { connect, headersTimeout: answerTimeoutMs })
  const makeTunnel: (target: Dispatcher.ConnectOptions) => Promise<Dispatcher.ConnectData> =
    pool.connect.bind(pool)
  return Object.assign(pool, {
    async connect(target: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData> {
      const answer = await makeTunnel(target).catch((cause: unknown) => {
        throw new ProxyFailure(proxy, cause)
      })
      const { headers, socket, statusCode } = answer
      if (isOk(statusCode)) return answer
      socket.on('error', () => {}).destroy()
      const offered = schemesIn([headers['proxy-authenticate']].flat().join())
      throw new ProxyFailure(proxy, new Error(`it answered ${statusCode}`), statusCode, offered)
    },
  })
}

/** By name, because a header may hold anything. */
function schemesIn(header: string): string[] {
  const found = header.match(/\b(?:Basic|Digest|Negotiate|Kerberos|NTLM|Bearer)\b/gi) ?? []
  return [...new Set(found)]
}
