/** Holds the current access token: one request at a time, and a refresh before the token ends (docs/client.md, Tokens). */
import pMemoize from 'p-memoize'
import { TimeoutError } from '../errors.js'
import type { MissingToken, RetryPolicy } from '../http/send.js'
import type { Log } from '../logger.js'
import { backoffMs } from '../shared/backoff.js'
import type { SharedToken, StoredToken } from './shared-token.js'
import type { IssuedToken, TokenEndpoint } from './token-request.js'

export interface HeldToken {
  readonly accessToken: string
  /** The same token as a promise that is made once: the hot path hands it out and allocates nothing. */
  readonly promise: Promise<string>
  /** Whether this process requested the token. A token from the shared store may have been rejected elsewhere. */
  readonly issuedHere: boolean
  readonly lifetimeMs: number
  /** Monotonic time from which a refresh is due; moves when a refresh starts or fails. */
  refreshFrom: number
  /** Monotonic time at which the token ends. */
  readonly endsAt: number
}

export interface TokenSourceOptions {
  readonly endpoint: TokenEndpoint
  readonly retry: RetryPolicy
  /** Limit for a request that no call waits for, in milliseconds. */
  readonly timeoutMs: number
  readonly shared: SharedToken | undefined
  readonly log: Log
}

/**
 * Where in a token's lifetime the refresh is due: at a random point between 80 and 90 per cent, so that processes that
 * started together do not refresh together. A fraction, so that it suits 5 seconds and 24 hours.
 */
const refreshDue = { earliest: 0.8, latest: 0.9 }

/** Waits after failed background refreshes double from the first bound to the second, both shares of the lifetime. */
const refreshBackoff = { first: 1 / 64, longest: 1 / 16, firstAtMostMs: 1_000 }

/** A token request in flight, which every call without a token joins. */
interface PendingRequest {
  readonly limitMs: number
  /** A refresh before the token ends: no call waits for it yet, so it makes one attempt only. */
  readonly isBackground: boolean
}

export class TokenSource {
  readonly #endpoint: TokenEndpoint
  readonly #retry: RetryPolicy
  readonly #timeoutMs: number
  readonly #shared: SharedToken | undefined
  readonly #log: Log
  /** All calls that need a token while a request is pending get the same promise. */
  readonly #obtainOnce = pMemoize((pending: PendingRequest) => this.#obtain(pending), { cache: false })
  #current: HeldToken | undefined
  #rejected: string | undefined
  #pending: PendingRequest | undefined
  #failedRefreshes = 0

  constructor({ endpoint, log, retry, shared, timeoutMs }: TokenSourceOptions) {
    this.#endpoint = endpoint
    this.#retry = retry
    this.#timeoutMs = timeoutMs
    this.#shared = shared
    this.#log = log
  }

  /** Why there is no token yet. */
  missing(): MissingToken {
    return this.#endpoint.missing()
  }

  /** The current token without waiting, if there is one; starts a background refresh when that is due. */
  current(): HeldToken | undefined {
    const token = this.#current
    if (token === undefined) return undefined
    const now = performance.now()
    if (now >= token.endsAt) return undefined
    if (now >= token.refreshFrom) void this.#refresh(token)
    return token
  }

  /**
   * Waits for a token, together with all other calls that need one.
   *
   * @param limitMs - how long this call has left, in milliseconds
   */
  async next(limitMs: number): Promise<HeldToken> {
    const own = { limitMs: Math.max(limitMs, this.#timeoutMs), isBackground: false }
    const joined = this.#pending
    try {
      return await this.#joinOrBegin(own)
    } catch (error) {
      // The joined request had one attempt or less time than this call: request a token for this call, once.
      if (joined?.isBackground || (joined && error instanceof TimeoutError)) return this.#joinOrBegin(own)
      throw error
    }
  }

  /** Forgets a token that the service rejected, unless a newer one has replaced it. */
  invalidate(accessToken: string): void {
    this.#rejected = accessToken
    if (this.#current?.accessToken === accessToken) this.#current = undefined
    this.#shared?.remove(accessToken)
  }

  async #joinOrBegin(own: PendingRequest): Promise<HeldToken> {
    this.#pending ??= own
    const pending = this.#pending
    try {
      return await this.#obtainOnce(pending)
    } finally {
      if (this.#pending === pending) this.#pending = undefined
    }
  }

  async #refresh(token: HeldToken): Promise<void> {
    token.refreshFrom = Number.POSITIVE_INFINITY
    try {
      // A third of the time: if this request hangs, a call that joined it has time left for its own request.
      await this.#joinOrBegin({ limitMs: this.#timeoutMs / 3, isBackground: true })
    } catch (err) {
      this.#failedRefreshes += 1
      const delayMs = refreshDelayMs(this.#failedRefreshes, token.lifetimeMs)
      token.refreshFrom = performance.now() + delayMs
      const fields = { delayMs: Math.round(delayMs), err }
      const message = 'Access token refresh failed; the current one stays in use'
      this.#log('warn', { event: 'token.refresh-failed', ...fields }, message)
    }
  }

  /** Obtains a token: one that another process has stored, or one that is requested here. */
  async #obtain({ isBackground, limitMs }: PendingRequest): Promise<HeldToken> {
    const stored = await this.#shared?.read()
    const adopted = stored && this.#adoptable(stored)
    if (adopted !== undefined) {
      this.#hold(adopted)
      return adopted
    }
    const retry = isBackground ? { ...this.#retry, maxAttempts: 1 } : this.#retry
    const token = heldToken(await this.#endpoint.requestToken({ timeoutMs: limitMs, retry }), true)
    const remainingMs = token.endsAt - performance.now()
    // A token that has expired on arrival serves only the calls that waited for it.
    if (remainingMs > 0 && this.#isBetter(token)) {
      this.#hold(token)
      const { accessToken, lifetimeMs } = token
      this.#shared?.write({ accessToken, lifetimeMs, remainingMs })
      const expiresInMs = Math.round(remainingMs)
      this.#log('info', { event: 'token.obtained', expiresInMs }, 'Access token obtained')
    }
    return token
  }

  /** A token that another process stored, if it is better than the current one. */
  #adoptable({ accessToken, lifetimeMs, remainingMs }: StoredToken): HeldToken | undefined {
    // Read back, the current token may seem to expire later, because the wall clock is rounded.
    if (accessToken === this.#rejected || accessToken === this.#current?.accessToken) return undefined
    const requestedAt = performance.now() - (lifetimeMs - remainingMs)
    const token = heldToken({ accessToken, lifetimeMs, requestedAt }, false)
    // A stored token that is due for a refresh is left alone: a new one, requested now, serves every process.
    return this.#isBetter(token) && performance.now() < token.refreshFrom ? token : undefined
  }

  #hold(token: HeldToken): void {
    this.#current = token
    this.#failedRefreshes = 0
  }

  #isBetter(token: HeldToken): boolean {
    return this.#current === undefined || token.endsAt > this.#current.endsAt
  }
}

function heldToken({ accessToken, lifetimeMs, requestedAt }: IssuedToken, issuedHere: boolean): HeldToken {
  const share = refreshDue.earliest + Math.random() * (refreshDue.latest - refreshDue.earliest)
  return {
    accessToken,
    promise: Promise.resolve(accessToken),
    issuedHere,
    lifetimeMs,
    refreshFrom: requestedAt + lifetimeMs * share,
    endsAt: requestedAt + lifetimeMs,
  }
}

/** A random wait from half the bound to the bound, so that many processes do not repeat at the same time. */
function refreshDelayMs(failures: number, lifetimeMs: number): number {
  const firstMs = Math.min(lifetimeMs * refreshBackoff.first, refreshBackoff.firstAtMostMs)
  const boundMs = backoffMs(failures, { firstMs, maxMs: lifetimeMs * refreshBackoff.longest })
  return boundMs * (0.5 + Math.random() / 2)
}
