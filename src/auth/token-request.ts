/** Asks the authorization server for an access token (interface.md section 4.1; RFC 6749 section 4.4). */
import { type SendOptions, send } from '../http/send.js'
import type { HttpRequest, Transport } from '../http/transport.js'
import { readAccessTokenResponse } from './access-token-response.js'
import { basicCredentials, type CredentialsEncoding } from './basic-credentials.js'

/** Client credentials, as issued at activation (interface.md section 1). */
export interface ClientCredentials {
  /** Base address of the tenant's authorization server, `https:`. */
  readonly authUrl: string | URL
  /** The tenant's unique name, the realm in the token endpoint's path. */
  readonly domain: string
  /** The client ID that was issued at activation. */
  readonly clientId: string
  /** The client secret that was issued with it. Never printed: not in errors, logs or `console.log(client)`. */
  readonly clientSecret: string
  /** OAuth scope to ask for. From the service's public developer pages; not in interface.md. */
  readonly scope?: string | undefined
  /** How ID and secret are written before base64. Default: `raw`. */
  readonly credentialsEncoding?: CredentialsEncoding | undefined
}

export interface IssuedToken {
  readonly accessToken: string
  readonly lifetimeMs: number
  /** When the answered attempt was sent, on the monotonic clock: the token cannot be older than that. */
  readonly requestedAt: number
}

/** @throws `TokenRequestError`, `ResponseValidationError`, `ConnectionError` or the deadline's reason. */
export async function requestAccessToken(
  credentials: ClientCredentials,
  options: Omit<SendOptions, 'repeatable' | 'progress'>,
): Promise<IssuedToken> {
  let requestedAt = 0
  const transport: Pick<Transport, 'send'> = {
    send(request, deadline) {
      requestedAt = performance.now()
      return options.transport.send(request, deadline)
    },
  }
  const answer = await send(tokenRequest(credentials), {
    ...options,
    transport,
    repeatable: true,
    progress: { lostAttempts: 0 },
  })
  const { access_token, expires_in } = readAccessTokenResponse(answer)
  return { accessToken: access_token, lifetimeMs: expires_in * 1_000, requestedAt }
}

/** `{authUrl}/auth/realms/{domain}/protocol/openid-connect/token` */
export function tokenEndpoint({ authUrl, domain }: Pick<ClientCredentials, 'authUrl' | 'domain'>): string {
  const base = String(authUrl).replace(/\/+$/, '')
  return `${base}/auth/realms/${encodeURIComponent(domain)}/protocol/openid-connect/token`
}

function tokenRequest(credentials: ClientCredentials): HttpRequest {
  const { clientId, clientSecret, credentialsEncoding = 'raw', scope } = credentials
  const basic = basicCredentials(clientId, clientSecret, credentialsEncoding)
  const form = new URLSearchParams({
    grant_type: 'client_credentials',
    ...(scope !== undefined && { scope }),
  })
  return {
    method: 'POST',
    url: tokenEndpoint(credentials),
    headers: {
      authorization: `Basic ${basic}`,
      'content-type': 'application/x-www-form-urlencoded',
      accept: 'application/json',
    },
    body: form.toString(),
    secrets: () => [clientSecret, basic],
  }
}
