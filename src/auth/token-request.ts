/** Asks the authorization server for an access token (docs/service.md, Endpoints; RFC 6749 section 4.4). */
import { type Address, addressBelow } from '../http/address.js'
import { type SendOptions, send } from '../http/send.js'
import type { HttpRequest, Transport } from '../http/transport.js'
import { readAccessTokenResponse, tokenRequestError } from './access-token-response.js'
import { basicCredentials, type CredentialsEncoding } from './basic-credentials.js'
import type { TokenCache } from './shared-token-cache.js'

/**
 * Client credentials issued at activation: the client gets, keeps and refreshes access tokens itself (docs/service.md,
 * Authentication; RFC 6749 section 4.4).
 */
export interface ClientCredentialsAuth {
  /** Base address of the tenant's authorization server, `https:`. */
  readonly authUrl: string | URL
  /** The tenant's unique name, the realm in the token endpoint's path. */
  readonly domain: string
  /** The client ID that was issued at activation. */
  readonly clientId: string
  /** The client secret that was issued with it. Never printed: not in errors, logs or `console.log(client)`. */
  readonly clientSecret: string
  /** OAuth scope to ask for, as the service's public developer pages have it. Default: none. */
  readonly scope?: string | undefined
  /** How ID and secret are written before base64. Default: `'raw'`. */
  readonly credentialsEncoding?: CredentialsEncoding | undefined
  /** Shares one token between processes, e.g. `redisStore(redis)` (docs/stores.md). Default: each client has its own. */
  readonly tokenCache?: TokenCache | undefined
}

export interface IssuedToken {
  readonly accessToken: string
  readonly lifetimeMs: number
  /** When the answered attempt was sent, on the monotonic clock: the token cannot be older than that. */
  readonly requestedAt: number
}

/** @throws `TokenRequestError`, `ResponseValidationError`, `ConnectionError`, or the deadline's reason */
export async function requestAccessToken(
  request: HttpRequest,
  options: Omit<SendOptions, 'repeatable' | 'progress' | 'errorOf'>,
): Promise<IssuedToken> {
  let requestedAt = 0
  const transport: Pick<Transport, 'send'> = {
    send(attempt, deadline) {
      requestedAt = performance.now()
      return options.transport.send(attempt, deadline)
    },
  }
  const answer = await send(request, {
    ...options,
    transport,
    repeatable: true,
    progress: { lostAttempts: 0 },
    errorOf: tokenRequestError,
  })
  const { access_token, expires_in } = readAccessTokenResponse(answer)
  return { accessToken: access_token, lifetimeMs: expires_in * 1_000, requestedAt }
}

/** `{authUrl}/auth/realms/{domain}/protocol/openid-connect/token` */
export function tokenEndpoint({
  authUrl,
  domain,
}: Pick<ClientCredentialsAuth, 'authUrl' | 'domain'>): Address {
  const path = `/auth/realms/${encodeURIComponent(domain)}/protocol/openid-connect/token`
  return addressBelow(new URL(authUrl), path)
}

/** The one request that serves for every token: it says the same each time. */
export function tokenRequest(credentials: ClientCredentialsAuth): HttpRequest {
  const { clientId, clientSecret, credentialsEncoding = 'raw', scope } = credentials
  const basic = basicCredentials(clientId, clientSecret, credentialsEncoding)
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    ...(scope !== undefined && { scope }),
  })
  return {
    method: 'POST',
    address: tokenEndpoint(credentials),
    headers: {
      authorization: `Basic ${basic}`,
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
    },
    body: form.toString(),
    secrets: () => [clientSecret, basic],
  }
}
