/** The three ways to authenticate, and the authorizer that carries each out. */
import { Deadline } from '../http/deadline.js'
import { noRetries } from '../http/retry.js'
import type { SendOptions } from '../http/send.js'
import { type Authorizer, BasicAuthorizer, ProvidedTokenAuthorizer, TokenAuthorizer } from './authorizer.js'
import { SharedTokenCache, type TokenCache } from './shared-token-cache.js'
import { type ClientCredentials, requestAccessToken, tokenEndpoint } from './token-request.js'
import { type TokenRequestBudget, TokenSource } from './token-source.js'

/**
 * Client credentials issued at activation: the client gets, keeps and refreshes access tokens itself (interface.md
 * sections 4.1 and 5; RFC 6749 section 4.4).
 */
export interface ClientCredentialsAuth extends ClientCredentials {
  /** Shares one token between processes, e.g. `redisStore(redis)`. Default: each client has its own. */
  readonly tokenCache?: TokenCache | undefined
}

/** User name and password, sent on every subscription call (interface.md section 5, rule 4). */
export interface BasicAuth {
  /** Without a colon, which would end it (RFC 7617 section 2). */
  readonly username: string
  /** The password that belongs to it. */
  readonly password: string
}

/** Access tokens from the caller, who also keeps them fresh (interface.md section 5, rule 3). */
export interface ProvidedTokenAuth {
  /** Called for every request, and again after a 401. What it throws reaches the caller of the client's method. */
  readonly getAccessToken: () => string | Promise<string>
}

/** One of the three ways to authenticate (interface.md section 5). */
export type Auth = ClientCredentialsAuth | BasicAuth | ProvidedTokenAuth

/** How token requests are sent. Each has its own time limit, because no single caller owns it. */
export interface TokenRequests extends Pick<SendOptions, 'transport' | 'retry' | 'log'> {
  readonly timeoutMs: number
}

export function authorizerFor(auth: Auth, { timeoutMs, ...options }: TokenRequests): Authorizer {
  if ('getAccessToken' in auth) return new ProvidedTokenAuthorizer(() => auth.getAccessToken())
  if ('username' in auth) return new BasicAuthorizer(auth.username, auth.password)
  const request = async ({ limitMs, repeat }: TokenRequestBudget) => {
    const deadline = new Deadline(limitMs, { what: 'The token request' })
    try {
      return await requestAccessToken(auth, { ...options, deadline, ...(!repeat && { retry: noRetries }) })
    } finally {
      deadline.end()
    }
  }
  const shared =
    auth.tokenCache && new SharedTokenCache({ store: auth.tokenCache, ...cacheKeys(auth), log: options.log })
  return new TokenAuthorizer(new TokenSource({ request, timeoutMs, shared, log: options.log }))
}

/** Two clients share a token only if they would ask for the same one. */
function cacheKeys(credentials: ClientCredentials): { key: string; lockKey: string } {
  const { clientId, scope = '' } = credentials
  const token = [tokenEndpoint(credentials), clientId, scope].join(' ')
  // No key of a token begins like that of a lock: an address follows the name of this package there.
  return { key: `notification-subscriber ${token}`, lockKey: `notification-subscriber lock ${token}` }
}
