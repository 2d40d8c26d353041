/** The Authorization header of subscription calls (docs/service.md, Authentication), by kind of credentials. */
import { ConfigurationError } from '../errors.js'
import type { Deadline } from '../http/deadline.js'
import type { Authorization, Authorizer, MissingToken, RetryPolicy, SendOptions } from '../http/send.js'
import { SharedToken } from './shared-token.js'
import {
  accessTokenPattern,
  basicCredentials,
  type ClientCredentialsAuth,
  type Gateway,
  TokenEndpoint,
} from './token-request.js'
import { TokenSource } from './token-source.js'

/** User name and password, sent on every subscription call (docs/service.md, Authentication). */
export interface BasicAuth {
  /** The user name; without a colon, which ends a user name in Basic credentials (RFC 7617 section 2). */
  readonly username: string
  /** The password that belongs to `username`. Never printed: not in errors, logs or `console.log(client)`. */
  readonly password: string
}

/** Access tokens from the caller's function, which also refreshes them (docs/service.md, Authentication). */
export interface ProvidedTokenAuth {
  /**
   * Returns the token alone, without the prefix `Bearer`. Called for every request, and again after a 401. An error
   * of this function reaches the caller of the client's method unchanged.
   */
  readonly getAccessToken: () => string | Promise<string>
}

/** One of the three ways to authenticate (docs/service.md, Authentication). */
export type Auth = ClientCredentialsAuth | BasicAuth | ProvidedTokenAuth

/** An authorizer that also hands out its access token. */
export interface TokenAuthorizer extends Authorizer {
  /** The held access token, as a promise that exists already; `undefined` if a token must be waited for. */
  heldAccessToken(): Promise<string> | undefined
  accessToken(deadline: Deadline): Promise<string>
}

/** How token requests are sent: by the client's options and not by a call's, because they serve many calls. */
export interface TokenRequestOptions extends Pick<SendOptions, 'transport' | 'log'> {
  readonly retry: RetryPolicy
  readonly timeoutMs: number
  readonly gateway: Gateway | undefined
}

export function authorizerFor(auth: Auth, options: TokenRequestOptions): TokenAuthorizer {
  if ('getAccessToken' in auth) return new ProvidedTokenAuthorizer(() => auth.getAccessToken())
  if ('username' in auth) return new BasicAuthorizer(auth.username, auth.password)
  return new ClientCredentialsAuthorizer(auth, options)
}

interface BearerAuthorization extends Authorization {
  readonly accessToken: string
  /** Issued during this call: if the service rejects it, a newer token would be rejected, too. */
  readonly isFresh: boolean
}

function bearer(accessToken: string, isFresh: boolean): BearerAuthorization {
  return { header: `Bearer ${accessToken}`, secrets: [accessToken], accessToken, isFresh }
}

/** One authorization per token rather than per call: its header is checked and encoded once. */
class HeldBearer {
  #last: BearerAuthorization | undefined

  of(accessToken: string): BearerAuthorization {
    if (this.#last?.accessToken !== accessToken) this.#last = bearer(accessToken, false)
    return this.#last
  }
}

/** Client credentials: tokens are requested, held and refreshed by a {@link TokenSource}. */
class ClientCredentialsAuthorizer implements TokenAuthorizer {
  readonly #source: TokenSource
  readonly #held = new HeldBearer()

  constructor(
    auth: ClientCredentialsAuth,
    { gateway, log, retry, timeoutMs, transport }: TokenRequestOptions,
  ) {
    const endpoint = new TokenEndpoint(auth, { transport, log, gateway })
    const { clientId, scope = '', tokenCache } = auth
    // Two clients share a token only if they would request the same one.
    const key = `notification-subscriber ${JSON.stringify([endpoint.address.url, clientId, scope])}`
    const shared = tokenCache && new SharedToken(tokenCache, key, log)
    this.#source = new TokenSource({ endpoint, retry, timeoutMs, shared, log })
  }

  authorize(deadline: Deadline): BearerAuthorization | Promise<BearerAuthorization> {
    const held = this.#source.current()
    return held === undefined ? this.#authorizeAnew(deadline) : this.#held.of(held.accessToken)
  }

  async reauthorize(
    rejected: BearerAuthorization,
    deadline: Deadline,
  ): Promise<BearerAuthorization | undefined> {
    this.#source.invalidate(rejected.accessToken)
    return rejected.isFresh ? undefined : this.authorize(deadline)
  }

  missing(): MissingToken {
    return this.#source.missing()
  }

  heldAccessToken(): Promise<string> | undefined {
    return this.#source.current()?.promise
  }

  async accessToken(deadline: Deadline): Promise<string> {
    const token = this.#source.current() ?? (await this.#next(deadline))
    return token.accessToken
  }

  async #authorizeAnew(deadline: Deadline): Promise<BearerAuthorization> {
    const next = await this.#next(deadline)
    return bearer(next.accessToken, next.issuedHere)
  }

  #next(deadline: Deadline) {
    return deadline.waitFor(this.#source.next(deadline.endsAt - performance.now()), 'token')
  }
}

/** Tokens from the caller's function, which also caches and refreshes them. */
class ProvidedTokenAuthorizer implements TokenAuthorizer {
  readonly #getAccessToken: () => unknown
  readonly #held = new HeldBearer()

  constructor(getAccessToken: () => unknown) {
    this.#getAccessToken = getAccessToken
  }

  async authorize(deadline: Deadline): Promise<BearerAuthorization> {
    return this.#held.of(await this.accessToken(deadline))
  }

  /** Calls the caller's function once more; the call is repeated only if the new token is another one. */
  async reauthorize(
    rejected: BearerAuthorization,
    deadline: Deadline,
  ): Promise<BearerAuthorization | undefined> {
    const next = await this.authorize(deadline)
    return next.accessToken === rejected.accessToken ? undefined : next
  }

  missing(): MissingToken {
    const words =
      '`auth.getAccessToken` had not returned a token. See what it waits for, or allow more time with `timeoutMs`.'
    return { words, lastFailure: undefined }
  }

  heldAccessToken(): undefined {
    return undefined
  }

  async accessToken(deadline: Deadline): Promise<string> {
    const provided = (async () => this.#getAccessToken())()
    const token = await deadline.waitFor(provided, 'token')
    if (typeof token === 'string' && accessTokenPattern.test(token)) return token
    const message = whatIsWrongWith(token)
    throw new ConfigurationError(`auth.getAccessToken ${message}.`, {
      issues: [{ path: ['auth', 'getAccessToken'], message }],
    })
  }
}

/** Why a value from `getAccessToken` is no token. */
function whatIsWrongWith(token: unknown): string {
  if (typeof token !== 'string') return `must return the token as a string, not ${describe(token)}`
  if (token === '') return 'must return a token: what it returned is empty'
  if (/^bearer\s/i.test(token)) return 'must return the token alone: leave out the prefix `Bearer`'
  return 'must return a token of visible ASCII characters: nothing else can be sent in a header'
}

function describe(value: unknown): string {
  if (value === null || value === undefined) return String(value)
  return typeof value === 'object' ? 'an object that holds it' : `a ${typeof value}`
}

/** User name and password on every subscription call; there are no tokens. */
class BasicAuthorizer implements TokenAuthorizer {
  readonly #authorization: Authorization

  constructor(username: string, password: string) {
    const credentials = basicCredentials(username, password, 'raw')
    this.#authorization = { header: `Basic ${credentials}`, secrets: [credentials, password] }
  }

  authorize(): Authorization {
    return this.#authorization
  }

  async reauthorize(): Promise<undefined> {
    return undefined
  }

  heldAccessToken(): undefined {
    return undefined
  }

  async accessToken(): Promise<string> {
    const message = 'is a user name and password: there is no access token to give'
    throw new ConfigurationError(
      `auth ${message}. Configure client credentials or \`getAccessToken\` instead.`,
      { issues: [{ path: ['auth'], message }] },
    )
  }
}
