/** Holds the current access token: one request at a time, refreshed ahead of its end (docs/client.md, Tokens). */
import pMemoize from 'p-memoize'
import { TimeoutError } from '../errors.js'
import type { Log } from '../logger.js'
import type { SharedToken, SharedTokenCache } from './shared-token-cache.js'
import type { IssuedToken } from './token-request.js'

export interface HeldToken {
  readonly accessToken: string
  /** The same token as a promise that is made once: the hot path hands it out and allocates nothing. */
  readonly promise: Promise<string>
  /** Whether this process asked for it itself. One from the shared cache may have been rejected elsewhere. */
  readonly issuedHere: boolean
  readonly lifetimeMs: number
  /** Monotonic time from which a refresh is due; moves when a refresh starts or fails. */
  refreshAt: number
  /** Monotonic time at which the token is over. */
  readonly expiresAt: number
}

/** How much a token request may take. */
export interface TokenRequestBudget {
  readonly limitMs: number
  /** Whether failed attempts are repeated within the limit. */
  readonly mayRepeat: boolean
}

export interface TokenSourceOptions {
  readonly request: (budget: TokenRequestBudget) => Promise<IssuedToken>
  /** Limit for a request that nobody waits for, in milliseconds. */
  readonly timeoutMs: number
  readonly shared: SharedTokenCache | undefined
  readonly log: Log
}

/**
 * Where in a token's lifetime the refresh falls due: at a random point between 80 and 90 per cent, so that
 * processes that started together do not refresh together. A fraction, so that it suits 5 seconds and 24 hours.
 */
const refreshDue = { earliest: 0.8, latest: 0.9 }

/** Waits after failed background refreshes double from the first bound to the second, both shares of the lifetime. */
const refreshBackoff = { first: 1 / 64, longest: 1 / 16, firstAtMostMs: 1_000 }

/** A refresh slower than twice the last one plus 50 ms counts as hung. */
const hung = { factor: 2, graceMs: 50 }

/** How much of its time a request waits for another process that requests a token, before it goes on alone. */
const waitForOthers = 1 / 3

/** A token request that is not answered yet: everybody who needs a token joins it. */
interface PendingRequest {
  readonly startedAt: number
  readonly limitMs: number
  /** A refresh: nobody waits for it, because the current token serves meanwhile. It makes one attempt only. */
  readonly isBackground: boolean
}

export class TokenSource {
  readonly #request: (budget: TokenRequestBudget) => Promise<IssuedToken>
  readonly #timeoutMs: number
  readonly #shared: SharedTokenCache | undefined
  readonly #log: Log
  /** One promise for all who come with the same pending request. */
  readonly #obtainOnce = pMemoize((pending: PendingRequest) => this.#obtain(pending), { cache: false })
  #current: HeldToken | undefined
  #rejected: string | undefined
  #pending: PendingRequest | undefined
  #lastRequestMs = 0
  #failedRefreshes = 0

  constructor({ request, timeoutMs, shared, log }: TokenSourceOptions) {
    this.#request = request
    this.#timeoutMs = timeoutMs
    this.#shared = shared
    this.#log = log
  }

  /** The current token without waiting, if there is one; starts a background refresh when that is due. */
  current(): HeldToken | undefined {
    const token = this.#current
    if (token === undefined) return undefined
    const now = performance.now()
    if (now >= token.expiresAt) return undefined
    if (now >= token.refreshAt) void this.#refresh(token)
    return token
  }

  /**
   * Waits for a token, together with everybody else who needs one.
   *
   * @param limitMs - how long this caller would wait for a request of its own
   */
  async next(limitMs: number): Promise<HeldToken> {
    const own = { limitMs: Math.max(limitMs, this.#timeoutMs), isBackground: false }
    const joined = this.#pendingToJoin()
    try {
      return await this.#joinOrBegin(own)
    } catch (error) {
      // We joined somebody else's request and it failed on their terms: try once on ours.
      if (joined?.isBackground || (joined && error instanceof TimeoutError)) return this.#joinOrBegin(own)
      throw error
    }
  }

  /** Forgets a token that the service rejected, unless a newer one has taken its place already. */
  invalidate(accessToken: string): void {
    this.#rejected = accessToken
    if (this.#current?.accessToken === accessToken) this.#current = undefined
    this.#shared?.remove(accessToken)
  }

  #pendingToJoin(): PendingRequest | undefined {
    const pending = this.#pending
    if (!pending?.isBackground) return pending
    const ageMs = performance.now() - pending.startedAt
    if (ageMs <= this.#lastRequestMs * hung.factor + hung.graceMs) return pending
    // Left alone rather than aborted: should it be answered after all, its token counts.
    this.#pending = undefined
    return undefined
  }

  async #joinOrBegin(own: Pick<PendingRequest, 'limitMs' | 'isBackground'>): Promise<HeldToken> {
    this.#pending ??= { startedAt: performance.now(), ...own }
    const pending = this.#pending
    try {
      return await this.#obtainOnce(pending)
    } finally {
      if (this.#pending === pending) this.#pending = undefined
    }
  }

  async #refresh(token: HeldToken): Promise<void> {
    token.refreshAt = Number.POSITIVE_INFINITY
    try {
      // A third of the time, so that a caller who joins has time left for a request of its own, should this one hang.
      await this.#joinOrBegin({ limitMs: this.#timeoutMs / 3, isBackground: true })
    } catch (error) {
      const delayMs = refreshDelayMs(this.#failedRefreshes++, token.lifetimeMs)
      token.refreshAt = performance.now() + delayMs
      const reason = error instanceof Error ? error.message : typeof error
      const fields = { delayMs: Math.round(delayMs), reason }
      this.#log('warn', fields, 'Access token refresh failed; the old one serves on')
    }
  }

  /** Obtains a token: another process's, or one that is requested here. */
  async #obtain(pending: PendingRequest): Promise<HeldToken> {
    const shared = this.#shared
    if (shared === undefined) return this.#issue(pending)
    const found = await shared.find((stored) => this.#acceptable(stored), pending.limitMs * waitForOthers)
    if (found.kind === 'token') {
      this.#hold(found.token)
      return found.token
    }
    let shareable: SharedToken | undefined
    try {
      const issued = await this.#issue(pending)
      // A token that is not held was over on arrival, or ends before the one in the store.
      if (issued === this.#current) shareable = sharedToken(issued)
      return issued
    } finally {
      shared.endTurn(found.lock, shareable)
    }
  }

  async #issue({ limitMs, isBackground }: PendingRequest): Promise<HeldToken> {
    const startedAt = performance.now()
    const token = heldToken(await this.#request({ limitMs, mayRepeat: !isBackground }), true)
    this.#lastRequestMs = performance.now() - startedAt
    const remainingMs = token.expiresAt - performance.now()
    // Over on arrival: those who waited for it use it once, and nobody else is given it.
    if (remainingMs > 0 && this.#isBetter(token)) {
      this.#hold(token)
      this.#log('info', { expiresInMs: Math.round(remainingMs) }, 'Access token obtained')
    }
    return token
  }

  /** A token that another process stored, when it is better than what is here. */
  #acceptable({ accessToken, lifetimeMs, remainingMs }: SharedToken): HeldToken | undefined {
    // The same token read back may seem to end a moment later, by the rounding of the wall clock.
    if (accessToken === this.#rejected || accessToken === this.#current?.accessToken) return undefined
    const requestedAt = performance.now() - (lifetimeMs - remainingMs)
    const token = heldToken({ accessToken, lifetimeMs, requestedAt }, false)
    // A token that is due for a refresh is left alone: fetching a new one now serves every process.
    return this.#isBetter(token) && performance.now() < token.refreshAt ? token : undefined
  }

  #hold(token: HeldToken): void {
    this.#current = token
    this.#failedRefreshes = 0
  }

  #isBetter(token: HeldToken): boolean {
    return this.#current === undefined || token.expiresAt > this.#current.expiresAt
  }
}

function sharedToken({ accessToken, lifetimeMs, expiresAt }: HeldToken): SharedToken {
  return { accessToken, lifetimeMs, remainingMs: expiresAt - performance.now() }
}

function heldToken({ accessToken, lifetimeMs, requestedAt }: IssuedToken, issuedHere: boolean): HeldToken {
  const share = refreshDue.earliest + Math.random() * (refreshDue.latest - refreshDue.earliest)
  return {
    accessToken,
    promise: Promise.resolve(accessToken),
    issuedHere,
    lifetimeMs,
    refreshAt: requestedAt + lifetimeMs * share,
    expiresAt: requestedAt + lifetimeMs,
  }
}

/** Between half of the bound and the bound, so that neither one process hammers nor all march in step. */
function refreshDelayMs(failuresBefore: number, lifetimeMs: number): number {
  const first = Math.min(lifetimeMs * refreshBackoff.first, refreshBackoff.firstAtMostMs)
  const bound = Math.min(first * 2 ** failuresBefore, lifetimeMs * refreshBackoff.longest)
  return bound * (0.5 + Math.random() / 2)
}
