/** `oidc-provider`, a certified OAuth server, with its token endpoint at the path of docs/service.md, Endpoints. */
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, RequestListener } from 'node:http'
import {
  createLocalJWKSet,
  exportJWK,
  generateKeyPair,
  type JSONWebKeySet,
  type JWTPayload,
  jwtVerify,
  type LocalJWKSet,
} from 'jose'
import type { KeyAndCertificate } from 'notification-subscriber/emulator'
import type { Adapter, ClientMetadata, errors, KoaContextWithOIDC } from 'oidc-provider'
import type { Agent } from 'undici'
import { vi } from 'vitest'
import { startHttps } from './https-server.js'

export const audience = 'https://notifications.example.com'

/** A client as it is registered at the server. */
export interface RegisteredClient {
  readonly clientId: string
  readonly clientSecret: string
  /** The scopes that it may ask for. */
  readonly scope?: string
}

export interface OidcProviderOptions {
  readonly tls: KeyAndCertificate
  /** Trusts the server's certificate; used to read its published documents. */
  readonly dispatcher: Agent
  readonly domain: string
  readonly clients: readonly RegisteredClient[]
  readonly tokenLifetimeSeconds: number
}

/** A token request as it came, and what became of it. */
export interface TokenRequest {
  readonly contentType: string | undefined
  readonly form: Readonly<Record<string, unknown>>
  /** The server's own reason for a refusal, which it does not send to the client. */
  readonly refusedBecause: string | undefined
}

export interface OidcProviderServer extends AsyncDisposable {
  readonly authUrl: string
  /** The path of every POST, whether there is an endpoint or not. */
  readonly posts: readonly string[]
  /** What the token endpoint did, in order. */
  readonly tokenRequests: readonly TokenRequest[]
  /** The server's published metadata (RFC 8414). */
  metadata(): Promise<Readonly<Record<string, unknown>>>
  /** Checks signature, issuer, audience, type and lifetime with the server's published keys. */
  verify(accessToken: string): Promise<JWTPayload>
}

const documents = { metadata: '/.well-known/openid-configuration', jwks: '/protocol/openid-connect/certs' }

export async function startOidcProvider(options: OidcProviderOptions): Promise<OidcProviderServer> {
  const { dispatcher, domain, tls } = options
  const mountPath = `/auth/realms/${domain}`
  const posts: string[] = []
  const tokenRequests: TokenRequest[] = []

  const server = await startHttps(tls, async (origin) => {
    const provider = await createProvider(`${origin}${mountPath}`, options)
    const record = ({ headers, oidc }: KoaContextWithOIDC, error?: errors.OIDCProviderError | Error) => {
      const refusedBecause = error && (('error_detail' in error && error.error_detail) || error.message)
      tokenRequests.push({ contentType: headers['content-type'], form: { ...oidc.body }, refusedBecause })
    }
    provider.on('grant.success', (context) => record(context))
    provider.on('grant.error', record)
    provider.on('server_error', record)
    const answer = mounted(mountPath, provider.callback())
    return (request, response) => {
      const { method, url = '' } = request
      if (method === 'POST') posts.push(url)
      answer(request, response)
    }
  })

  const issuer = `${server.origin}${mountPath}`
  const document = async (path: string) => {
    const { statusCode, body } = await dispatcher.request({
      origin: server.origin,
      path: mountPath + path,
      method: 'GET',
    })
    if (statusCode !== 200) throw new Error(`${path} was answered ${statusCode}: ${await body.text()}`)
    return body.json()
  }
  let keys: Promise<LocalJWKSet> | undefined
  return {
    authUrl: server.origin,
    posts,
    tokenRequests,
    metadata: async () => (await document(documents.metadata)) as Record<string, unknown>,
    async verify(accessToken) {
      keys ??= document(documents.jwks).then((jwks) => createLocalJWKSet(jwks as JSONWebKeySet))
      return (await jwtVerify(accessToken, await keys, { issuer, audience, typ: 'at+jwt' })).payload
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

async function createProvider(issuer: string, { clients, tokenLifetimeSeconds }: OidcProviderOptions) {
  const Provider = await importProvider()
  const { privateKey } = await generateKeyPair('ES256', { extractable: true })
  const scope = [...new Set(clients.flatMap((client) => client.scope?.split(' ') ?? []))].join(' ')
  return new Provider(issuer, {
    adapter: StoresNothing,
    jwks: { keys: [{ ...(await exportJWK(privateKey)), alg: 'ES256', use: 'sig' }] },
    cookies: { keys: [randomBytes(32).toString('hex')] },
    routes: { token: '/protocol/openid-connect/token', jwks: documents.jwks },
    clients: clients.map(metadataOf),
    scopes: scope.split(' '),
    ttl: { ClientCredentials: tokenLifetimeSeconds },
    features: {
      devInteractions: { enabled: false },
      clientCredentials: { enabled: true },
      resourceIndicators: {
        enabled: true,
        defaultResource: () => audience,
        getResourceServerInfo: () => ({
          scope,
          audience,
          accessTokenFormat: 'jwt',
          jwt: { sign: { alg: 'ES256' } },
        }),
      },
    },
  })
}

function metadataOf({ clientId, clientSecret, scope }: RegisteredClient): ClientMetadata {
  return {
    client_id: clientId,
    client_secret: clientSecret,
    ...(scope !== undefined && { scope }),
    token_endpoint_auth_method: 'client_secret_basic',
    grant_types: ['client_credentials'],
    response_types: [],
    redirect_uris: [],
    id_token_signed_response_alg: 'ES256',
  }
}

/** At import, oidc-provider warns of every Node.js but LTS releases from 22 on, although it runs on 20. */
async function importProvider() {
  const warn = vi.spyOn(console, 'warn').mockImplementation(() => {})
  try {
    return (await import('oidc-provider')).default
  } finally {
    warn.mockRestore()
  }
}

/** What is below the path goes to the handler without it; anything else as it is, for the handler's own 404. */
function mounted(mountPath: string, handler: RequestListener): RequestListener {
  return (request: IncomingMessage & { originalUrl?: string }, response) => {
    const { url = '' } = request
    request.originalUrl = url
    if (url.startsWith(`${mountPath}/`)) request.url = url.slice(mountPath.length)
    handler(request, response)
  }
}

/** JWT access tokens carry everything themselves and the clients are static: there is nothing to store. */
class StoresNothing implements Adapter {
  async upsert() {
    throw new Error('nothing should be stored')
  }
  async find() {}
  async findByUserCode() {}
  async findByUid() {}
  async consume() {}
  async destroy() {}
  async revokeByGrantId() {}
}
