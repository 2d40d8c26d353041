/** The Authorization header of subscription calls, by kind of credentials (docs/client.md, Tokens). */
import pMemoize from 'p-memoize'
import { TimeoutError } from '../errors.js'
import type { Deadline } from '../http/deadline.js'
import { type RetryOptions, retryPolicy } from '../http/retry.js'
import type { Authorization, Authorizer } from '../http/send.js'
import { configurationError } from '../shared/validation.js'
import type { Words } from '../shared/words.js'
import type { Auth, ClientCredentialsAuth, ProvidedTokenAuth } from './credentials.js'
import { SharedToken } from './shared-token.js'
import {
  accessTokenPattern,
  basicCredentials,
  type IssuedToken,
  TokenEndpoint,
  type TokenRequestOptions,
} from './token-request.js'

export function authorizerFor(auth: Auth, options: TokenRequestOptions): Authorizer {
  if ('getAccessToken' in auth) return providedAuthorizer(auth)
  if (!('username' in auth)) return new RequestedTokens(auth, options)
  const credentials = basicCredentials(auth.username, auth.password)
  const authorization = { header: `Basic ${credentials}`, secrets: [credentials, auth.password] }
  return { authorize: () => authorization }
}

/** @throws `ConfigurationError` if the credentials are a user name and a password */
export async function accessTokenOf(authorizer: Authorizer, deadline: Deadline): Promise<string> {
  const { accessToken } = await authorizer.authorize(deadline)
  if (accessToken !== undefined) return accessToken
  const message = 'is a user name and password: configure client credentials or `getAccessToken` instead'
  throw noAccessToken([{ path: ['auth'], message }])
}

const noAccessToken = configurationError('There is no access token')

function bearer(accessToken: string, expiresAt?: number): Authorization {
  return { header: `Bearer ${accessToken}`, secrets: [accessToken], accessToken, expiresAt }
}

/** Tokens from the caller's function, which also caches and refreshes them. */
function providedAuthorizer(auth: ProvidedTokenAuth): Authorizer {
  async function authorize(deadline: Deadline): Promise<Authorization> {
    const provided = (async (): Promise<unknown> => auth.getAccessToken())()
    const words: Words = ({ orMoreTime }) =>
      `\`auth.getAccessToken\` had not returned a token. See what the function waits for${orMoreTime}.`
    const token = await deadline.waitFor(provided, 'token', { timeoutReason: () => ({ words }) })
    if (typeof token === 'string' && accessTokenPattern.test(token)) return bearer(token)
    const message =
      'must return the token alone, as text of visible ASCII characters: without `Bearer`, and not in an object'
    throw noAccessToken([{ path: ['auth', 'getAccessToken'], message }])
  }
  return {
    authorize,
    /** Calls the caller's function again; the request is repeated only if the token is different. */
    async reauthorize(rejected, deadline) {
      const next = await authorize(deadline)
      return next.header === rejected.header ? undefined : next
    },
  }
}

interface HeldToken extends IssuedToken {
  /** The same token as one promise: the hot path returns it and allocates nothing. */
  readonly promise: Promise<string>
  /** Made once per token, because every request needs it. */
  readonly authorization: Authorization
  /** When a refresh is due; changes when a refresh starts or fails. */
  refreshAt: number
}

/** When a refresh is due, as a share of the lifetime: random, so that processes which start together do not refresh together. */
const refreshDue = [0.8, 0.9] as const

/** The wait after a failed refresh, as a share of the lifetime: random, for the same reason. */
const refreshWait = [1 / 64, 1 / 32] as const

/** For p-memoize: calls at the same time share one run, whatever their time limits; no result is kept. */
const inFlightOnly = { cache: false, cacheKey: () => undefined } as const

/** Client credentials: tokens are requested, held and refreshed. */
class RequestedTokens implements Authorizer {
  readonly #endpoint: TokenEndpoint
  readonly #options: TokenRequestOptions
  readonly #shared: SharedToken | undefined
  /** Calls at the same time share one token request. */
  readonly #obtainOnce = pMemoize((timeoutMs: number) => this.#obtain(timeoutMs), inFlightOnly)
  /** One attempt, because no call waits for it: a failed refresh is repeated when the next refresh is due. */
  readonly #refreshOnce = pMemoize(
    (timeoutMs: number) => this.#obtain(timeoutMs, { maxAttempts: 1 }),
    inFlightOnly,
  )
  #current: HeldToken | undefined
  #rejected: string | undefined

  constructor(auth: ClientCredentialsAuth, options: TokenRequestOptions) {
    this.#endpoint = new TokenEndpoint(auth, options)
    this.#options = options
    const { clientId, scope = '', tokenCache } = auth
    // Two clients share a token only if they would request the same one.
    const key = `notification-subscriber ${JSON.stringify([this.#endpoint.address.url, clientId, scope])}`
    this.#shared = tokenCache && new SharedToken(tokenCache, key, options.log)
  }

  authorize(deadline: Deadline): Authorization | Promise<Authorization> {
    return this.#held()?.authorization ?? this.#next(deadline).then(({ authorization }) => authorization)
  }

  async reauthorize(
    { accessToken, expiresAt = Number.POSITIVE_INFINITY }: Authorization,
    deadline: Deadline,
  ): Promise<Authorization> {
    // The token has expired on its way, such as in a queue of the caller's `fetch`.
    if (Date.now() >= expiresAt) return this.authorize(deadline)
    this.#rejected = accessToken
    // A newer token may have replaced the rejected one.
    if (this.#current?.accessToken === accessToken) this.#current = undefined
    return this.authorize(deadline)
  }

  heldAccessToken(): Promise<string> | undefined {
    return this.#held()?.promise
  }

  /** The current token without waiting, if there is one; starts a background refresh when that is due. */
  #held(): HeldToken | undefined {
    const token = this.#current
    const now = Date.now()
    if (token === undefined || now >= token.expiresAt) return undefined
    if (now >= token.refreshAt) void this.#refresh(token)
    return token
  }

  /** Waits for a token, together with all other calls. */
  #next(deadline: Deadline): Promise<HeldToken> {
    const token = this.#obtainOnce(deadline.timeoutMs).catch((error: unknown) => {
      // The time limit was that of the call which began the request. This call has time left.
      if (error instanceof TimeoutError && !deadline.aborted) return this.#obtainOnce(deadline.timeoutMs)
      throw error
    })
    return deadline.waitFor(token, 'token', { timeoutReason: () => this.#endpoint.timeoutReason() })
  }

  async #refresh(token: HeldToken): Promise<void> {
    token.refreshAt = Number.POSITIVE_INFINITY
    try {
      await this.#refreshOnce(this.#options.timeoutMs)
    } catch (err) {
      const delayMs = token.lifetimeMs * randomIn(refreshWait)
      token.refreshAt = Date.now() + delayMs
      const fields = { delayMs: Math.round(delayMs), err }
      const message = 'Access token refresh failed; the current one stays in use'
      this.#options.log('warn', { event: 'token.refresh-failed', ...fields }, message)
    }
  }

  /** Obtains a token: from the store, or by a request. */
  async #obtain(timeoutMs: number, retry?: RetryOptions): Promise<HeldToken> {
    const stored = await this.#shared?.read()
    if (stored !== undefined && stored.accessToken !== this.#rejected) {
      const token = heldToken(stored)
      // A token that is due for a refresh is not used: a new token serves every process.
      if (this.#lastsLonger(token) && Date.now() < token.refreshAt) {
        this.#current = token
        return token
      }
    }
    const issued = await this.#endpoint.requestToken({
      timeoutMs,
      retry: retryPolicy(retry, this.#options.retry),
    })
    const token = heldToken(issued)
    const remainingMs = token.expiresAt - Date.now()
    // A token that is expired on arrival serves only the calls that waited for it.
    if (remainingMs > 0 && this.#lastsLonger(token)) {
      this.#current = token
      this.#shared?.write(issued)
      const expiresInMs = Math.round(remainingMs)
      this.#options.log('info', { event: 'token.obtained', expiresInMs }, 'Access token obtained')
    }
    return token
  }

  #lastsLonger(token: HeldToken): boolean {
    return this.#current === undefined || token.expiresAt > this.#current.expiresAt
  }
}

function heldToken(issued: IssuedToken): HeldToken {
  const { accessToken, expiresAt, lifetimeMs } = issued
  return {
    ...issued,
    promise: Promise.resolve(accessToken),
    authorization: bearer(accessToken, Date.now() < expiresAt ? expiresAt : undefined),
    refreshAt: expiresAt - lifetimeMs * (1 - randomIn(refreshDue)),
  }
}

function randomIn([least, most]: readonly [number, number]): number {
  return least + Math.random() * (most - least)
}
