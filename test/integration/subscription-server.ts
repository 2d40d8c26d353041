/** A create endpoint (docs/service.md, Endpoints) that verifies the bearer token. */
import { text } from 'node:stream/consumers'
import type { JWTPayload } from 'jose'
import type { KeyAndCertificate } from 'notification-subscriber/emulator'
import { startHttps } from './https-server.js'

/** A call as it was answered. */
export interface AnsweredCall {
  readonly status: 201 | 401
  /** The token's `jti`, if the token verified. */
  readonly tokenId: string | undefined
  readonly form: Readonly<Record<string, string>>
}

export interface SubscriptionServer extends AsyncDisposable {
  readonly baseUrl: string
  readonly calls: readonly AnsweredCall[]
}

export interface SubscriptionServerOptions {
  readonly tls: KeyAndCertificate
  readonly verify: (accessToken: string) => Promise<JWTPayload>
}

export async function startSubscriptionServer({
  tls,
  verify,
}: SubscriptionServerOptions): Promise<SubscriptionServer> {
  const calls: AnsweredCall[] = []
  const tokenIdOf = async (authorization = '') => {
    try {
      return (await verify(authorization.replace(/^Bearer /, ''))).jti
    } catch {
      return undefined
    }
  }
  const server = await startHttps(tls, () => async (request, response) => {
    const form = Object.fromEntries(new URLSearchParams(await text(request)))
    const tokenId = await tokenIdOf(request.headers.authorization)
    const accepted = tokenId !== undefined
    const isCreate = request.method === 'POST' && request.url === '/api/subscriptions'
    if (!isCreate) return response.writeHead(404).end()
    calls.push({ status: accepted ? 201 : 401, tokenId, form })
    if (!accepted) {
      return response.writeHead(401, { 'www-authenticate': 'Bearer error="invalid_token"' }).end()
    }
    response.writeHead(201, { 'content-type': 'application/json' })
    return response.end(JSON.stringify({ subscription_id: calls.length }))
  })
  return {
    baseUrl: server.origin,
    calls,
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
