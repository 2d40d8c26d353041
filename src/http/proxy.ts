/** The proxy from the environment, and its failures, which errors tell from those of the target. */
import type { buildConnector, Dispatcher, Pool } from 'undici'
import { ConfigurationError } from '../errors.js'

/** The variables that undici reads, in its order for `https:` targets. */
const variables = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'] as const

/** How long a proxy may take to answer, in milliseconds: the same as undici's limit for a connection. */
const answerTimeoutMs = 10_000

/** A proxy for `https:` targets. */
export interface HttpProxy {
  readonly url: string
  /** Host and port, and the variable that names them; never the credentials. */
  readonly name: string
}

/**
 * The proxy that the environment names, if it names one.
 *
 * @throws `ConfigurationError` for a variable that names no proxy that can be used
 */
export function configuredProxy(): HttpProxy | undefined {
  const variable = variables.find((name) => process.env[name])
  const url = variable && process.env[variable]
  if (!url) return undefined
  if (isProxyAddress(url)) return { url, name: `${new URL(url).host}, which ${variable} names` }
  // The address is not shown, because it may hold a password.
  const message =
    'must be the URL of an HTTP proxy, such as `http://proxy.example.com:3128`, with `%25` for a `%` in its password'
  throw new ConfigurationError(`${variable} in the environment ${message}.`, {
    issues: [{ path: [variable], message }],
  })
}

function isProxyAddress(address: string): boolean {
  try {
    const { password, protocol, username } = new URL(address)
    decodeURIComponent(username + password)
    return /^https?:$/.test(protocol)
  } catch {
    return false
  }
}

/** No connection to the proxy, or no tunnel through it: nothing was sent to the target. */
export class ProxyFailure extends Error {
  /** As in {@link HttpProxy}. */
  readonly proxy: string
  /** What the proxy answered instead of making a tunnel. */
  readonly status: number | undefined

  constructor(proxy: string, details: { status: number } | { cause: unknown }) {
    super('the proxy failed')
    this.proxy = proxy
    this.status = 'status' in details ? details.status : undefined
    this.cause = 'status' in details ? new Error(`it answered ${details.status}`) : details.cause
  }

  /** Whether the proxy would refuse another attempt, too. */
  get isPermanent(): boolean {
    return this.status === 403 || this.status === 407
  }

  /**
   * What went wrong and what to do, as the rest of a sentence.
   *
   * @param code - the code of the network's error, if the network failed
   */
  explain(host: string, code: string | undefined): string {
    switch (this.status ?? code) {
      case 407:
        return 'it asks for credentials. Put them into its address, as in `http://user:password@proxy:3128`.'
      case 403:
        return `it does not let this machine reach ${host}. Ask its administrator, or list the host in NO_PROXY.`
      case 'ECONNREFUSED':
        return 'the connection was refused. Is the address of the proxy right, and is it running?'
      case 'ENOTFOUND':
        return 'its host name does not exist. Check the variable for a typing error.'
      case 'UND_ERR_CONNECT_TIMEOUT':
        return 'no connection to it could be made in time. Is the address of the proxy right, and is it running?'
      default:
        return `it made no tunnel to ${host}. Is it a proxy, and does it work?`
    }
  }
}

/**
 * The connections of undici's proxy agent to the proxy itself: their errors become a {@link ProxyFailure}.
 *
 * @param options.name - as in {@link HttpProxy}
 * @param options.connect - makes the connections
 */
export function proxyPool(
  UndiciPool: typeof Pool,
  address: URL,
  { connect, name }: { connect: buildConnector.connector; name: string },
): Dispatcher {
  const pool = new UndiciPool(address, { connect, headersTimeout: answerTimeoutMs })
  const makeTunnel: (target: Dispatcher.ConnectOptions) => Promise<Dispatcher.ConnectData> =
    pool.connect.bind(pool)
  return Object.assign(pool, {
    async connect(target: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData> {
      const answer = await makeTunnel(target).catch((cause: unknown) => {
        throw new ProxyFailure(name, { cause })
      })
      const { socket, statusCode } = answer
      if (statusCode === 200) return answer
      socket.on('error', () => {}).destroy()
      throw new ProxyFailure(name, { status: statusCode })
    },
  })
}
