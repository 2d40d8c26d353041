/** Issues access tokens, JWTs signed with ES256, and recognises them again (docs/service.md, Resources). */
import { generateKeyPairSync, type KeyPairKeyObjectResult, randomUUID } from 'node:crypto'
import { jwtVerify, SignJWT } from 'jose'

export class TokenIssuer {
  readonly #issuer: string
  readonly #lifetimeSeconds: number
  #keys = newKeys()

  constructor(options: { issuer: string; lifetimeSeconds: number }) {
    this.#issuer = options.issuer
    this.#lifetimeSeconds = options.lifetimeSeconds
  }

  /** A token that is good from now on for exactly `expiresInSeconds`. */
  async issue(clientId: string, scope?: string): Promise<{ accessToken: string; expiresInSeconds: number }> {
    const nowMs = Date.now()
    const expiresAtMs = nowMs + this.#lifetimeSeconds * 1000
    // `exp` counts whole seconds: the exact moment stands in a claim of its own, and `exp` is never earlier.
    const claims = { azp: clientId, exp_ms: expiresAtMs, scope }
    const accessToken = await new SignJWT(claims)
      .setProtectedHeader({ alg: 'ES256', typ: 'JWT' })
      .setIssuer(this.#issuer)
      .setSubject(clientId)
      .setJti(randomUUID())
      .setIssuedAt(Math.floor(nowMs / 1000))
      .setExpirationTime(Math.ceil(expiresAtMs / 1000))
      .sign(this.#keys.privateKey)
    return { accessToken, expiresInSeconds: this.#lifetimeSeconds }
  }

  /** Whether this issuer made the token, and it is neither expired nor revoked. */
  async accepts(token: string): Promise<boolean> {
    try {
      const { payload } = await jwtVerify<{ exp_ms: number }>(token, this.#keys.publicKey, {
        issuer: this.#issuer,
        algorithms: ['ES256'],
        clockTolerance: 0,
        currentDate: new Date(Date.now()),
      })
      return Date.now() < payload.exp_ms
    } catch {
      // Whatever is wrong with the token, the answer to the caller is the same.
      return false
    }
  }

  /** From now on no token that was issued before is accepted: the key that signed them is replaced. */
  revokeAll(): void {
    this.#keys = newKeys()
  }
}

function newKeys(): KeyPairKeyObjectResult {
  return generateKeyPairSync('ec', { namedCurve: 'P-256' })
}
