/** The shapes of the three kinds of credentials. */
import * as z from 'zod'
import type { Auth, ProvidedTokenAuth } from '../auth/auth.js'
import type { CredentialsEncoding } from '../auth/basic-credentials.js'
import type { TokenCache } from '../auth/shared-token-cache.js'
import { objectWith } from '../shared/object-schemas.js'
import { addressSchema } from './common-schemas.js'

/** What kind of credentials somebody meant, by what is there, so that the issues speak of that kind. */
export type AuthKind = 'none' | 'several' | 'clientCredentials' | 'basic' | 'providedToken'

/** @param auth - what the caller gave, which may be anything */
export function authKind(auth: unknown): AuthKind {
  if (typeof auth !== 'object' || auth === null) return 'none'
  if ('getAccessToken' in auth) {
    return 'clientSecret' in auth || 'password' in auth ? 'several' : 'providedToken'
  }
  return 'username' in auth || 'password' in auth ? 'basic' : 'clientCredentials'
}

/** The schema of the option `auth`. */
export function authSchema(kind: AuthKind, allowInsecureLoopback: boolean): z.ZodType<Auth> {
  switch (kind) {
    case 'none':
      return refusal('must be client credentials, { username, password } or { getAccessToken }')
    case 'several':
      return refusal('must be one kind of credentials, not `getAccessToken` and another')
    case 'clientCredentials':
      return clientCredentialsSchema(allowInsecureLoopback)
    case 'basic':
      return basicSchema()
    case 'providedToken':
      return providedTokenSchema()
  }
}

function clientCredentialsSchema(allowInsecureLoopback: boolean) {
  return z
    .strictObject({
      authUrl: addressSchema(allowInsecureLoopback),
      domain: trimmed().refine(isPathSegment, 'must be a realm name'),
      clientId: trimmed().regex(...noControls),
      clientSecret: nonEmpty().regex(...noControls),
      scope: trimmed().optional(),
      credentialsEncoding: z.enum(['raw', 'form-urlencoded'] satisfies CredentialsEncoding[]).optional(),
      tokenCache: objectWith<TokenCache>(
        ['get', 'set', 'delete'],
        'an object with get, set and delete',
      ).optional(),
    })
    .refine((auth) => auth.credentialsEncoding === 'form-urlencoded' || !auth.clientId.includes(':'), {
      path: ['clientId'],
      error:
        'must not contain a colon, which ends the ID in raw credentials; ' +
        "use `credentialsEncoding: 'form-urlencoded'`",
    })
}

function basicSchema() {
  return z.strictObject({
    username: trimmed()
      .regex(...noControls)
      .refine(
        (name) => !name.includes(':'),
        'must not contain a colon: Basic credentials end the name there',
      ),
    password: nonEmpty().regex(...noControls),
  })
}

/** Passes on the caller's own object: an instance of a class has other fields, too, and a prototype. */
function providedTokenSchema() {
  return z.custom<ProvidedTokenAuth>((auth) => typeof Object(auth).getAccessToken === 'function', {
    path: ['getAccessToken'],
    error: 'must be a function that returns an access token',
  })
}

function refusal(message: string): z.ZodType<Auth> {
  return z.custom<Auth>(() => false, message)
}

const noControls = [/^\P{Cc}*$/u, 'must not contain control characters'] as const

function nonEmpty() {
  return z.string().min(1, 'must not be empty')
}

function trimmed() {
  return nonEmpty().refine((text) => text.trim() === text, 'must not begin or end with white space')
}

function isPathSegment(domain: string): boolean {
  return domain !== '.' && domain !== '..' && domain.isWellFormed()
}
