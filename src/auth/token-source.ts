/** Holds the current access token: one request at a time, refreshed ahead of its end (interface.md section 5). */
import pMemoize from 'p-memoize'
import { TimeoutError } from '../errors.js'
import type { Log } from '../logger.js'
import type { SharedTokenCache } from './shared-token-cache.js'
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
  readonly repeat: boolean
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

/** A refresh that takes this many times as long as the last request did, and a bit, is taken for one that hangs. */
const patience = { factor: 2, bitMs: 50 }

/** A token request under way, which everybody joins. */
interface Flight {
  readonly id: number
  readonly startedAt: number
  /** Nobody waits for it: the current token serves meanwhile. */
  readonly background: boolean
}

export class TokenSource {
  readonly #timeoutMs: number
  readonly #shared: SharedTokenCache | undefined
  readonly #log: Log
  readonly #obtain: (flightId: number, budget: TokenRequestBudget) => Promise<HeldToken>
  #current: HeldToken | undefined
  #rejected: string | undefined
  #flight: Flight | undefined
  #flights = 0
  #lastRequestMs = 0
  #failedRefreshes = 0

  constructor({ request, timeoutMs, shared, log }: TokenSourceOptions) {
    this.#timeoutMs = timeoutMs
    this.#shared = shared
    this.#log = log
    const issue = async (_flightId: number, budget: TokenRequestBudget) => {
      const startedAt = performance.now()
      const token = heldToken(await request(budget), true)
      this.#lastRequestMs = performance.now() - startedAt
      return token
    }
    // p-memoize keeps one promise per flight for everybody; its cache is the shared one, asked before each request.
    let adopted: HeldToken | undefined
    this.#obtain = pMemoize(issue, {
      cache: {
        has: async () => {
          adopted = shared && (await this.#adopt(shared))
          return adopted !== undefined
        },
        get: () => adopted,
        set: (_flightId: number, token: HeldToken) => this.#store(token),
        delete: () => false,
      },
    })
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
    const budget = { limitMs: Math.max(limitMs, this.#timeoutMs), repeat: true }
    const joined = this.#flightToJoin()
    try {
      return await this.#fly(budget)
    } catch (error) {
      // A refresh makes one attempt only, and the time of whoever began a flight is not this caller's.
      if (joined?.background || (joined && error instanceof TimeoutError)) return this.#fly(budget)
      throw error
    }
  }

  /** Forgets a token that the service rejected, unless a newer one has taken its place already. */
  invalidate(accessToken: string): void {
    this.#rejected = accessToken
    if (this.#current?.accessToken === accessToken) this.#current = undefined
    void this.#shared?.remove(accessToken)
  }

  #flightToJoin(): Flight | undefined {
    const flight = this.#flight
    if (!flight?.background) return flight
    const age = performance.now() - flight.startedAt
    if (age <= this.#lastRequestMs * patience.factor + patience.bitMs) return flight
    // Left alone rather than aborted: should it come back after all, its token counts.
    this.#flight = undefined
    return undefined
  }

  async #fly(budget: TokenRequestBudget, background = false): Promise<HeldToken> {
    this.#flight ??= { id: ++this.#flights, startedAt: performance.now(), background }
    const flight = this.#flight
    try {
      return await this.#obtain(flight.id, budget)
    } finally {
      if (this.#flight === flight) this.#flight = undefined
    }
  }

  async #refresh(token: HeldToken): Promise<void> {
    token.refreshAt = Number.POSITIVE_INFINITY
    try {
      // Short: who joins it has time left for a request of its own, should this one hang.
      await this.#fly({ limitMs: this.#timeoutMs / 3, repeat: false }, true)
    } catch (error) {
      const delayMs = refreshDelayMs(this.#failedRefreshes++, token.lifetimeMs)
      token.refreshAt = performance.now() + delayMs
      const reason = error instanceof Error ? error.message : typeof error
      const fields = { delayMs: Math.round(delayMs), reason }
      this.#log('warn', fields, 'Access token refresh failed; the old one serves on')
    }
  }

  /** A token that another process put into the shared cache, when it is better than what is here. */
  async #adopt(shared: SharedTokenCache): Promise<HeldToken | undefined> {
    const entry = await shared.read()
    if (entry === undefined || entry.accessToken === this.#rejected) return undefined
    const requestedAt = performance.now() - (entry.lifetimeMs - entry.remainingMs)
    const token = heldToken({ ...entry, requestedAt }, false)
    if (!this.#isBetter(token)) return undefined
    // Due for a refresh itself: fetching a new one now serves every process.
    if (performance.now() >= token.refreshAt) return undefined
    this.#current = token
    return token
  }

  #store(token: HeldToken): void {
    const remainingMs = token.expiresAt - performance.now()
    // Over on arrival: those who waited for it use it once, and nobody else is given it.
    if (remainingMs <= 0 || !this.#isBetter(token)) return
    this.#current = token
    this.#failedRefreshes = 0
    this.#log('info', { expiresInMs: Math.round(remainingMs) }, 'Access token obtained')
    void this.#shared?.write({ accessToken: token.accessToken, lifetimeMs: token.lifetimeMs, remainingMs })
  }

  #isBetter(token: HeldToken): boolean {
    return this.#current === undefined || token.expiresAt > this.#current.expiresAt
  }
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
