/** The messages: test/messages/tokens.txt. */
import { randomUUID } from 'node:crypto'
import { inspect } from 'node:util'
import { generateKeyPair, jwtVerify, SignJWT } from 'jose'
import type { ClientAuthentication } from 'notification-subscriber'
import { beforeEach, describe, expect, test } from 'vitest'
import { failureOf } from '../support/failure.js'
import {
  credentials,
  type FakeService,
  fakeService,
  subscription,
  tokenAnswer,
  tokenUrl,
} from '../support/fake-service.js'

let service: FakeService
beforeEach(() => {
  service = fakeService()
})

describe('the request (docs/service.md, Endpoints)', () => {
  test('is a form POST with Basic credentials, raw by default', async () => {
    const auth = { ...credentials, clientId: 'id', clientSecret: 's3cr:et/+%ü' }
    await service.client({ auth }).getAccessToken()
    const [request] = service.tokenRequests
    expect(request?.method).toBe('POST')
    expect(request?.url).toBe(tokenUrl)
    expect(request?.headers.get('content-type')).toBe('application/x-www-form-urlencoded')
    expect(request?.headers.get('authorization')).toBe(
      `Basic ${Buffer.from('id:s3cr:et/+%ü', 'utf8').toString('base64')}`,
    )
    expect(request?.headers.get('accept')).toBe('application/json')
    expect(request?.body).toBe('grant_type=client_credentials')
  })

  const special = { ...credentials, clientId: 'i:d', clientSecret: 's3cr:et/+% ü' }

  test('form-urlencoded credentials are encoded before base64 (RFC 6749 section 2.3.1)', async () => {
    await service.client({ auth: { ...special, credentialsEncoding: 'form-urlencoded' } }).getAccessToken()
    const basic = Buffer.from('i%3Ad:s3cr%3Aet%2F%2B%25+%C3%BC').toString('base64')
    expect(service.tokenRequests[0]?.headers.get('authorization')).toBe(`Basic ${basic}`)
  })

  test('ID and secret are sent in the body instead (RFC 6749 section 2.3.1)', async () => {
    const auth = { ...special, scope: 'read', clientAuthentication: 'body' } as const
    await service.client({ auth }).getAccessToken()
    const [request] = service.tokenRequests
    expect(request?.headers.has('authorization')).toBe(false)
    expect(request?.body).toBe(
      'grant_type=client_credentials&scope=read&client_id=i%3Ad&client_secret=s3cr%3Aet%2F%2B%25+%C3%BC',
    )
  })

  test.each(['s3cr:et/+% ü', 's3cr%3Aet%2F%2B%25+%C3%BC'])(
    'no error shows the secret of the body as %s',
    async (spelling) => {
      service.onToken = () => Response.json({ error: 'x', error_description: spelling }, { status: 400 })
      const auth = { ...special, clientAuthentication: 'body' } as const
      const error = await failureOf(service.client({ auth }).getAccessToken())
      expect(inspect(error)).not.toContain(spelling)
    },
  )

  test('a scope is sent, and the domain is encoded in the path', async () => {
    const authUrl = 'https://auth.example.com/base/'
    const auth = { ...credentials, authUrl, domain: 'a/b c', scope: 'read write' }
    service.onCall = () => tokenAnswer('x')
    await service.client({ auth }).getAccessToken()
    const url = `${authUrl}auth/realms/a%2Fb%20c/protocol/openid-connect/token`
    expect(service.calls).toMatchObject([{ url, body: 'grant_type=client_credentials&scope=read+write' }])
  })
})

describe('a function that authenticates the client', () => {
  const { clientSecret: _, ...withoutSecret } = credentials
  const { clientId } = credentials
  const clientWith = (clientAuthentication: ClientAuthentication, options = {}) =>
    service.client({ auth: { ...withoutSecret, clientAuthentication }, ...options })
  const keys = generateKeyPair('ES256')
  const privateKeyJwt: ClientAuthentication = async ({ url, body }) => {
    const jwt = new SignJWT({ iss: clientId, sub: clientId, aud: url, jti: randomUUID() })
    const { privateKey } = await keys
    const assertion = await jwt.setProtectedHeader({ alg: 'ES256' }).setExpirationTime('1m').sign(privateKey)
    body.set('client_assertion_type', 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer')
    body.set('client_assertion', assertion)
  }
  const assertionsOf = (requests: readonly { body: string }[]) =>
    requests.map(({ body }) => String(new URLSearchParams(body).get('client_assertion')))

  test('sends private_key_jwt (RFC 7523), and each repeated request has an assertion of its own', async () => {
    service.onToken = (_call, count) => (count < 3 ? new Response('', { status: 503 }) : tokenAnswer('token'))
    const client = clientWith(privateKeyJwt, { retry: { baseDelayMs: 0 } })
    expect(await client.getAccessToken()).toBe('token')
    const { publicKey } = await keys
    const verified = await Promise.all(
      assertionsOf(service.tokenRequests).map((jwt) => jwtVerify(jwt, publicKey, { audience: tokenUrl })),
    )
    expect(verified.map(({ payload }) => payload.iss)).toEqual([clientId, clientId, clientId])
    expect(new Set(verified.map(({ payload }) => payload.jti)).size).toBe(3)
    expect(service.tokenRequests[0]?.body).toMatch(
      /^grant_type=client_credentials&client_assertion_type=urn%3A/,
    )
    expect(service.tokenRequests[0]?.headers.has('authorization')).toBe(false)
  })

  test('may set headers, and no error shows what it set', async () => {
    const client = clientWith(({ headers, body }) => {
      headers.set('Authorization', 'Basic s3cret-header')
      headers.set('DPoP', 's3cret-proof')
      body.set('client_assertion', 's3cret-assertion')
      body.set('client_id', clientId)
    })
    for (const text of ['s3cret-header', 's3cret-proof', 's3cret-assertion']) {
      service.onToken = () => Response.json({ error: 'x', error_description: text }, { status: 400 })
      const error = await failureOf(client.getAccessToken())
      expect(inspect(error)).not.toContain('s3cret')
    }
    service.onToken = () => Response.json({ error_description: `no ${clientId}` }, { status: 400 })
    await expect(client.getAccessToken()).rejects.toMatchObject({ errorDescription: `no ${clientId}` })
    expect(service.tokenRequests[0]?.headers.get('dpop')).toBe('s3cret-proof')
  })

  test('that throws ends the call with its own error, and sends nothing', async () => {
    const failure = new Error('the vault is sealed')
    const client = clientWith(() => {
      throw failure
    })
    await expect(client.createSubscription(subscription)).rejects.toBe(failure)
    expect(service.tokenRequests).toEqual([])
  })
})

describe('the answer (docs/service.md, Resources)', () => {
  test.each([{ token_type: 'bearer', extra: true }, { token_type: 'bEaReR' }, { expires_in: '1000000000' }])(
    'may have %j',
    async (fields) => {
      service.onToken = () =>
        Response.json({ access_token: 'a.b.c', token_type: 'Bearer', expires_in: 60, ...fields })
      expect(await service.client().getAccessToken()).toBe('a.b.c')
    },
  )

  test.each([
    ['token_type', 'mac'],
    ['access_token', 'secret-jwt\r\nX: y'],
    ['access_token', undefined],
    ['expires_in', undefined],
    ['expires_in', '60 s'],
  ])('%s may not be %j', async (field, value) => {
    const answer = { access_token: 'secret-jwt', token_type: 'Bearer', expires_in: 60, [field]: value }
    service.onToken = () => Response.json(answer)
    const error = await failureOf(service.client().getAccessToken())
    expect(error).toMatchObject({ code: 'RESPONSE_VALIDATION', status: 200, issues: [{ path: [field] }] })
    expect(inspect(error, { depth: null })).not.toContain('secret-jwt')
  })

  test.each([
    [
      '{"access_token":"a\\"b","refresh_token" : "c","id_token":"d',
      '{"access_token":"[redacted]","refresh_token" : "[redacted]","id_token":"[redacted]',
    ],
    [
      'access_token=ab/c&refresh_token=d&expires_in=60\nid_token=e f',
      'access_token=[redacted]&refresh_token=[redacted]&expires_in=60\nid_token=[redacted] f',
    ],
    [
      '<b>eyJhbGciOiJub25lIn0.eyJqdGkiOiIx_In0.c2ln-YQ</b> eyJhbGciOiJub25lIn0.eyJ',
      '<b>[redacted]</b> [redacted]',
    ],
    ['eyJ.1.2.3.4 of a JWE', '[redacted] of a JWE'],
    ['see auth.example.com, eyJust and eyJ', 'see auth.example.com, eyJust and eyJ'],
    ['glued_toeyJhbGci.eyJqdGki.c2lneyJhbGci.eyJ', 'glued_to[redacted]'],
    ['"access_token":"line\nbreak\\\nand more"', '"access_token":"[redacted]"'],
    [
      `at the token endpoint, ${credentials.clientSecret} is right`,
      '[redacted: it repeats a secret of the request]',
    ],
  ])('a body that is no token is shown without what looks like one: %s', async (body, shown) => {
    service.onToken = () => new Response(body)
    const error = await failureOf(service.client().getAccessToken())
    expect(error).toMatchObject({ body: shown, issues: [{ path: [], message: 'is not JSON' }] })
  })
})

describe('an error answer (RFC 6749 section 5.2)', () => {
  test.each<[string, string, { code?: string; description?: string }, RegExp]>([
    [
      'an error that is an object',
      '{"error":{"code":"AADSTS90002","message":"Tenant not found"}}',
      { code: 'AADSTS90002', description: 'Tenant not found' },
      /AADSTS90002: Tenant not found/,
    ],
    [
      'problem details',
      '{"type":"about:blank","title":"IP not allowed","detail":"not on the list"}',
      { description: 'not on the list' },
      /IP not allowed: not on the list/,
    ],
    ['another JSON', '{"fault":{"faultstring":"Invalid ApiKey"}}', {}, /Invalid ApiKey/],
    [
      'a page',
      '<html><head><title>Blocked</title></head><style>b{}</style><script>b()</script>by <b>rule</b> 77',
      {},
      /Blocked: by rule 77/,
    ],
    ['XML', '<fault><message>Blocked by rule 77</message></fault>', {}, /\(Blocked by rule 77\)/],
    [
      'a list beside a title',
      '{"title":"One error","errors":{"id":["unknown"]}}',
      { description: 'One error' },
      /"unknown"/,
    ],
  ])('the reason is read from %s', async (_name, body, { code, description }, words) => {
    service.onToken = () => new Response(body, { status: 403 })
    const error = await failureOf(service.client().getAccessToken())
    expect(error).toMatchObject({ body, error: code, errorDescription: description })
    expect(error).toHaveProperty('message', expect.stringMatching(words))
  })

  test('a secret in Content-Encoding is shown nowhere', async () => {
    for (const status of [200, 400]) {
      const headers = { 'content-encoding': credentials.clientSecret }
      service.onToken = () => new Response('x', { status, headers })
      const error = await failureOf(service.client().getAccessToken())
      expect(inspect(error, { depth: null }) + JSON.stringify(error)).not.toContain(credentials.clientSecret)
    }
  })
})
