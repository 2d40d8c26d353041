/** The three ways to authenticate, and the authorizer that carries each out. */
import { Deadline } from '../http/deadline.js'
import { noRetries } from '../http/retry.js'
import type { SendOptions } from '../http/send.js'
import { type Authorizer, BasicAuthorizer, ProvidedTokenAuthorizer, TokenAuthorizer } from './authorizer.js'
import { SharedTokenCache } from './shared-token-cache.js'
import { type ClientCredentialsAuth, requestAccessToken, tokenRequest } from './token-request.js'
import { type TokenRequestBudget, TokenSource } from './token-source.js'

/** User name and password, sent on every subscription call (docs/service.md, Authentication). */
export interface BasicAuth {
  /** The user name; without a colon, which ends a user name in Basic credentials (RFC 7617 section 2). */
  readonly username: string
  /** The password that belongs to `username`. Never printed: not in errors, logs or `console.log(client)`. */
  readonly password: string
}

/** Access tokens from the caller, who also keeps them fresh (docs/service.md, Authentication). */
export interface ProvidedTokenAuth {
  /**
   * Returns the token alone, without the prefix `Bearer`. Called for every request, and again after a 401. What this
   * function throws reaches the caller of the client's method as it is.
   */
  readonly getAccessToken: () => string | Promise<string>
}

/** One of the three ways to authenticate (docs/service.md, Authentication). */
export type Auth = ClientCredentialsAuth | BasicAuth | ProvidedTokenAuth

/** How token requests are sent. Each has a time limit of its own, because no single caller owns a token request. */
export interface TokenRequests extends Pick<SendOptions, 'transport' | 'retry' | 'log'> {
  readonly timeoutMs: number
}

export function authorizerFor(auth: Auth, requests: TokenRequests): Authorizer {
  if ('getAccessToken' in auth) return new ProvidedTokenAuthorizer(() => auth.getAccessToken())
  if ('username' in auth) return new BasicAuthorizer(auth.username, auth.password)
  return tokenAuthorizerFor(auth, requests)
}

function tokenAuthorizerFor(
  auth: ClientCredentialsAuth,
  { timeoutMs, ...options }: TokenRequests,
): TokenAuthorizer {
  const { log, retry } = options
  const request = tokenRequest(auth)
  let deadlineInFlight: Deadline | undefined

  async function issue({ limitMs, mayRepeat }: TokenRequestBudget) {
    const deadline = new Deadline(limitMs, { what: 'The token request' })
    deadlineInFlight = deadline
    try {
      return await requestAccessToken(request, {
        ...options,
        deadline,
        retry: mayRepeat ? retry : noRetries,
      })
    } finally {
      deadline.end()
      if (deadlineInFlight === deadline) deadlineInFlight = undefined
    }
  }

  const shared =
    auth.tokenCache &&
    new SharedTokenCache({ store: auth.tokenCache, ...cacheKeys(auth, request.address.url), log })
  return new TokenAuthorizer(new TokenSource({ request: issue, timeoutMs, shared, log }), {
    endpoint: request.address,
    tokenRequest: () => deadlineInFlight,
  })
}

/** Two clients share a token only if they would ask for the same one. */
function cacheKeys(
  { clientId, scope = '' }: ClientCredentialsAuth,
  endpoint: string,
): { key: string; lockKey: string } {
  const token = [endpoint, clientId, scope].join(' ')
  // The two kinds of keys cannot meet: in a token's key an address follows the package's name, never the word `lock`.
  return { key: `notification-subscriber ${token}`, lockKey: `notification-subscriber lock ${token}` }
}
