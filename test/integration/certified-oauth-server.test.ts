import { decodeJwt, decodeProtectedHeader } from 'jose'
import { type ClientCredentialsAuth, NotificationClient, TokenRequestError } from 'notification-subscriber'
import { Agent } from 'undici'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { everythingShownBy, spellings } from '../support/secrets.js'
import { audience, startOidcProvider } from './oidc-provider-server.js'
import { startSubscriptionServer } from './subscription-server.js'

const domain = 'acme'
const tokenPath = '/auth/realms/acme/protocol/openid-connect/token'

const special = { clientId: 'special', clientSecret: 's3cr:et/+%41', scope: 'notifications:read' }
const plain = {
  clientId: 'plain',
  clientSecret: 'plain-secret_1.2~3',
  scope: 'notifications:read notifications:write',
}
const colon = { clientId: 'urn:acme:app/1', clientSecret: 'of-the-colon-client' }
const brokenEscape = { clientId: 'discount', clientSecret: '50%off!' }

const subscription = {
  notificationTypes: ['behavioral'],
  usernames: ['alice'],
  callbackUrl: 'https://app.example.com/notifications',
} as const

/** The two servers behind one certificate, and clients that trust it. */
async function startServers({ tokenLifetimeSeconds = 3600 } = {}) {
  const { ca, tls } = createLoopbackCertificate()
  const dispatcher = new Agent({ connect: { ca } })
  const clients = [special, plain, colon, brokenEscape]
  const oauth = await startOidcProvider({ tls, dispatcher, domain, clients, tokenLifetimeSeconds })
  const api = await startSubscriptionServer({ tls, verify: oauth.verify })
  return {
    oauth,
    api,
    client: (credentials: Omit<ClientCredentialsAuth, 'authUrl' | 'domain'> & { domain?: string }) =>
      new NotificationClient({
        baseUrl: api.baseUrl,
        auth: { authUrl: oauth.authUrl, domain, ...credentials },
        dispatcher,
      }),
    async [Symbol.asyncDispose]() {
      await dispatcher.close()
      await api[Symbol.asyncDispose]()
      await oauth[Symbol.asyncDispose]()
    },
  }
}

function withoutScope({ clientId, clientSecret }: Pick<ClientCredentialsAuth, 'clientId' | 'clientSecret'>) {
  return { clientId, clientSecret }
}

/** The `TokenRequestError` that a call must end with. */
async function failureOf(call: Promise<unknown>): Promise<TokenRequestError> {
  const error = await call.then(
    () => undefined,
    (reason: unknown) => reason,
  )
  if (!(error instanceof TokenRequestError)) throw new Error('expected a TokenRequestError', { cause: error })
  return error
}

/** Fails if an error shows the secret that was sent, in whatever spelling. */
function expectNoSecret(
  error: unknown,
  { clientId, clientSecret }: typeof plain | typeof brokenEscape,
): void {
  const sent = [clientSecret, encodeURIComponent(clientSecret)].flatMap((secret) => [
    secret,
    Buffer.from(`${clientId}:${secret}`).toString('base64'),
  ])
  const shown = everythingShownBy(error)
  expect(sent.flatMap(spellings).filter((spelling) => shown.includes(spelling))).toEqual([])
}

afterEach(() => {
  vi.useRealTimers()
})

describe('a certified OAuth server (docs/service.md, Endpoints)', () => {
  test('publishes the token endpoint at which the client looks for it', async () => {
    await using servers = await startServers()
    const metadata = await servers.oauth.metadata()
    expect(metadata.token_endpoint).toBe(`${servers.oauth.authUrl}${tokenPath}`)
    await servers.client(withoutScope(plain)).getAccessToken()
    expect(servers.oauth.posts).toEqual([tokenPath])
  })

  test('is asked with a form that holds the grant type and nothing else', async () => {
    await using servers = await startServers()
    await servers.client(withoutScope(plain)).getAccessToken()
    expect(servers.oauth.tokenRequests).toEqual([
      {
        contentType: 'application/x-www-form-urlencoded',
        form: { grant_type: 'client_credentials' },
        refusedBecause: undefined,
      },
    ])
  })

  test('issues a JWT that verifies against its published keys and names issuer, client and end', async () => {
    await using servers = await startServers({ tokenLifetimeSeconds: 1234 })
    const client = servers.client({ ...withoutScope(special), credentialsEncoding: 'form-urlencoded' })
    const token = await client.getAccessToken()
    expect(decodeProtectedHeader(token)).toMatchObject({ alg: 'ES256', typ: 'at+jwt' })
    const { iat = 0, exp = 0, ...claims } = await servers.oauth.verify(token)
    expect(claims).toMatchObject({
      iss: `${servers.oauth.authUrl}/auth/realms/acme`,
      aud: audience,
      client_id: 'special',
      sub: 'special',
    })
    expect(exp - iat).toBe(1234)
  })

  test('grants the scope that was asked for', async () => {
    await using servers = await startServers()
    const token = await servers.client(plain).getAccessToken()
    expect(servers.oauth.tokenRequests[0]?.form).toEqual({
      grant_type: 'client_credentials',
      scope: plain.scope,
    })
    expect(decodeJwt(token).scope).toBe(plain.scope)
  })
})

describe('the encoding of client ID and secret (docs/service.md, Endpoints, RFC 6749 section 2.3.1)', () => {
  test.each([
    ['a secret of ordinary characters', plain],
    ['a secret with a colon, a slash, a plus and an escape', special],
    ['a secret with a percent sign that is no escape', brokenEscape],
    ['a client ID with colons', colon],
  ])('form-urlencoded is accepted for %s', async (_, credentials) => {
    await using servers = await startServers()
    const client = servers.client({ ...withoutScope(credentials), credentialsEncoding: 'form-urlencoded' })
    const { client_id } = await servers.oauth.verify(await client.getAccessToken())
    expect(client_id).toBe(credentials.clientId)
  })

  test('raw, the default, is accepted for a secret of ordinary characters', async () => {
    await using servers = await startServers()
    const token = await servers.client(withoutScope(plain)).getAccessToken()
    expect(await servers.oauth.verify(token)).toMatchObject({ client_id: 'plain' })
  })

  test.each([
    ['a colon, a slash, a plus and an escape', special, 401, 'invalid_client', 'invalid secret provided'],
    ['a percent sign that is no escape', brokenEscape, 400, 'invalid_request', 'URI malformed'],
  ])('raw is refused for a secret with %s, and the error says what to try', async (...row) => {
    const [, credentials, status, error, reason] = row
    await using servers = await startServers()
    const failure = await failureOf(servers.client(withoutScope(credentials)).getAccessToken())
    expect(failure).toMatchObject({ code: 'TOKEN_REQUEST', status, error })
    expect(failure.message).toContain("credentialsEncoding: 'form-urlencoded'")
    expect(servers.oauth.tokenRequests.map(({ refusedBecause }) => refusedBecause)).toEqual([reason])
    expectNoSecret(failure, credentials)
  })
})

describe('refusals (docs/service.md, Errors, RFC 6749 section 5.2)', () => {
  test.each([
    ['a wrong secret', { ...withoutScope(plain), clientSecret: 'not-the-secret' }, 'invalid secret provided'],
    ['an unknown client', { ...withoutScope(plain), clientId: 'nobody' }, 'client not found'],
  ])('%s is a TokenRequestError with 401 and invalid_client, asked once', async (_, credentials, reason) => {
    await using servers = await startServers()
    const failure = await failureOf(servers.client(credentials).getAccessToken())
    expect(failure).toMatchObject({
      status: 401,
      error: 'invalid_client',
      errorDescription: 'client authentication failed',
    })
    expect(failure.message).toMatch(/`clientId`, `clientSecret` and `domain`/)
    expect(servers.oauth.tokenRequests.map(({ refusedBecause }) => refusedBecause)).toEqual([reason])
    expectNoSecret(failure, credentials)
  })

  test('a wrong domain is a TokenRequestError with 404 that names authUrl and domain', async () => {
    await using servers = await startServers()
    const client = servers.client({ ...withoutScope(plain), domain: 'acne' })
    const failure = await failureOf(client.getAccessToken())
    expect(failure).toMatchObject({ status: 404, error: undefined })
    expect(failure.message).toMatch(/`authUrl` and `domain`/)
    expect(servers.oauth.posts).toEqual([tokenPath.replace('acme', 'acne')])
  })

  test.each([
    ['that the client may not have', 'notifications:write', 'requested scope is not allowed'],
    ['that is no scope', 'notifications:"read"', 'scope contains invalid characters'],
  ])('a scope %s is a TokenRequestError with 400 and invalid_scope', async (_, scope, errorDescription) => {
    await using servers = await startServers()
    const client = servers.client({ ...special, scope, credentialsEncoding: 'form-urlencoded' })
    const failure = await failureOf(client.getAccessToken())
    expect(failure).toMatchObject({ status: 400, error: 'invalid_scope', errorDescription })
    expect(failure.message).toContain(`invalid_scope: ${errorDescription}`)
    expect(servers.oauth.posts).toHaveLength(1)
  })
})

describe('lifetime of tokens (docs/service.md, Resources, expires_in)', () => {
  test('a token that ended while the client was idle is not sent: the next call has a new one', async () => {
    await using servers = await startServers({ tokenLifetimeSeconds: 10 })
    // Only the clocks stand still: timers and sockets go on, so that the servers are as real as ever.
    vi.useFakeTimers({ toFake: ['Date', 'performance'] })
    const client = servers.client(withoutScope(plain))
    const ended = await client.getAccessToken()
    await client.createSubscription(subscription)
    vi.advanceTimersByTime(10_000)
    await expect(servers.oauth.verify(ended)).rejects.toMatchObject({ code: 'ERR_JWT_EXPIRED' })

    await client.createSubscription(subscription)
    expect(servers.oauth.posts).toHaveLength(2)
    expect(servers.api.calls.map(({ status }) => status)).toEqual([201, 201])
  })
})

describe('subscription calls with such a token (docs/service.md, Endpoints and Authentication)', () => {
  test('are accepted by a service that verifies the token, and one token serves many calls', async () => {
    await using servers = await startServers()
    const client = servers.client({ ...withoutScope(special), credentialsEncoding: 'form-urlencoded' })
    expect(await client.createSubscription(subscription)).toEqual({ subscriptionId: 1 })
    expect(await client.createSubscription(subscription)).toEqual({ subscriptionId: 2 })
    expect(servers.oauth.posts).toHaveLength(1)
    const form = {
      notification_type: 'behavioral',
      username: 'alice',
      callback_url: 'https://app.example.com/notifications',
    }
    const { jti: tokenId } = decodeJwt(await client.getAccessToken())
    expect(servers.api.calls).toEqual([
      { status: 201, tokenId, form },
      { status: 201, tokenId, form },
    ])
  })
})
