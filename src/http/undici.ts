/** The default transport: undici, loaded at the first request, or a dispatcher that the caller made. */
import type { Socket } from 'node:net'
import type { SecureContext } from 'node:tls'
import type { buildConnector, Dispatcher } from 'undici'
import { ConfigurationError } from '../errors.js'
import { messageOf } from '../shared/text.js'
import { isMockedReset, provesNoConnection } from './connection-error.js'
import type { Deadline, Progress } from './deadline.js'
import { configuredProxy, PendingTunnels, proxyPool } from './proxy.js'
import {
  BodyText,
  type HttpRequest,
  type HttpResponse,
  isBodyNeeded,
  readBody,
  type Transport,
  unneededBodyMs,
} from './transport.js'

/**
 * The part of an undici `Dispatcher` that the client uses. Its type is written out here, so that dispatchers of undici
 * 6, 7 and 8 all fit, whichever version this package was compiled with.
 */
export interface DispatcherLike {
  /** Sends a request and resolves with the head of the answer. */
  request(options: {
    origin: string
    path: string
    method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
    headers: Record<string, string>
    body: string | null
    signal: AbortSignal
  }): Promise<{
    /** HTTP status. */
    statusCode: number
    /** The headers, by lower-case name. */
    headers: Record<string, string | string[] | undefined>
    /** The body, as it arrives. */
    body: AsyncIterable<Uint8Array>
  }>
}

type Undici = typeof import('undici')

/** Sockets per origin of the dispatcher that the client makes; further calls wait for a free socket. */
const maxConnections = 32

export class UndiciTransport implements Transport {
  readonly tunnels = new PendingTunnels()
  readonly #given: DispatcherLike | undefined
  readonly #ca: string | undefined
  readonly #closing = new AbortController()
  #opening: Promise<DispatcherLike> | undefined
  #dispatcher: DispatcherLike | undefined
  /** The same dispatcher, if it is of the undici that this package imports. */
  #own: Dispatcher | undefined

  /**
   * @param options.dispatcher - used as it is and never closed; without one, the transport opens and closes its own
   * @param options.ca - certificates that the transport's own dispatcher trusts besides the public authorities
   */
  constructor({ dispatcher, ca }: { dispatcher?: DispatcherLike | undefined; ca?: string | undefined }) {
    this.#given = dispatcher
    this.#ca = ca
  }

  async send(request: HttpRequest, deadline: Deadline, progress: Progress): Promise<HttpResponse> {
    const dispatcher = this.#dispatcher ?? (await deadline.waitFor(this.#open()))
    return this.#own === undefined
      ? sendByRequest(dispatcher, request, deadline, progress)
      : sendByHandler(this.#own, request, deadline, progress)
  }

  /** Breaks off what is in flight and closes what the transport opened itself. */
  async close(): Promise<void> {
    // A dispatcher that could not be made has nothing to close.
    await this.#opening?.catch(() => undefined)
    this.#closing.abort()
    if (this.#given === undefined) await this.#own?.destroy()
  }

  async #open(): Promise<DispatcherLike> {
    this.#opening ??= this.#given === undefined ? this.#openOwn() : this.#recognize(this.#given)
    this.#dispatcher = await this.#opening
    return this.#dispatcher
  }

  async #openOwn(): Promise<DispatcherLike> {
    this.#own = await openDispatcher(this.#closing.signal, this.#ca, this.tunnels)
    return this.#own
  }

  async #recognize(given: DispatcherLike): Promise<DispatcherLike> {
    const undici = await loadUndici().catch(() => undefined)
    if (undici !== undefined && given instanceof undici.Dispatcher) this.#own = given
    return given
  }
}

/**
 * @throws `ConfigurationError` if undici cannot be loaded, e.g. because a bundler inlined it into an ES module, where
 * undici finds no `require`
 */
async function loadUndici(): Promise<Undici> {
  try {
    const undici = await import('undici')
    // After a failed load, a second `import` may return the module half initialized.
    if (typeof undici.Agent === 'function') return undici
    throw new Error('it has no Agent')
  } catch (error) {
    const advice =
      'If this code was bundled, leave `undici` external there; or give the client a `fetch`, such as `globalThis.fetch`'
    const message = `is missing, and undici, which is used without one, cannot be loaded. ${advice}`
    throw new ConfigurationError(
      `The client has nothing to send requests with: undici cannot be loaded (${messageOf(error)}). ${advice}.`,
      { issues: [{ path: ['dispatcher'], message }] },
      { cause: error },
    )
  }
}

/**
 * Has a connector destroy its sockets when the transport closes, also one that is still connecting, which undici would
 * wait for. Not by the option `signal` of `net.connect`: Node.js leaves a listener there for every socket that ever was,
 * which keeps 5 kB each.
 */
function untilClosed(closing: AbortSignal, connector: buildConnector.connector): buildConnector.connector {
  const sockets = new Set<Socket>()
  closing.addEventListener('abort', () => {
    // With an error: without one, undici would not learn that a connection is not made.
    for (const socket of sockets) socket.destroy(new Error('the client was closed'))
  })
  return (options, callback) => {
    // Undici's connector returns its socket, which its type does not say.
    const socket = connector(options, callback) as unknown as Socket
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  }
}

/** @param closing - destroys every socket */
async function openDispatcher(
  closing: AbortSignal,
  ca: string | undefined,
  tunnels: PendingTunnels,
): Promise<Dispatcher> {
  const { Agent, EnvHttpProxyAgent, Pool, buildConnector } = await loadUndici()
  const tls = ca === undefined ? {} : { secureContext: await contextThatTrusts(ca) }
  const connect = untilClosed(closing, buildConnector(tls))
  // The client's deadline covers the whole call; undici's own timeouts would only contradict a longer one.
  const options = { connections: maxConnections, connect, headersTimeout: 0, bodyTimeout: 0 }
  const httpsProxy = configuredProxy()
  // Without a proxy a plain agent: `EnvHttpProxyAgent` would look for one at each request.
  if (httpsProxy === undefined) return new Agent(options)
  const clientFactory = (proxy: URL, proxyOptions: { connect: buildConnector.connector }) =>
    proxyPool(Pool, proxy, { connect: untilClosed(closing, proxyOptions.connect), tunnels })
  // `http:` targets are on loopback: no proxy gets there, and it could read the credentials.
  const proxies = { httpProxy: '', httpsProxy }
  return new EnvHttpProxyAgent({ ...options, ...proxies, proxyTls: tls, requestTls: tls, clientFactory })
}

/** One context for all connections: otherwise each connection would parse the list of authorities again. */
async function contextThatTrusts(ca: string): Promise<SecureContext> {
  const { createSecureContext } = await import('node:tls')
  return createSecureContext({ ca: await trustedWith(ca) })
}

/**
 * The authorities that Node.js trusts, and `ca`. The defaults must be listed, because a list given to TLS replaces them.
 *
 * @param ca - certificates in PEM
 */
export async function trustedWith(ca: string): Promise<string[]> {
  const { rootCertificates } = await import('node:tls')
  return [...rootCertificates, ...(await extraCertificates()), ca]
}

/** The certificates that NODE_EXTRA_CA_CERTS names; none for an unreadable file, of which Node.js itself warns. */
async function extraCertificates(): Promise<string[]> {
  const file = process.env.NODE_EXTRA_CA_CERTS
  if (!file) return []
  const { readFile } = await import('node:fs/promises')
  return readFile(file, 'utf8').then(
    (text) => [text],
    () => [],
  )
}

/** For a dispatcher of our undici: its handlers see when a request leaves. */
function sendByHandler(
  dispatcher: Dispatcher,
  { address, body, headers, method }: HttpRequest,
  deadline: Deadline,
  progress: Progress,
): Promise<HttpResponse> {
  const { origin, path } = address
  return new Promise((resolve, reject) => {
    const exchange = new Exchange(deadline, progress, resolve, reject)
    try {
      dispatcher.dispatch({ origin, path, method, headers, body: body ?? null }, exchange)
    } catch (error) {
      exchange.onError(error)
    }
  })
}

/** For any other dispatcher: by its own `request`, because undici's function refuses dispatchers of other versions. */
async function sendByRequest(
  dispatcher: DispatcherLike,
  { address, body, headers, method }: HttpRequest,
  deadline: Deadline,
  progress: Progress,
): Promise<HttpResponse> {
  const { origin, path } = address
  // This dispatcher does not show whether it has a connection: a request that was handed over may have been sent.
  progress.phase = 'answer'
  try {
    return await deadline.withController(async (controller) => {
      const { signal } = controller
      const answer = await dispatcher.request({ origin, path, method, headers, body: body ?? null, signal })
      return {
        status: answer.statusCode,
        header: (name) => [answer.headers[name]].flat()[0],
        ...(await readBody(answer.statusCode, answer.body, controller)),
      }
    })
  } catch (error) {
    if (!deadline.aborted && provesNoConnection(error)) progress.phase = 'connection'
    throw error
  }
}

/**
 * One exchange, as the handler that undici reports its progress to.
 *
 * Undici calls `onConnect` once it has a free connection for the request: before that call the server cannot have seen
 * the request.
 *
 * Not `dispatcher.request`, which makes a stream of every body: that costs a fifth of the throughput. The methods are
 * those that undici 7 calls directly.
 */
class Exchange implements Dispatcher.DispatchHandler {
  readonly #deadline: Deadline
  readonly #progress: Progress
  readonly #resolve: (response: HttpResponse) => void
  readonly #reject: (reason: unknown) => void
  readonly #text = new BodyText()
  readonly #onAbort = () => this.#breakOff()
  #abort: ((reason: Error) => void) | undefined
  #hasEnded = false
  #bodyTimer: NodeJS.Timeout | undefined
  #status = 0
  #rawHeaders: readonly unknown[] = []

  constructor(
    deadline: Deadline,
    progress: Progress,
    resolve: (response: HttpResponse) => void,
    reject: (reason: unknown) => void,
  ) {
    this.#deadline = deadline
    this.#progress = progress
    this.#resolve = resolve
    this.#reject = reject
    deadline.onAbort(this.#onAbort)
  }

  onConnect(abort: (reason: Error) => void): void {
    this.#deadline.checkClock()
    this.#abort = abort
    if (this.#hasEnded) abort(abandoned())
    else this.#progress.phase = 'answer'
  }

  onHeaders(status: number, rawHeaders: readonly unknown[]): boolean {
    // 1xx answers come before the one that counts (RFC 9110 section 15.2).
    if (status >= 200) {
      this.#status = status
      this.#rawHeaders = rawHeaders
      if (!isBodyNeeded(status)) this.#bodyTimer = setTimeout(() => this.#cutOff(), unneededBodyMs)
    }
    return true
  }

  onData(piece: Uint8Array): boolean {
    if (!this.#hasEnded && !this.#text.add(piece)) this.#cutOff()
    return true
  }

  onComplete(): void {
    this.#answer(true)
  }

  onError(error: unknown): void {
    if (this.#status !== 0 && !isBodyNeeded(this.#status)) {
      this.#answer(false)
      return
    }
    if (!this.#end()) return
    // A mock resets without a connection: the request counts as sent.
    if (isMockedReset(error)) this.#progress.phase = 'answer'
    this.#reject(error)
  }

  #answer(bodyComplete: boolean): void {
    if (!this.#end()) return
    const rawHeaders = this.#rawHeaders
    const header = (name: string) => headerIn(rawHeaders, name)
    this.#resolve({ status: this.#status, header, body: this.#text.toString(), bodyComplete })
  }

  /** Answers with what there is of the body. */
  #cutOff(): void {
    this.#answer(false)
    this.#abort?.(abandoned())
  }

  #breakOff(): void {
    if (this.#end()) this.#reject(this.#deadline.reason)
    this.#abort?.(abandoned())
  }

  #end(): boolean {
    if (this.#hasEnded) return false
    this.#hasEnded = true
    clearTimeout(this.#bodyTimer)
    this.#deadline.removeListener(this.#onAbort)
    return true
  }
}

/** The reason that undici needs for an abort. It is never shown, because the exchange has ended by then. */
function abandoned(): Error {
  return new Error('the request is abandoned')
}

/** Names and values in turn, as bytes or as text. */
function headerIn(rawHeaders: readonly unknown[], name: string): string | undefined {
  for (let index = 0; index < rawHeaders.length; index += 2) {
    if (`${rawHeaders[index]}`.toLowerCase() === name) return `${[rawHeaders[index + 1]].flat()[0]}`
  }
  return undefined
}
