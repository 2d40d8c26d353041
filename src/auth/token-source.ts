/** Holds the current access token: one request at a time, and a refresh before the token ends (docs/client.md, Tokens). */
import pMemoize from 'p-memoize'
import { TimeoutError } from '../errors.js'
import type { Deadline } from '../http/deadline.js'
import type { Authorization, Authorizer, MissingToken, RetryPolicy, SendOptions } from '../http/send.js'
import type { Log } from '../logger.js'
import { SharedToken, type StoredToken } from './shared-token.js'
import { type ClientCredentialsAuth, type Gateway, type IssuedToken, TokenEndpoint } from './token-request.js'

/** An authorizer that also returns its access token. */
export interface TokenAuthorizer extends Authorizer {
  /** The held access token, as an existing promise; `undefined` if the caller must wait for a token. */
  heldAccessToken(): Promise<string> | undefined
  accessToken(deadline: Deadline): Promise<string>
}

export interface BearerAuthorization extends Authorization {
  readonly accessToken: string
  /** Issued during this call: if the service rejects it, a newer token would be rejected, too. */
  readonly isFresh: boolean
}

export function bearer(accessToken: string, isFresh: boolean): BearerAuthorization {
  return { header: `Bearer ${accessToken}`, secrets: [accessToken], accessToken, isFresh }
}

/** How token requests are sent: with the client's options, not a call's, because they serve many calls. */
export interface TokenRequestOptions extends Pick<SendOptions, 'transport' | 'log'> {
  readonly retry: RetryPolicy
  readonly timeoutMs: number
  readonly gateway: Gateway | undefined
}

interface HeldToken {
  readonly accessToken: string
  /** The same token as one promise: the hot path returns it and allocates nothing. */
  readonly promise: Promise<string>
  /** Made once per token, so that its header is checked and encoded once. */
  readonly authorization: BearerAuthorization
  /** Whether this process requested the token. A token from the shared store may have been rejected elsewhere. */
  readonly issuedHere: boolean
  readonly lifetimeMs: number
  /** When a refresh is due, on the monotonic clock; changes when a refresh starts or fails. */
  refreshFrom: number
  /** When the token expires, on the monotonic clock. */
  readonly endsAt: number
}

/**
 * When a refresh is due, as a share of the lifetime: random between 80 and 90 per cent, so that processes that started
 * together do not refresh together.
 */
const refreshDue = { earliest: 0.8, latest: 0.9 }

/** The wait after a failed refresh, as a share of the lifetime: random, for the same reason. */
const refreshWait = { shortest: 1 / 64, longest: 1 / 32 }

/** What to request: a token within so many milliseconds, or a refresh, for which no call waits. */
type Asked = number | 'refresh'

/** Client credentials: tokens are requested, held and refreshed. */
export class TokenSource implements TokenAuthorizer {
  readonly #endpoint: TokenEndpoint
  readonly #retry: RetryPolicy
  readonly #timeoutMs: number
  readonly #shared: SharedToken | undefined
  readonly #log: Log
  /** Equal calls share the promise of the request in flight. */
  readonly #obtainOnce = pMemoize((asked: Asked) => this.#obtain(asked), { cache: false })
  #current: HeldToken | undefined
  #rejected: string | undefined

  constructor(auth: ClientCredentialsAuth, options: TokenRequestOptions) {
    const { log, retry, timeoutMs } = options
    this.#endpoint = new TokenEndpoint(auth, options)
    this.#retry = retry
    this.#timeoutMs = timeoutMs
    this.#log = log
    const { clientId, scope = '', tokenCache } = auth
    // Two clients share a token only if they would request the same one.
    const key = `notification-subscriber ${JSON.stringify([this.#endpoint.address.url, clientId, scope])}`
    this.#shared = tokenCache && new SharedToken(tokenCache, key, log)
  }

  authorize(deadline: Deadline): BearerAuthorization | Promise<BearerAuthorization> {
    return this.#held()?.authorization ?? this.#authorizeAnew(deadline)
  }

  async reauthorize(
    { accessToken, isFresh }: BearerAuthorization,
    deadline: Deadline,
  ): Promise<BearerAuthorization | undefined> {
    this.#rejected = accessToken
    // A newer token may have replaced it.
    if (this.#current?.accessToken === accessToken) this.#current = undefined
    this.#shared?.remove(accessToken)
    return isFresh ? undefined : this.authorize(deadline)
  }

  missing(): MissingToken {
    return this.#endpoint.missing()
  }

  heldAccessToken(): Promise<string> | undefined {
    return this.#held()?.promise
  }

  async accessToken(deadline: Deadline): Promise<string> {
    const token = this.#held() ?? (await this.#next(deadline))
    return token.accessToken
  }

  async #authorizeAnew(deadline: Deadline): Promise<BearerAuthorization> {
    const { accessToken, issuedHere } = await this.#next(deadline)
    return bearer(accessToken, issuedHere)
  }

  /** The current token without waiting, if there is one; starts a background refresh when that is due. */
  #held(): HeldToken | undefined {
    const token = this.#current
    if (token === undefined) return undefined
    const now = performance.now()
    if (now >= token.endsAt) return undefined
    if (now >= token.refreshFrom) void this.#refresh(token)
    return token
  }

  /** Waits for a token, together with all other calls that allow as much time. */
  #next(deadline: Deadline): Promise<HeldToken> {
    const limitMs = Math.max(deadline.timeoutMs, this.#timeoutMs)
    const token = this.#obtainOnce(limitMs).catch((error: unknown) => {
      // The time limit of an earlier call has ended; this call has time left.
      if (error instanceof TimeoutError && !deadline.aborted) return this.#obtainOnce(limitMs)
      throw error
    })
    return deadline.waitFor(token, 'token')
  }

  async #refresh(token: HeldToken): Promise<void> {
    token.refreshFrom = Number.POSITIVE_INFINITY
    try {
      await this.#obtainOnce('refresh')
    } catch (err) {
      const { shortest, longest } = refreshWait
      const delayMs = token.lifetimeMs * randomBetween(shortest, longest)
      token.refreshFrom = performance.now() + delayMs
      const fields = { delayMs: Math.round(delayMs), err }
      const message = 'Access token refresh failed; the current one stays in use'
      this.#log('warn', { event: 'token.refresh-failed', ...fields }, message)
    }
  }

  /** Obtains a token: from the store, or by a request. */
  async #obtain(asked: Asked): Promise<HeldToken> {
    const stored = await this.#shared?.read()
    const adopted = stored && this.#adoptable(stored)
    if (adopted !== undefined) {
      this.#current = adopted
      return adopted
    }
    const issued = await this.#endpoint.requestToken(
      asked === 'refresh'
        ? // The next refresh is the repeat.
          { timeoutMs: this.#timeoutMs, retry: { ...this.#retry, maxAttempts: 1 } }
        : { timeoutMs: asked, retry: this.#retry },
    )
    const token = heldToken(issued, true)
    const remainingMs = token.endsAt - performance.now()
    // A token that is expired on arrival serves only the calls that waited for it.
    if (remainingMs > 0 && this.#isBetter(token)) {
      this.#current = token
      const { accessToken, lifetimeMs } = token
      this.#shared?.write({ accessToken, lifetimeMs, remainingMs })
      const expiresInMs = Math.round(remainingMs)
      this.#log('info', { event: 'token.obtained', expiresInMs }, 'Access token obtained')
    }
    return token
  }

  /** The token that another process stored, if it expires later than the current one. */
  #adoptable({ accessToken, lifetimeMs, remainingMs }: StoredToken): HeldToken | undefined {
    // Read back, the current token may seem to expire later, because the wall clock is rounded.
    if (accessToken === this.#rejected || accessToken === this.#current?.accessToken) return undefined
    const requestedAt = performance.now() - (lifetimeMs - remainingMs)
    const token = heldToken({ accessToken, lifetimeMs, requestedAt }, false)
    // A stored token that is due for a refresh is not used: a new one serves every process.
    return this.#isBetter(token) && performance.now() < token.refreshFrom ? token : undefined
  }

  #isBetter(token: HeldToken): boolean {
    return this.#current === undefined || token.endsAt > this.#current.endsAt
  }
}

function heldToken({ accessToken, lifetimeMs, requestedAt }: IssuedToken, issuedHere: boolean): HeldToken {
  const { earliest, latest } = refreshDue
  return {
    accessToken,
    promise: Promise.resolve(accessToken),
    authorization: bearer(accessToken, false),
    issuedHere,
    lifetimeMs,
    refreshFrom: requestedAt + lifetimeMs * randomBetween(earliest, latest),
    endsAt: requestedAt + lifetimeMs,
  }
}

function randomBetween(least: number, most: number): number {
  return least + Math.random() * (most - least)
}
