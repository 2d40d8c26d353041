/** How a client proves itself to the token endpoint: each way is one function (RFC 6749 section 2.3.1). */
import type { Authorization } from '../http/send.js'
import type { KeyValueStore } from '../stores/key-value-store.js'

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
  /** OAuth scope to ask for; see the service's public developer pages. Default: none. */
  readonly scope?: string | undefined
  /**
   * Where ID and secret are sent: in a Basic header, or in the body as `client_id` and `client_secret`, which the
   * service's public developer pages also name. Default: `'header'`.
   */
  readonly clientAuthentication?: 'header' | 'body' | undefined
  /** How ID and secret are encoded before base64, in a header. Default: `'raw'`. */
  readonly credentialsEncoding?: CredentialsEncoding | undefined
  /** Shares one token between processes, e.g. `redisStore(redis)` (docs/stores.md). Default: each client has its own. */
  readonly tokenCache?: KeyValueStore | undefined
}

/**
 * How client ID and secret are encoded before base64.
 *
 * - `raw`: unchanged, joined by a colon, as the service requires (docs/service.md, Authentication).
 * - `form-urlencoded`: each encoded as `application/x-www-form-urlencoded` first, as RFC 6749 section 2.3.1
 *   requires. Certified OpenID providers decode them, and refuse a raw secret that contains `%` or `+`.
 */
export type CredentialsEncoding = 'raw' | 'form-urlencoded'

/** What a token request carries to prove who sends it: a header, fields of the form, or both. */
export interface ClientProof extends Authorization {
  readonly fields?: Readonly<Record<string, string>>
}

type Way = NonNullable<ClientCredentialsAuth['clientAuthentication']>

const ways: Readonly<
  Record<Way, (credentials: ClientCredentialsAuth) => ClientProof | Promise<ClientProof>>
> = { header: basicHeader, body: fieldsOfBody }

/** The proof for one token request. */
export function clientProof(credentials: ClientCredentialsAuth): ClientProof | Promise<ClientProof> {
  return ways[credentials.clientAuthentication ?? 'header'](credentials)
}

function basicHeader({ clientId, clientSecret, credentialsEncoding }: ClientCredentialsAuth): ClientProof {
  const encode = credentialsEncoding === 'form-urlencoded' ? formUrlEncode : (text: string) => text
  return basicAuthorization(encode(clientId), encode(clientSecret), clientSecret)
}

function fieldsOfBody({ clientId, clientSecret }: ClientCredentialsAuth): ClientProof {
  const fields = { client_id: clientId, client_secret: clientSecret }
  return { header: undefined, fields, secrets: [clientSecret] }
}

/**
 * A Basic header (RFC 7617).
 *
 * @param secret - the password before it was encoded
 */
export function basicAuthorization(user: string, password: string, secret = password): Authorization {
  const credentials = Buffer.from(`${user}:${password}`, 'utf8').toString('base64')
  return { header: `Basic ${credentials}`, secrets: [credentials, secret] }
}

function formUrlEncode(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1)
}
