/** The proxy from the environment, and its failures, which errors distinguish from those of the target. */

import type { buildConnector, Dispatcher, Pool } from 'undici'
import { isOk } from '../shared/statuses.js'
import { configurationError } from '../shared/validation.js'

/** The variables that undici reads, in its order for `https:` targets. */
const variables = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'] as const

/** How long a proxy may take to answer, in milliseconds: the same as undici's limit for a connection. */
const answerTimeoutMs = 10_000

/** A proxy for `https:` targets. */
export interface HttpProxy {
  readonly url: string
  /** Host and port, and the variable that names them; never the credentials. */
  readonly name: string
  readonly hasCredentials: boolean
  /** The hosts that are reached without it. */
  readonly noProxy: string
}

/** The proxy from the environment, if any. @throws `ConfigurationError` for a variable whose value is no usable proxy */
export function configuredProxy(): HttpProxy | undefined {
  const variable = variables.find((name) => process.env[name])
  const url = variable && process.env[variable]
  if (!url) return undefined
  if (isProxyAddress(url)) {
    const address = new URL(url)
    const { host, username } = address
    // Some set-ups have a path, which has no meaning here.
    Object.assign(address, { pathname: '', search: '', hash: '' })
    // An empty variable counts as not set, unlike for undici.
    const noProxy = process.env.no_proxy || process.env.NO_PROXY || ''
    // As they are written for other programs: with a scheme or a last dot, behind semicolons, `*` among others.
    const hosts = noProxy.split(/[\s,;]+/).map((host) => host.replace(/^\w+:\/\/|\.$/g, ''))
    return {
      url: address.href,
      name: `${host}, which ${variable} names`,
      hasCredentials: username !== '',
      noProxy: hosts.includes('*') ? '*' : hosts.join(),
    }
  }
  // The address is not shown, because it may hold a password.
  const message =
    'must be the URL of an HTTP proxy, such as `http://proxy.example.com:3128`, with `%25` for a `%` in its password'
  throw configurationError('The proxy that the environment names cannot be used')([
    { path: [variable], message },
  ])
}

function isProxyAddress(address: string): boolean {
  try {
    const { password, protocol, username } = new URL(address)
    decodeURIComponent(username + password)
    return protocol === 'http:' || protocol === 'https:'
  } catch {
    return false
  }
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
