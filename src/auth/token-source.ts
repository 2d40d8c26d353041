/** Holds the current access token: one request at a time, refreshed ahead of its end (interface.md section 5). */
import pMemoize from 'p-memoize'
import type { SafeLogger } from '../logger.js'
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

/** `background`: a usable token is at hand, so one failure is not worth repeating at once. */
export type TokenRequestMode = 'foreground' | 'background'

export interface TokenSourceOptions {
  readonly request: (mode: TokenRequestMode) => Promise<IssuedToken>
  readonly shared: SharedTokenCache | undefined
  readonly logger: SafeLogger
}

/**
 * Where in a token's lifetime the refresh falls due: at a random point between 80 and 90 per cent, so that
 * processes that started together do not refresh together. A fraction, so that it suits 5 seconds and 24 hours.
 */
const refreshDue = { earliest: 0.8, latest: 0.9 }

/** Waits after failed background refreshes double from the first bound to the second, both shares of the lifetime. */
const refreshBackoff = { first: 1 / 64, longest: 1 / 16, firstAtMostMs: 1_000 }

export class TokenSource {
  readonly #shared: SharedTokenCache | undefined
  readonly #logger: SafeLogger
  readonly #obtain: (mode: TokenRequestMode) => Promise<HeldToken>
  #current: HeldToken | undefined
  #rejected: string | undefined
  #refreshing = false
  #failedRefreshes = 0

  constructor({ request, shared, logger }: TokenSourceOptions) {
    this.#shared = shared
    this.#logger = logger
    // p-memoize keeps one flight for everybody; its cache is the shared one, asked before each request.
    let adopted: HeldToken | undefined
    this.#obtain = pMemoize(async (mode: TokenRequestMode) => heldToken(await request(mode), true), {
      cacheKey: () => 'access token',
      cache: {
        has: async () => {
          adopted = shared && (await this.#adopt(shared))
          return adopted !== undefined
        },
        get: () => adopted,
        set: (_key: string, token: HeldToken) => this.#store(token),
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

  /** Waits for a token, together with everybody else who needs one. */
  async next(): Promise<HeldToken> {
    const joinsRefresh = this.#refreshing
    try {
      return await this.#obtain('foreground')
    } catch (error) {
      // A background refresh gives up after one attempt; who waits for a token deserves all of them.
      if (!joinsRefresh) throw error
      return this.#obtain('foreground')
    }
  }

  /** Forgets a token that the service rejected, unless a newer one has taken its place already. */
  invalidate(accessToken: string): void {
    this.#rejected = accessToken
    if (this.#current?.accessToken === accessToken) this.#current = undefined
    void this.#shared?.remove(accessToken)
  }

  async #refresh(token: HeldToken): Promise<void> {
    token.refreshAt = Number.POSITIVE_INFINITY
    this.#refreshing = true
    try {
      await this.#obtain('background')
      this.#failedRefreshes = 0
    } catch (error) {
      const delayMs = refreshDelayMs(this.#failedRefreshes++, token.lifetimeMs)
      token.refreshAt = performance.now() + delayMs
      const reason = error instanceof Error ? error.message : typeof error
      this.#logger.warn(
        { delayMs: Math.round(delayMs), reason },
        'Access token refresh failed; the old one serves on',
      )
    } finally {
      this.#refreshing = false
    }
  }

  /** A token that another process put into the shared cache, when it is better than what is here. */
  async #adopt(shared: SharedTokenCache): Promise<HeldToken | undefined> {
    const entry = await shared.read()
    if (entry === undefined || entry.accessToken === this.#rejected) return undefined
    const requestedAt = performance.now() - (entry.lifetimeMs - entry.remainingMs)
    const token = heldToken({ ...entry, requestedAt }, false)
    if (this.#current !== undefined && token.expiresAt <= this.#current.expiresAt) return undefined
    // Due for a refresh itself: fetching a new one now serves every process.
    if (performance.now() >= token.refreshAt) return undefined
    this.#current = token
    return token
  }

  #store(token: HeldToken): void {
    const remainingMs = token.expiresAt - performance.now()
    // Over on arrival: those who waited for it use it once, and nobody else is given it.
    if (remainingMs <= 0) return
    this.#current = token
    this.#logger.info({ expiresInMs: Math.round(remainingMs) }, 'Access token obtained')
    void this.#shared?.write({ accessToken: token.accessToken, lifetimeMs: token.lifetimeMs, remainingMs })
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
