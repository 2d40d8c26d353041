/** What an access token says about itself (RFC 7519). Only the service verifies its signature. */
import { excerpt } from '../../shared/excerpt.js'

export interface TokenClaims {
  /** Who issued it. */
  readonly iss?: string
  /** The client that it was issued to. */
  readonly azp?: string
  /** When the token ends, in seconds since 1970. */
  readonly exp?: number
  readonly scope?: string
}

/** The claims of a token, texts cut; nothing if the token is not a JWT. */
export function claimsOf(token: string): TokenClaims | undefined {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    const { iss, azp, exp, scope }: Record<string, unknown> = Object(payload)
    return {
      ...(typeof iss === 'string' && { iss: excerpt(iss, 200) }),
      ...(typeof azp === 'string' && { azp: excerpt(azp, 100) }),
      ...(typeof exp === 'number' && { exp }),
      ...(typeof scope === 'string' && { scope: excerpt(scope, 200) }),
    }
  } catch {
    return undefined
  }
}

export function describeClaims({ iss, azp, exp, scope }: TokenClaims): string {
  const seconds = exp === undefined ? undefined : Math.round(exp - Date.now() / 1000)
  return [
    `iss ${iss ?? 'missing'}`,
    `azp ${azp ?? 'missing'}`,
    seconds === undefined ? 'exp missing' : `exp in ${seconds} s`,
    `scope ${scope ?? 'none'}`,
  ].join(', ')
}
