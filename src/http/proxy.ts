/** A proxy from the environment: what fails at the proxy itself is told from what fails behind it. */
import type { Dispatcher, Pool } from 'undici'
import { ConfigurationError } from '../errors.js'

/** The variables that undici asks, in its order for `https:` targets. */
const variables = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'] as const

/** How long a proxy may take to answer, in milliseconds: as long as undici lets a connection take. */
const answerTimeoutMs = 10_000

export function isProxyConfigured(): boolean {
  return variables.some((name) => process.env[name])
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

/** The tunnels that were asked for and do not stand yet. */
export class PendingTunnels {
  readonly #pending = new Set<{ readonly target: string; readonly proxy: URL }>()

  /** The proxy that has not made its tunnel to this host yet, as {@link ProxyFailure} names it. */
  awaitedProxy(host: string): string | undefined {
    for (const { target, proxy } of this.#pending) {
      // The target of a tunnel always has its port, a host only one that is not the protocol's own.
      if (target === host || target === `${host}:443` || target === `${host}:80`) return nameOf(proxy)
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
 * The connections of undici's proxy agent to the proxy itself; what fails there is a {@link ProxyFailure}.
 *
 * @param tunnels - remembers which tunnels are being made
 */
export function proxyPool(
  UndiciPool: typeof Pool,
  proxy: URL,
  { tunnels, ...options }: { tunnels: PendingTunnels },
): Dispatcher {
  const pool = new UndiciPool(proxy, { ...options, headersTimeout: answerTimeoutMs })
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

/** The error for a variable that names no proxy. Without the variable's value, which may hold a password. */
export function proxyAddressError(): ConfigurationError {
  const message = 'must be the URL of a proxy'
  return new ConfigurationError(`HTTPS_PROXY or HTTP_PROXY in the environment ${message}.`, {
    issues: [{ path: ['HTTPS_PROXY'], message }],
  })
}

/** Host and port, and the variable that names them; never the credentials. */
function nameOf({ host }: URL): string {
  const variable = variables.find((name) => hostIn(process.env[name]) === host)
  return variable === undefined ? host : `${host}, which ${variable} names`
}

function hostIn(address = ''): string | undefined {
  return URL.canParse(address) ? new URL(address).host : undefined
}
