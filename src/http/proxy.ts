/** A proxy from the environment: distinguishes failures of the proxy from failures of the target. */
import type { buildConnector, Dispatcher, Pool } from 'undici'
import { ConfigurationError } from '../errors.js'

/** The variables that undici reads, in its order for `https:` targets. */
const variables = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'] as const

/** How long a proxy may take to answer, in milliseconds: the same as undici's limit for a connection. */
const answerTimeoutMs = 10_000

/**
 * The address of the proxy for `https:` targets, if there is one.
 *
 * @throws `ConfigurationError` for a variable that names no proxy that can be used
 */
export function configuredProxy(): string | undefined {
  for (const name of variables) {
    const address = process.env[name]
    const message = address && proxyAddressProblem(address)
    if (message) {
      throw new ConfigurationError(`${name} in the environment ${message}.`, {
        issues: [{ path: [name], message }],
      })
    }
  }
  return variables.map((name) => process.env[name]).find(Boolean)
}

/** What is wrong with the address of a proxy. The address is not shown, because it may hold a password. */
function proxyAddressProblem(address: string): string | undefined {
  const scheme = /^([a-z][a-z\d+.-]{0,20}):\/\//i.exec(address)?.[1]?.toLowerCase()
  if (scheme === undefined) return 'has no scheme: write `http://` in front'
  if (scheme !== 'http' && scheme !== 'https') {
    return `names a \`${scheme}:\` proxy, which cannot be used: name an HTTP proxy, or give the client a \`dispatcher\` of your own`
  }
  if (!URL.canParse(address)) return 'must be the URL of a proxy, such as `http://proxy.example.com:3128`'
  const { username, password } = new URL(address)
  return canBeDecoded(`${username}:${password}`)
    ? undefined
    : 'has a `%` in its user name or password that begins no escape: write it as `%25`'
}

function canBeDecoded(text: string): boolean {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** No connection to the proxy, or no tunnel through it: nothing was sent to the target. */
export class ProxyFailure extends Error {
  /** Host and port, and the variable that names the proxy; never its credentials. */
  readonly proxy: string
  /** What the proxy answered instead of making a tunnel. */
  readonly status: number | undefined

  constructor(proxy: URL, details: { status: number } | { cause: unknown }) {
    super('the proxy failed', 'cause' in details ? details : undefined)
    this.proxy = nameOf(proxy)
    this.status = 'status' in details ? details.status : undefined
    if ('status' in details) this.cause = new Error(`it answered ${details.status}`)
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
    switch (this.status) {
      case 407:
        return 'it asks for credentials. Put them into its address, as in `http://user:password@proxy:3128`.'
      case 403:
        return `it does not let this machine reach ${host}. Ask its administrator, or list the host in NO_PROXY.`
    }
    switch (code) {
      case 'ECONNREFUSED':
        return 'the connection was refused. Is the address of the proxy right, and is it running?'
      case 'ENOTFOUND':
        return 'its host name does not exist. Check the variable for a typing error.'
      case 'UND_ERR_CONNECT_TIMEOUT':
        return 'no connection to it could be made in time. Is the address of the proxy right, and is it running?'
    }
    return `it made no tunnel to ${host}. Is it a proxy, and does it work?`
  }
}

/** The tunnels that were requested and are not established yet. */
export class PendingTunnels {
  readonly #pending = new Set<{ readonly target: string; readonly proxy: URL }>()

  /** The proxy that has not made its tunnel to this host yet, as {@link ProxyFailure} names it. */
  awaitedProxy(host: string): string | undefined {
    for (const { target, proxy } of this.#pending) {
      // The target of a tunnel always has a port; a host has one only if it is not that of `https:`.
      if (target === host || target === `${host}:443`) return nameOf(proxy)
    }
    return undefined
  }

  /** Remembers a tunnel for as long as it is being made. */
  async during<Result>(target: string, proxy: URL, making: Promise<Result>): Promise<Result> {
    const tunnel = { target, proxy }
    this.#pending.add(tunnel)
    try {
      return await making
    } finally {
      this.#pending.delete(tunnel)
    }
  }
}

/**
 * The connections of undici's proxy agent to the proxy itself: their errors become a {@link ProxyFailure}.
 *
 * @param options.connect - makes the connections
 * @param options.tunnels - remembers which tunnels are being made
 */
export function proxyPool(
  UndiciPool: typeof Pool,
  proxy: URL,
  { connect: connector, tunnels }: { connect: buildConnector.connector; tunnels: PendingTunnels },
): Dispatcher {
  const pool = new UndiciPool(proxy, { connect: connector, headersTimeout: answerTimeoutMs })
  const connect = pool.connect.bind(pool) as (
    options: Dispatcher.ConnectOptions,
  ) => Promise<Dispatcher.ConnectData>
  const naming = async (target: Dispatcher.ConnectOptions): Promise<Dispatcher.ConnectData> => {
    const making = connect(target).catch((cause: unknown) => {
      throw new ProxyFailure(proxy, { cause })
    })
    const answer = await tunnels.during(target.path ?? '', proxy, making)
    if (answer.statusCode === 200) return answer
    answer.socket.on('error', () => {}).destroy()
    throw new ProxyFailure(proxy, { status: answer.statusCode })
  }
  return Object.assign(pool, { connect: naming })
}

/** Host and port, and the variable that names them; never the credentials. */
function nameOf({ host }: URL): string {
  const variable = variables.find((name) => hostIn(process.env[name]) === host)
  return variable === undefined ? host : `${host}, which ${variable} names`
}

function hostIn(address = ''): string | undefined {
  return URL.canParse(address) ? new URL(address).host : undefined
}
