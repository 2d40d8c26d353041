/** The emulator: the service of docs/service.md, in process. */
import { Agent, type Dispatcher } from 'undici'
import type { Routes } from '../shared/routes.js'
import { invalidRequest } from '../shared/validation.js'
import {
  Activity,
  type EmulatorEvents,
  type RecordedCallback,
  type RecordedRequest,
  type RequestCounts,
} from './activity.js'
import { type CallbackResult, Callbacks } from './callbacks.js'
import { type CallbackFault, type EmulatorOperation, type Fault, Faults } from './faults.js'
import { type Certificates, createLoopbackCertificate, type KeyAndCertificate } from './https/certificate.js'
import { type HttpsServer, listenHttps } from './https/https-server.js'
import { type EmulatedNotification, outgoingNotification } from './notification.js'
import {
  type EmulatorOptions,
  type ResolvedEmulatorOptions,
  randomSecret,
  resolveOptions,
} from './options.js'
import type { PageServer } from './page/server.js'
import { type EmulatorParts, NotificationService } from './service/service.js'
import { type SubscriptionRecord, SubscriptionStore } from './service/subscription-store.js'
import { TokenIssuer } from './service/token-endpoint.js'
import { clientVariables } from './words.js'

/**
 * Starts the notification service in this process, by default on a free port of 127.0.0.1: HTTPS with a certificate
 * made now, signed access tokens, real callbacks. Close the emulator when the test is done.
 *
 * @throws `ConfigurationError` for unusable options, also for a port in use
 *
 * @example
 * ```ts
 * const emulator = await startEmulator()
 * const client = new NotificationClient(emulator.clientOptions)
 * await client.createSubscription({
 *   notificationTypes: ['call-score'],
 *   usernames: ['alice'],
 *   callbackUrl: 'https://localhost:8443/notifications', // a test's own server, with `emulator.tls`
 * })
 * const [callback] = await emulator.notify({ type: 'cxScoreUpdated', username: 'alice', payload: { score: 4.2 } })
 * console.log(callback?.status ?? callback?.error)
 * await client.close()
 * await emulator.close()
 * ```
 */
export async function startEmulator(options: EmulatorOptions = {}): Promise<Emulator> {
  const resolved = resolveOptions(options)
  const { tls, ca, host, port, page } = resolved
  const certificate = tls !== undefined && ca !== undefined ? { tls, ca } : createLoopbackCertificate(host)
  const server = await listenHttps(certificate.tls, host, port)
  const emulator = new Emulator(resolved, certificate, server)
  if (page !== undefined) {
    await emulator.servePage(page).catch((error) => emulator.close().then(() => Promise.reject(error)))
  }
  return emulator
}

/** Options for a `NotificationClient` that talks to one emulator. */
export interface EmulatorClientOptions {
  /** Address of the subscription calls. */
  readonly baseUrl: string
  /** Client credentials that the emulator's token endpoint accepts, and how it decodes them. */
  readonly auth: Pick<Emulator, 'authUrl' | 'domain' | 'clientId' | 'clientSecret'> & {
    /** How the token endpoint expects id and secret in the header. */
    readonly credentialsEncoding: 'raw' | 'form-urlencoded'
  }
  /** An undici `Agent` that trusts the emulator's certificate. Closing the emulator closes the agent. */
  readonly dispatcher: Dispatcher
  /** Where unsubscribe and update are, if the emulator has its option `routes`. */
  readonly routes: Routes | undefined
}

/** A running emulator, from `startEmulator`. */
export class Emulator {
  /** Base address of the subscription calls: `https://127.0.0.1:<port>`, or with the `host` that was given. */
  readonly baseUrl: string
  /** Base address of the token endpoint: the same as `baseUrl`. */
  readonly authUrl: string
  /** The tenant name in the token endpoint's path. */
  readonly domain: string
  /** The client ID that the token endpoint accepts. */
  readonly clientId: string
  /** The client secret that belongs to `clientId`; another one at each start, unless it was set. */
  readonly clientSecret: string
  /** User name for Basic credentials on the subscription calls (docs/service.md, Authentication). */
  readonly username: string
  /** The password that belongs to `username`; another one at each start, unless it was set. */
  readonly password: string
  /** Certificate in PEM of the authority to trust, for `baseUrl` and for servers that use `tls`. */
  readonly ca: string
  /** For a test's own receiver, at `localhost`, `127.0.0.1` or `::1`: `https.createServer(emulator.tls, handler)`. */
  readonly tls: KeyAndCertificate
  /** Options for a client of this emulator: `new NotificationClient(emulator.clientOptions)`. */
  readonly clientOptions: EmulatorClientOptions

  readonly #server: HttpsServer
  readonly #clientAgent: Agent
  readonly #service: NotificationService
  readonly #callbacks: Callbacks
  readonly #parts: EmulatorParts
  readonly #closing = new AbortController()
  #page: PageServer | undefined
  #closed: Promise<void> | undefined

  /** @internal Use `startEmulator`. */
  constructor(options: ResolvedEmulatorOptions, { ca, tls }: Certificates, server: HttpsServer) {
    const { domain, clientId, clientSecret, credentialsEncoding, username, password } = options
    const { baseUrl } = server
    const activity = new Activity()
    const store = new SubscriptionStore((change) => activity.subscriptionChanged(change))
    const faults = new Faults()
    const issuer = `${baseUrl}/auth/realms/${encodeURIComponent(domain)}`
    const tokens = new TokenIssuer(issuer, options.tokenLifetimeSeconds)
    this.#parts = { activity, store, faults, tokens, closing: this.#closing.signal }
    this.baseUrl = baseUrl
    this.authUrl = baseUrl
    this.domain = domain
    this.clientId = clientId
    this.clientSecret = clientSecret
    this.username = username
    this.password = password
    this.ca = ca
    this.tls = tls
    this.#server = server
    this.#clientAgent = new Agent({ connections: 32, connect: { ca } })
    this.clientOptions = {
      baseUrl,
      auth: { authUrl: baseUrl, domain, clientId, clientSecret, credentialsEncoding },
      dispatcher: this.#clientAgent,
      routes: options.routes,
    }
    this.#service = new NotificationService(options, this.#parts)
    const trusted = [ca, options.callbackCa ?? []].flat()
    this.#callbacks = new Callbacks(this.#parts, options, trusted)
    server.answerWith((request) => this.#service.handle(request))
  }

  /**
   * A `fetch` that answers without a network; only the path of the address counts (docs/testing.md, Without a network). Errors
   * whose form docs/service.md leaves open have `{ error, message }`, and RFC 6749 section 5.2 at the token endpoint.
   *
   * @throws as a global `fetch` does: a `TypeError` if a fault breaks the connection, and after `close`; the signal's reason
   */
  readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init)
    const { method, headers, body, signal, url } = request
    signal.throwIfAborted()
    const { pathname, search } = new URL(url)
    const sent = { method, target: pathname + search, headers, body: body ?? [], signal }
    // Keeps both in memory: after a Request is garbage, its signal no longer follows the signal of the caller.
    return this.#service.handle(sent).finally(() => [input, request])
  }

  /**
   * Sends a notification to every subscription for its user and category (docs/service.md, Delivery). Resolves with one
   * result for each when all were answered or failed: a failed one has the `error`, and is not retried. Three failures in a
   * row, in the order in which callbacks complete, end a subscription.
   *
   * @throws `InvalidRequestError` for a notification that the service could not deliver, and after `close`
   */
  async notify(notification: EmulatedNotification): Promise<readonly CallbackResult[]> {
    if (this.#closed !== undefined) {
      throw invalidRequest('Nothing was sent')([{ path: [], message: 'the emulator is closed' }])
    }
    return this.#callbacks.send(outgoingNotification(notification))
  }

  /** The active subscriptions as they are now, the oldest first. */
  get subscriptions(): readonly SubscriptionRecord[] {
    return this.#parts.store.list()
  }

  /** The last 1,000 requests that arrived, the newest last; with credentials and tokens, as they were sent. */
  get requests(): readonly RecordedRequest[] {
    return this.#parts.activity.requests
  }

  /** How many requests arrived since the start. */
  get requestCounts(): RequestCounts {
    return this.#parts.activity.requestCounts
  }

  /** The last 1,000 callbacks that were sent, the newest last; with the associated values, as they were sent. */
  get callbacks(): readonly RecordedCallback[] {
    return this.#parts.activity.callbacks
  }

  /**
   * Calls the listener for each such event from now on, until the returned function is called: for a `request` or a
   * `callback` when it has ended, for the others before the answer is sent. Errors of a listener are logged to
   * `console.error`, and change nothing.
   *
   * @example
   * ```ts
   * const stop = emulator.on('ended', ({ subscriptionId }, reason) => console.log(subscriptionId, reason))
   * ```
   */
  on<Name extends keyof EmulatorEvents>(
    event: Name,
    listener: (...args: EmulatorEvents[Name]) => unknown,
  ): () => void {
    return this.#parts.activity.on(event, listener)
  }

  /** Ends a subscription in silence, as the service does after three failures; `false` if no active one has this id. */
  endSubscription(subscriptionId: number): boolean {
    return this.#parts.store.end(subscriptionId, 'by-request')
  }

  /**
   * Makes the next answers of an endpoint fail, or the next callbacks. Faults of one endpoint happen in the order in which
   * they were injected, and a callback that fails counts as a failure of its subscription (docs/emulator.md, Faults).
   *
   * Options: `times`, how many, or `Infinity` until `clearFaults`; default: 1. `subscriptionId`: only callbacks of this
   * subscription; default: of all.
   *
   * @throws `InvalidRequestError` for a fault that could never happen
   *
   * @example
   * ```ts
   * emulator.injectFault('create', { status: 503, headers: { 'retry-after': '1' } }, { times: 2 })
   * emulator.injectFault('callback', { status: 503 }, { times: 3, subscriptionId })
   * ```
   */
  injectFault(
    operation: EmulatorOperation,
    fault: Fault,
    options?: { readonly times?: number | undefined },
  ): void
  /** The same for callbacks. */
  injectFault(
    operation: 'callback',
    fault: CallbackFault,
    options?: { readonly times?: number | undefined; readonly subscriptionId?: number | undefined },
  ): void
  injectFault(operation: unknown, fault: unknown, options: object = {}): void {
    this.#parts.faults.inject(operation, fault, options)
  }

  /** Removes the injected faults. */
  clearFaults(): void {
    this.#parts.faults.clear()
  }

  /** Refuses every access token issued so far with 401 from now on. */
  revokeTokens(): void {
    this.#parts.tokens.revokeAll()
  }

  /** Address of the page, if there is one; it has a secret. Anyone who knows it can do what the page can (docs/emulator.md, The page). */
  get pageUrl(): string | undefined {
    return this.#page?.url
  }

  /** @internal For `startEmulator`. */
  async servePage(page: NonNullable<ResolvedEmulatorOptions['page']>): Promise<void> {
    // Loaded here, so that only an emulator with a page loads the code of the page.
    const { startPageServer } = await import('./page/server.js')
    const { baseUrl, ca } = this
    const own = { ...clientVariables(this, 'emulator-ca.pem'), CALLBACK_TOKEN: randomSecret() }
    const variables = { ...own, ...page.environment }
    const host = { ...this.#parts, callbacks: this.#callbacks, baseUrl, ca, variables, envFile: page.envFile }
    this.#page = await startPageServer(host, page.port)
  }

  /** Stops the emulator: delayed answers and callbacks in flight are aborted, every connection is closed. */
  close(): Promise<void> {
    this.#closing.abort(new Error('The emulator was closed before the callback was answered'))
    this.#closed ??= Promise.all([
      this.#server.close(),
      this.#callbacks.close(),
      this.#clientAgent.destroy(),
      this.#page?.close(),
    ]).then(() => {})
    return this.#closed
  }

  /** Same as {@link Emulator.close}, for `await using`. */
  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }
}
