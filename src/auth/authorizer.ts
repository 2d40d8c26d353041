/** The Authorization header of subscription calls (docs/service.md, Authentication), by kind of credentials. */
import { ConfigurationError } from '../errors.js'
import type { Deadline } from '../http/deadline.js'
import type { Authorization, MissingToken } from '../http/send.js'
import { accessTokenPattern, basicCredentials, type ClientCredentialsAuth } from './token-request.js'
import {
  type BearerAuthorization,
  bearer,
  type TokenAuthorizer,
  type TokenRequestOptions,
  TokenSource,
} from './token-source.js'

/** User name and password, sent on every subscription call (docs/service.md, Authentication). */
export interface BasicAuth {
  /** The user name, without a colon, which would end it in Basic credentials (RFC 7617 section 2). */
  readonly username: string
  /** The password that belongs to `username`. Never printed: not in errors, logs or `console.log(client)`. */
  readonly password: string
}

/** Access tokens from the caller's function, which also refreshes them (docs/service.md, Authentication). */
export interface ProvidedTokenAuth {
  /**
   * Returns the token without the prefix `Bearer`. Called for every request, and again after a 401. The client's method
   * rejects with an error of this function unchanged.
   */
  readonly getAccessToken: () => string | Promise<string>
}

/** One of the three ways to authenticate (docs/service.md, Authentication). */
export type Auth = ClientCredentialsAuth | BasicAuth | ProvidedTokenAuth

export function authorizerFor(auth: Auth, options: TokenRequestOptions): TokenAuthorizer {
  if ('getAccessToken' in auth) return new ProvidedTokenAuthorizer(() => auth.getAccessToken())
  if ('username' in auth) return new BasicAuthorizer(auth.username, auth.password)
  return new TokenSource(auth, options)
}

/** Tokens from the caller's function, which also caches and refreshes them. */
class ProvidedTokenAuthorizer implements TokenAuthorizer {
  readonly #getAccessToken: () => unknown
  /** Kept, so that each token is checked and encoded once. */
  #last: BearerAuthorization | undefined

  constructor(getAccessToken: () => unknown) {
    this.#getAccessToken = getAccessToken
  }

  async authorize(deadline: Deadline): Promise<BearerAuthorization> {
    const accessToken = await this.accessToken(deadline)
    if (this.#last?.accessToken !== accessToken) this.#last = bearer(accessToken, false)
    return this.#last
  }

  /** Calls the caller's function again; the request is repeated only if the token is different. */
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
