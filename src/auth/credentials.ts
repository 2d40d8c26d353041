/** The three kinds of credentials (docs/service.md, Authentication): their types, and the schemas that validate them. */
import * as z from 'zod'
import { addressSchema } from '../shared/addresses.js'
import { placeholderProblem } from '../shared/mistakes.js'
import { functionFor, issueFrom, objectWith } from '../shared/validation.js'
import type { KeyValueStore } from '../stores/key-value-store.js'

/** One of the three ways to authenticate (docs/service.md, Authentication). */
export type Auth = ClientCredentialsAuth | BasicAuth | ProvidedTokenAuth

/**
 * Client credentials issued at activation: the client gets, keeps and refreshes access tokens itself (docs/service.md,
 * Authentication; RFC 6749 section 4.4).
 */
export interface ClientCredentialsAuth {
  /** Base address of the tenant's authorization server: `https:`, or `http:` on loopback. */
  readonly authUrl: string | URL
  /** The tenant's unique name, the realm in the token endpoint's path. */
  readonly domain: string
  /** The client ID that was issued at activation. */
  readonly clientId: string
  /**
   * The client secret that was issued with the client ID. Required, unless `clientAuthentication` is a function. Never
   * printed: not in errors, logs or `console.log(client)`.
   */
  readonly clientSecret?: string | undefined
  /** OAuth scope to ask for † (docs/service.md, Endpoints). Default: none. */
  readonly scope?: string | undefined
  /**
   * How a token request authenticates the client: ID and secret in a Basic header, or in the body as `client_id` and
   * `client_secret` † (docs/service.md, Authentication), or a function of your own. Default: `'header'`.
   */
  readonly clientAuthentication?: 'header' | 'body' | ClientAuthentication | undefined
  /** How ID and secret are encoded before base64, in a header. Default: `'raw'`. */
  readonly credentialsEncoding?: CredentialsEncoding | undefined
  /** Shares one token between processes, e.g. `redisStore(redis)` (docs/stores.md). Default: each client has its own. */
  readonly tokenCache?: Pick<KeyValueStore, 'get' | 'set'> | undefined
}

/** An access token request before it is sent (RFC 6749 section 4.4.2). */
export interface TokenRequest {
  /** Address of the token endpoint: the audience of a client assertion. */
  readonly url: string
  /** Empty at first: `clientAuthentication` adds headers. */
  readonly headers: Headers
  /** The fields of the form: `grant_type`, and `scope` if there is one. */
  readonly body: URLSearchParams
}

/**
 * Authenticates the client: adds headers or fields to a token request (RFC 6749 section 2.3). Called for each request, a
 * repeated one too, so that each can have an assertion of its own. What it adds is never printed, except `client_id`. The
 * client's method rejects with an error of this function unchanged. The example is `private_key_jwt` (RFC 7523).
 *
 * @example
 * ```ts
 * import { SignJWT } from 'jose'
 * import type { ClientAuthentication } from 'notification-subscriber'
 *
 * const clientAuthentication: ClientAuthentication = async ({ url, body }) => {
 *   const jwt = new SignJWT({ iss: clientId, sub: clientId, aud: url, jti: crypto.randomUUID() })
 *   const assertion = await jwt.setProtectedHeader({ alg: 'RS256' }).setExpirationTime('1m').sign(privateKey)
 *   body.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
 *   body.set('client_assertion', assertion)
 * }
 * ```
 */
export type ClientAuthentication = (request: TokenRequest) => void | Promise<void>

/**
 * How client ID and secret are encoded before base64.
 *
 * - `raw`: unchanged, joined by a colon, as the service requires (docs/service.md, Authentication).
 * - `form-urlencoded`: each encoded as `application/x-www-form-urlencoded` first, as RFC 6749 section 2.3.1
 *   requires. Certified OpenID providers decode them, and refuse a raw secret that contains `%` or `+`.
 */
export type CredentialsEncoding = 'raw' | 'form-urlencoded'

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
   * Returns the token without the prefix `Bearer`. Called for every request, again if the request had to wait for a
   * connection, and again after a 401. The client's method rejects with an error of this function unchanged.
   */
  readonly getAccessToken: () => string | Promise<string>
}

/** The schema of the kind of credentials that the given fields suggest, so that the issues are about that kind. */
export function authSchema(auth: unknown): z.ZodType<Auth> {
  if (typeof auth !== 'object' || auth === null) {
    return acceptsNothing('must be client credentials, { username, password } or { getAccessToken }')
  }
  if (!('getAccessToken' in auth)) {
    return 'username' in auth || 'password' in auth ? basicSchema() : clientCredentialsSchema(auth)
  }
  if ('clientSecret' in auth || 'password' in auth) {
    return acceptsNothing('must be one kind of credentials, not `getAccessToken` and another')
  }
  // Not a `strictObject`, which copies: the caller's object may be an instance of a class.
  return z.custom<ProvidedTokenAuth>(() => typeof auth.getAccessToken === 'function', {
    path: ['getAccessToken'],
    error: 'must be a function that returns an access token',
  })
}

function acceptsNothing(message: string): z.ZodType<Auth> {
  return z.custom<Auth>(() => false, message)
}

function clientCredentialsSchema(auth: object) {
  const { clientAuthentication }: { clientAuthentication?: unknown } = auth
  return z
    .strictObject({
      authUrl: addressSchema(/\/auth\/realms\/[^/]+(?:\/protocol\/openid-connect\/token)?\/?$/),
      domain: trimmed().refine(
        (name) => !/^\.\.?$/.test(name) && name.isWellFormed(),
        'must be a realm name',
      ),
      clientId: trimmed().regex(...noControls),
      clientSecret: typeof clientAuthentication === 'function' ? secretSchema().optional() : secretSchema(),
      scope: trimmed().optional(),
      clientAuthentication: z
        .union(
          [z.enum(['header', 'body']), functionFor<ClientAuthentication>('a function')],
          "must be 'header' or 'body' (in code, also a function)",
        )
        .optional(),
      credentialsEncoding: z.enum(['raw', 'form-urlencoded'] satisfies CredentialsEncoding[]).optional(),
      tokenCache: objectWith<NonNullable<ClientCredentialsAuth['tokenCache']>>(
        ['get', 'set'],
        'an object with get and set',
      ).optional(),
    })
    .refine(
      (auth) =>
        !auth.clientId.includes(':') ||
        (auth.clientAuthentication ?? 'header') !== 'header' ||
        auth.credentialsEncoding === 'form-urlencoded',
      {
        path: ['clientId'],
        error:
          'must not contain a colon, which ends the ID in raw credentials; ' +
          "use `credentialsEncoding: 'form-urlencoded'` or `clientAuthentication: 'body'`",
      },
    )
}

function basicSchema() {
  return z.strictObject({
    username: trimmed()
      .regex(...noControls)
      .regex(/^[^:]*$/, 'must not contain a colon: Basic credentials end the name there'),
    password: secretSchema(),
  })
}

const noControls = [/^\P{Cc}*$/u, 'must not contain control characters'] as const

function secretSchema() {
  return nonEmpty().regex(...noControls)
}

function nonEmpty() {
  return z
    .string()
    .min(1, 'must not be empty')
    .refine(...issueFrom(placeholderProblem))
}

function trimmed() {
  return nonEmpty().refine((text) => text.trim() === text, 'must not begin or end with white space')
}
