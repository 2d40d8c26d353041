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
  /** Without a colon, which would end it (RFC 7617 section 2). */
  readonly username: string
  /** The password that belongs to it. */
  readonly password: string
}

/** Access tokens from the caller, who also keeps them fresh (docs/service.md, Authentication). */
export interface ProvidedTokenAuth {
  /**
   * Returns the token alone, without the prefix `Bearer`. Called for every request, and again after a 401. What it
   * throws reaches the caller of the client's method.
   */
  readonly getAccessToken: () => string | Promise<string>
}

/** One of the three ways to authenticate (docs/service.md, Authentication). */
export type Auth = ClientCredentialsAuth | BasicAuth | ProvidedTokenAuth

/** How token requests are sent. Each has its own time limit, because no single caller owns it. */
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

  async function issue({ limitMs, repeat }: TokenRequestBudget) {
    const deadline = new Deadline(limitMs, { what: 'The token request' })
    deadlineInFlight = deadline
    try {
      return await requestAccessToken(request, { ...options, deadline, retry: repeat ? retry : noRetries })
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
    tokenRequest: {
      get lastFailure() {
        return deadlineInFlight?.lastFailure
      },
    },
  })
}

/** Two clients share a token only if they would ask for the same one. */
function cacheKeys(
  { clientId, scope = '' }: ClientCredentialsAuth,
  endpoint: string,
): { key: string; lockKey: string } {
  const token = [endpoint, clientId, scope].join(' ')
  // No key of a token begins like that of a lock: an address follows the name of this package there.
  return { key: `notification-subscriber ${token}`, lockKey: `notification-subscriber lock ${token}` }
}
