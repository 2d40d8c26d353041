/** The default transport: undici, loaded at the first request, or the caller's dispatcher. */
import type { Socket } from 'node:net'
import type { buildConnector, Dispatcher } from 'undici'
import { BoundedBytes } from '../shared/bounded-bytes.js'
import { isBodiless, isInterim, isSuccess } from '../shared/statuses.js'
import { certificatesIn, messageOf } from '../shared/text.js'
import { configurationError } from '../shared/validation.js'
import { isMockedReset, isRefusedHandshake } from './connection-error.js'
import type { Awaited, Deadline } from './deadline.js'
import {
  type Address,
  errorBodyMs,
  type HttpResponse,
  maxBodyBytes,
  type NoResponse,
  responseOf,
  type Transport,
} from './exchange.js'
import { type DispatcherLike, dispatcherTransport, readAnswer } from './fetch.js'
import { thrownAnswer } from './foreign-answer.js'
import { configuredProxy, proxyPool } from './proxy.js'

type Undici = typeof import('undici')

/** Sockets per origin of the dispatcher that the client makes; further calls wait for a free socket. */
const maxConnections = 32

/**
 * @param options.dispatcher - never closed; without it, the transport opens and closes its own
 * @param options.ca - certificates that the transport's own dispatcher trusts besides the public authorities
 */
export function undiciTransport(options: {
  dispatcher: DispatcherLike | undefined
  ca: string | undefined
}): Transport {
  let opening: Promise<Transport> | undefined
  let opened: Transport | undefined

  async function open(): Promise<Transport> {
    opening ??= options.dispatcher === undefined ? openOwn(options.ca) : recognize(options.dispatcher)
    opened = await opening
    return opened
  }

  return {
    get proxy() {
      return opened?.proxy
    },
    send: (request, deadline) =>
      opened?.send(request, deadline) ??
      deadline.waitFor(open(), 'connection').then((transport) => transport.send(request, deadline)),
    async close() {
      // A dispatcher that could not be made has nothing to close.
      const transport = await opening?.catch(() => undefined)
      await transport?.close?.()
    },
  }
}

async function openOwn(ca: string | undefined): Promise<Transport> {
  const { Agent, Pool, ProxyAgent, buildConnector } = await loadUndici()
  const tls = await tlsOptions(ca)
  const proxy = configuredProxy()
  const sockets = new Set<Socket>()
  // The client's deadline covers the whole call; undici's own timeouts could end it earlier.
  const limits = { connections: maxConnections, headersTimeout: 0, bodyTimeout: 0 }
  const options = { ...limits, connect: noting(sockets, buildConnector(tls)) }
  const direct = new Agent(options)
  const tunnels =
    proxy &&
    new ProxyAgent({
      ...options,
      uri: proxy.url,
      ...(proxy.authorization !== undefined && { token: proxy.authorization }),
      proxyTls: tls,
      requestTls: tls,
      clientFactory: (address: URL, { connect }: { connect: buildConnector.connector }) =>
        proxyPool(Pool, address, { connect: noting(sockets, connect), proxy }),
    })
  const dispatcherFor = ({ origin }: Address) =>
    tunnels === undefined || proxy?.isBypassedFor(origin) ? direct : tunnels
  async function close(): Promise<void> {
    // With an error: otherwise undici does not notice that a connection was not made.
    for (const socket of sockets) socket.destroy(new Error('the client was closed'))
    await Promise.all([tunnels?.destroy(), direct.destroy()])
  }
  return { ...handlerTransport(dispatcherFor), proxy: proxy?.name, close }
}

/** A dispatcher of our undici reports when a request leaves; any other only has `request`. */
async function recognize(given: DispatcherLike): Promise<Transport> {
  const undici = await loadUndici().catch(() => undefined)
  const isOurs = undici !== undefined && given instanceof undici.Dispatcher
  // The mocks of one origin only support the handlers of undici 6.
  const isMock = isOurs && (given instanceof undici.MockPool || given instanceof undici.MockClient)
  return isOurs && !isMock ? handlerTransport(() => given) : dispatcherTransport(given)
}

/** @throws `ConfigurationError` if undici cannot be loaded, such as inlined into an ES module, where it finds no `require` */
async function loadUndici(): Promise<Undici> {
  try {
    const undici = await import('undici')
    // After a failed load, a second `import` may return the module half initialized.
    if (typeof undici.Agent === 'function') return undici
    throw new Error('it has no Agent')
  } catch (error) {
    const advice =
      'If this code was bundled, leave `undici` external there; or give the client a `fetch`, such as `globalThis.fetch`'
    const message = `is missing, and undici, which is used without one, cannot be loaded. ${advice} (${messageOf(error)})`
    const refuse = configurationError('The client has nothing to send requests with')
    throw refuse([{ path: ['dispatcher'], message }], { cause: error })
  }
}

/** How long one address of a host may take, in milliseconds: a lost packet, and the round trip to another continent. */
const addressMs = 2_000

/**
 * The options of connections. Node.js itself gives an address 250 ms if the host has another one, such as one of IPv6 without a
 * route: too little for a distant server. One context for all connections, so that the authorities are parsed once.
 */
export async function tlsOptions(ca: string | undefined) {
  const { getDefaultAutoSelectFamilyAttemptTimeout } = await import('node:net')
  const { createSecureContext } = await import('node:tls')
  return {
    autoSelectFamilyAttemptTimeout: Math.max(addressMs, getDefaultAutoSelectFamilyAttemptTimeout()),
    ...(ca !== undefined && { secureContext: createSecureContext({ ca: await trustedWith(ca) }) }),
  }
}

const ipAddress = /^[\d.]+$|:/

/**
 * A connector whose open sockets are in `sockets`, also connecting ones, for which undici's `destroy` would wait. Not by the
 * option `signal` of `net.connect`: Node.js keeps a listener there for every past socket, 5 kB each.
 */
function noting(sockets: Set<Socket>, connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) => {
    // Undici gives the IP address of a proxy as its name, which Node.js 26 refuses.
    const { servername = '' } = options
    if (ipAddress.test(servername)) options = { ...options, servername: '' }
    // Undici's connector returns its socket, which its type does not say.
    const socket = connect(options, callback) as unknown as Socket
    sockets.add(socket)
    // An alert of TLS is followed by the end of the socket, which undici would report in its place.
    socket.once('error', () => socket.destroy())
    socket.once('close', () => sockets.delete(socket))
  }
}

/**
 * The authorities that this machine trusts, and `ca`. They must be listed, because a list given to TLS replaces them. Node.js
 * 20 cannot list those of `--use-system-ca` and the like: there it is the built-in ones and `NODE_EXTRA_CA_CERTS`.
 *
 * @param ca - certificates in PEM
 */
export async function trustedWith(ca: string): Promise<string[]> {
  const tls: { rootCertificates: readonly string[]; getCACertificates?(type: 'default'): string[] } =
    await import('node:tls')
  const own = certificatesIn(ca)
  if (tls.getCACertificates !== undefined) return [...tls.getCACertificates('default'), ...own]
  const { readFile } = await import('node:fs/promises')
  const file = process.env.NODE_EXTRA_CA_CERTS
  // Node.js itself warns about an unreadable file.
  const extra = file ? await readFile(file, 'utf8').catch(() => undefined) : undefined
  return [...tls.rootCertificates, ...(extra === undefined ? [] : [extra]), ...own]
}

/** A transport on dispatchers of our undici, which report when a request leaves. */
function handlerTransport(dispatcherFor: (address: Address) => Dispatcher): Transport {
  return {
    send: ({ address, body = null, headers, method }, deadline) =>
      new Promise((resolve) => {
        const { origin, path } = address
        const handler = new ResponseHandler(deadline, resolve)
        try {
          dispatcherFor(address).dispatch({ origin, path, method, headers, body }, handler)
        } catch (error) {
          handler.onResponseError(undefined, error)
        }
      }),
  }
}

type Headers = Parameters<NonNullable<Dispatcher.DispatchHandler['onResponseStart']>>[2]

/** What a handler holds until the exchange ends. */
class Pending {
  readonly body = new BoundedBytes(maxBodyBytes)
  controller: Dispatcher.DispatchController | undefined
  /** 0 until the head of the answer has arrived. */
  status = 0
  headers: Headers = {}
  bodyTimer: NodeJS.Timeout | undefined

  constructor(
    readonly deadline: Deadline,
    readonly resolve: (became: HttpResponse | NoResponse) => void,
  ) {}
}

/**
 * The handler of one exchange. Undici calls `onRequestStart` when the request has a free connection: before
 * that call the server cannot have seen the request.
 *
 * Not `dispatcher.request`, which makes a stream of every body: that costs a fifth of the throughput.
 */
class ResponseHandler implements Dispatcher.DispatchHandler, Awaited {
  phase: 'connection' | 'answer' = 'connection'
  /** Released at the end, because undici keeps finished requests and with them their handlers. */
  #pending: Pending | undefined

  constructor(deadline: Deadline, resolve: (became: HttpResponse | NoResponse) => void) {
    this.#pending = new Pending(deadline, resolve)
    deadline.setAwaited(this)
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#pending?.deadline.checkClock()
    if (this.#pending === undefined) {
      controller.abort(abandoned())
      return
    }
    this.#pending.controller = controller
    this.phase = 'answer'
  }

  onResponseStart(_controller: unknown, status: number, headers: Headers): void {
    const pending = this.#pending
    // 1xx answers precede the final answer (RFC 9110 section 15.2).
    if (pending === undefined || isInterim(status)) return
    pending.status = status
    pending.headers = headers
    if (!isSuccess(status)) pending.bodyTimer = setTimeout(() => this.#cutOff(), errorBodyMs)
  }

  onResponseData(_controller: unknown, piece: Uint8Array): void {
    if (this.#pending?.body.add(piece) === false) this.#cutOff()
  }

  onResponseEnd(): void {
    this.#answer(true)
  }

  onResponseError(_controller: unknown, error: unknown): void {
    const status = this.#pending?.status ?? 0
    const thrown = status === 0 ? thrownAnswer(error) : undefined
    // Also of an answer without a body that declares one.
    if (isBodiless(status)) this.#answer(true)
    else if (status !== 0 && !isSuccess(status)) this.#answer(false)
    else if (thrown !== undefined) void readAnswer(thrown).then(this.#end()?.resolve)
    // A mock resets without a connection: the request counts as sent.
    else {
      const wasSent = this.phase === 'answer' && !(status === 0 && isRefusedHandshake(error))
      this.#end()?.resolve({ error, requestSent: wasSent || isMockedReset(error) })
    }
  }

  abandon(): void {
    const pending = this.#end()
    pending?.resolve({ error: pending.deadline.reason, requestSent: this.phase === 'answer' })
    pending?.controller?.abort(abandoned())
  }

  /** Answers with the received part of the body. */
  #cutOff(): void {
    const controller = this.#pending?.controller
    this.#answer(false)
    controller?.abort(abandoned())
  }

  #answer(bodyComplete: boolean): void {
    const pending = this.#end()
    if (pending === undefined) return
    const { body, headers, status } = pending
    const header = (name: string) => [headers[name]].flat()[0]
    pending.resolve(responseOf({ status, header }, body.bytes, bodyComplete))
  }

  /** Releases what the handler holds; a second call returns nothing. */
  #end(): Pending | undefined {
    const pending = this.#pending
    this.#pending = undefined
    clearTimeout(pending?.bodyTimer)
    pending?.deadline.setAwaited(undefined)
    return pending
  }
}

/** The reason that undici needs for an abort. It is never shown, because the exchange has already ended. */
function abandoned(): Error {
  return new Error('the request is abandoned')
}
