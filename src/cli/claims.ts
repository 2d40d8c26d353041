/** The claims of an access token (RFC 7519), for people. Only the service verifies them. */
import { basicAuthorization } from '../auth/client-authentication.js'
import type { Environment } from '../client/environment.js'
import { durationInWords } from '../emulator/words.js'
import { redact } from '../shared/redact.js'
import { excerpt } from '../shared/text.js'
import { parseJson } from '../shared/validation.js'

/** `exp` is in seconds since 1970. */
export type TokenClaims = NonNullable<ReturnType<typeof claimsOf>>

/** The claims, with texts cut and without the client secret; `undefined` if the token is not a JWT. */
export function claimsOf(token: string, env: Environment) {
  const payload = parseJson(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
  if (payload === undefined) return undefined
  const { iss, azp, exp, scope }: Record<string, unknown> = Object(payload)
  const { NOTIFICATION_CLIENT_ID: id = '', NOTIFICATION_CLIENT_SECRET: secret = '' } = env
  const { secrets } = basicAuthorization(id, secret)
  const text = (claim: unknown) =>
    typeof claim === 'string' ? excerpt(redact(claim, secrets), 200) : undefined
  return {
    iss: text(iss),
    azp: text(azp),
    exp: typeof exp === 'number' ? exp : undefined,
    scope: text(scope),
  }
}

export function hasExpired({ exp }: TokenClaims): boolean {
  return exp !== undefined && exp * 1000 <= Date.now()
}

export function describeClaims(claims: TokenClaims): string {
  const { iss = 'missing', azp = 'missing', exp, scope = 'none' } = claims
  const remainingMs = exp === undefined ? 0 : exp * 1000 - Date.now()
  const inWords = durationInWords(Math.abs(remainingMs))
  const expiry = remainingMs > 0 ? `expires in ${inWords}` : `expired ${inWords} ago`
  return `iss ${iss}, azp ${azp}, ${exp === undefined ? 'exp missing' : expiry}, scope ${scope}`
}
