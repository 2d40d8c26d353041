/** The default transport: undici, loaded at the first request, or the caller's dispatcher. */
import type { buildConnector, Dispatcher } from 'undici'
import { loopbackHost } from '../shared/addresses.js'
import { BoundedBytes } from '../shared/bounded-bytes.js'
import { certificatesIn } from '../shared/certificates.js'
import { isBodiless, isInterim, isSuccess } from '../shared/statuses.js'
import { messageOf } from '../shared/text.js'
import { configurationError } from '../shared/validation.js'
import { isRefusedHandshake } from './connection-error.js'
import type { Deadline, Waiting } from './deadline.js'
import {
  type Address,
  errorBodyMs,
  type HttpRequest,
  type HttpResponse,
  maxBodyBytes,
  type NoResponse,
  type Transport,
} from './exchange.js'
import { type DispatcherLike, dispatcherTransport } from './fetch.js'
import { proxyAgent, proxyVariable } from './proxy.js'

type Undici = typeof import('undici')

/** Sockets per origin of the dispatcher that the client makes; further calls wait for a free socket. */
export const maxConnections = 32

/** The transport on undici: on dispatchers that it opens and closes itself and that trust `ca`, or on one of the caller's. */
export function undiciTransport(ca: string | undefined, dispatcher?: DispatcherLike): Transport {
  const proxy = dispatcher === undefined ? proxyVariable() : undefined
  let opening: Promise<Transport> | undefined
  let opened: Transport | undefined

  return {
    proxy,
    async send(request, deadline) {
      opening ??= dispatcher === undefined ? open(ca, proxy) : recognize(dispatcher)
      opened ??= await deadline.waitFor(opening, 'connection')
      return opened.send(request, deadline)
    },
    async close() {
      // What could not be opened has nothing to close.
      const transport = await opening?.catch(() => undefined)
      await transport?.close?.()
    },
  }
}

async function open(ca: string | undefined, proxy: string | undefined): Promise<Transport> {
  const undici = await loadUndici()
  const tls = await tlsOptions(ca)
  // The client's deadline covers the whole call; undici's own timeouts could end it earlier.
  const limits = { connections: maxConnections, headersTimeout: 0, bodyTimeout: 0 }
  const connect = namingAlerts(undici.buildConnector(tls))
  // Gateways drop idle connections silently, whatever the server's `Keep-Alive` says: the next request would get no answer.
  const options = { ...limits, keepAliveMaxTimeout: 30_000, connect }
  const direct = new undici.Agent(options)
  const proxied = proxy && proxyAgent(undici, proxy, { ...options, proxyTls: tls, requestTls: tls })
  // No proxy reaches this machine.
  const dispatcherFor = ({ origin }: Address) =>
    proxied && !loopbackHost.test(new URL(origin).hostname) ? proxied : direct
  return {
    send: (request, deadline) => exchange(dispatcherFor(request.address), request, deadline),
    async close() {
      await direct.destroy()
      if (proxied) await proxied.destroy()
    },
  }
}

/** A dispatcher of our undici reports when a request leaves. Of others, and of mocks, only the method `request` is used. */
async function recognize(given: DispatcherLike): Promise<Transport> {
  const undici = await loadUndici().catch(() => undefined)
  if (undici === undefined || !(given instanceof undici.Dispatcher)) return dispatcherTransport(given)
  const { MockAgent, MockClient, MockPool } = undici
  const isMock = [MockAgent, MockClient, MockPool].some((mock) => given instanceof mock)
  return isMock
    ? dispatcherTransport(given)
    : { send: (request, deadline) => exchange(given, request, deadline) }
}

/** A TLS alert is followed by the end of the socket, which undici would report in its place. */
function namingAlerts(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...result) => {
      const [, socket] = result
      socket?.once('error', () => socket.destroy())
      callback(...result)
    })
}

/** @throws `ConfigurationError` if undici cannot be loaded: inlined into an ES module, for example, it finds no `require` */
async function loadUndici(): Promise<Undici> {
  try {
    const undici = await import('undici')
    // After a failed load, a second `import` may return the module half initialized.
    if (typeof undici.Agent === 'function') return undici
    throw new Error('it has no Agent')
  } catch (error) {
    const advice =
      'If this code was bundled for Node.js, mark `undici` as external. On another platform give the client a `fetch`, such as `globalThis.fetch`'
    const message = `is missing, and undici cannot be loaded. ${advice} (${messageOf(error)})`
    const invalid = configurationError('The client cannot send requests')
    throw invalid([{ path: ['dispatcher'], message }], { cause: error })
  }
}

/**
 * How long a connection to one address of a host may take, in milliseconds. Node.js itself tries the next address after
 * 250 ms: too soon for a lost packet, or another continent.
 */
const addressMs = 2_000

/** The options of connections. One context for all of them, so that the authorities are parsed once. */
async function tlsOptions(ca: string | undefined) {
  const { getDefaultAutoSelectFamilyAttemptTimeout } = await import('node:net')
  const { createSecureContext } = await import('node:tls')
  return {
    autoSelectFamilyAttemptTimeout: Math.max(addressMs, getDefaultAutoSelectFamilyAttemptTimeout()),
    ...(ca !== undefined && { secureContext: createSecureContext({ ca: await trustedWith(ca) }) }),
  }
}

/** The authorities that this machine trusts, and `ca` in PEM: a list given to TLS replaces them. */
export async function trustedWith(ca: string): Promise<string[]> {
  const tls: { rootCertificates: readonly string[]; getCACertificates?(type: 'default'): string[] } =
    await import('node:tls')
  const own = certificatesIn(ca)
  if (tls.getCACertificates !== undefined) return [...tls.getCACertificates('default'), ...own]
  // Node.js 20 cannot list its authorities: they are the built-in ones and those of `NODE_EXTRA_CA_CERTS`.
  const { readFile } = await import('node:fs/promises')
  const file = process.env.NODE_EXTRA_CA_CERTS
  // Node.js itself warns about an unreadable file.
  const extra = file ? await readFile(file, 'utf8').catch(() => undefined) : undefined
  return [...tls.rootCertificates, ...(extra === undefined ? [] : [extra]), ...own]
}

function exchange(
  dispatcher: Dispatcher,
  { address, body, headers, method }: HttpRequest,
  deadline: Deadline,
): Promise<HttpResponse | NoResponse> {
  return new Promise((resolve) => {
    const { origin, path } = address
    const handler = new ResponseHandler(deadline, resolve)
    try {
      dispatcher.dispatch({ origin, path, method, headers, body: body ?? null }, handler)
    } catch (error) {
      handler.onResponseError(undefined, error)
    }
  })
}

type ResponseHeaders = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2]

/**
 * The handler of one exchange. Undici calls `onRequestStart` when the request has a free connection: before
 * that call the server cannot have seen the request.
 *
 * Not `dispatcher.request`, which makes a stream of every body: that costs a fifth of the throughput.
 */
class ResponseHandler implements Dispatcher.DispatchHandler, Waiting {
  phase: 'connection' | 'answer' = 'connection'
  readonly #body = new BoundedBytes(maxBodyBytes)
  #controller: Dispatcher.DispatchController | undefined
  /** 0 until the head of the answer has arrived. */
  #status = 0
  #headers: ResponseHeaders = {}
  #bodyTimer: NodeJS.Timeout | undefined
  #hasEnded = false

  constructor(
    private readonly deadline: Deadline,
    private readonly resolve: (outcome: HttpResponse | NoResponse) => void,
  ) {
    deadline.setWaiting(this)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.deadline.checkClock()
    if (this.#hasEnded) {
      controller.abort(abandoned)
      return
    }
    this.#controller = controller
    this.phase = 'answer'
  }

  onResponseStart(_controller: unknown, status: number, headers: ResponseHeaders): void {
    // 1xx answers precede the final answer (RFC 9110 section 15.2).
    if (this.#hasEnded || isInterim(status)) return
    this.#status = status
    this.#headers = headers
    if (!isSuccess(status)) this.#bodyTimer = setTimeout(() => this.#stop(this.#answer(false)), errorBodyMs)
  }

  onResponseData(_controller: unknown, piece: Uint8Array): void {
    if (!this.#body.add(piece)) this.#stop(this.#answer(false))
  }

  onResponseEnd(): void {
    this.#end(this.#answer(true))
  }

  onResponseError(_controller: unknown, error: unknown): void {
    const status = this.#status
    // An answer of such a status is complete, even if its headers declare a body.
    if (isBodiless(status)) this.#end(this.#answer(true))
    else if (status !== 0 && !isSuccess(status)) this.#end(this.#answer(false))
    else this.#end({ error, requestSent: this.phase === 'answer' && !isRefusedHandshake(error) })
  }

  abandon(): void {
    this.#stop({ error: this.deadline.reason, requestSent: this.phase === 'answer' })
  }

  /** The answer with the part of the body that has arrived. */
  #answer(bodyComplete: boolean): HttpResponse {
    const headers = this.#headers
    const header = (name: string) => [headers[name]].flat()[0]
    return { status: this.#status, header, body: this.#body.text, bodyComplete }
  }

  /** Ends the exchange before the server does. */
  #stop(outcome: HttpResponse | NoResponse): void {
    this.#end(outcome)
    this.#controller?.abort(abandoned)
  }

  #end(outcome: HttpResponse | NoResponse): void {
    if (this.#hasEnded) return
    this.#hasEnded = true
    clearTimeout(this.#bodyTimer)
    this.deadline.setWaiting(undefined)
    this.resolve(outcome)
  }
}

/** The reason that undici needs for an abort. It is never shown, because the exchange has already ended. */
const abandoned = new Error('the request is abandoned')
