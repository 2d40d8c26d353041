import { decodeJwt, decodeProtectedHeader } from 'jose'
import { type Emulator, type EmulatorOptions, startEmulator } from 'notification-subscriber/emulator'
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest'
import { expectPage } from '../../support/message-page.js'
import { createPath, routeOf, tokenPath } from '../../support/routes.js'
import { accessToken, basic, form, requestToken, send } from '../support.js'

const emulator = await startEmulator()
afterAll(() => emulator.close())
afterEach(() => void vi.useRealTimers())

async function statusWith(emulator: Emulator, authorization?: string): Promise<number> {
  // Unsubscribing something that does not exist: 404 with good credentials, 401 with others.
  const headers = authorization === undefined ? {} : { authorization }
  const { method, path } = routeOf('unsubscribe', 999)
  return (await send(emulator, method, path, { headers })).status
}

describe('the token endpoint (docs/service.md, Endpoints)', () => {
  test('issues a signed JWT of type Bearer with its lifetime, not to be stored by caches', async () => {
    await using emulator = await startEmulator({ tokenLifetimeSeconds: 120 })
    const { status, headers, body } = await requestToken(emulator)
    expect(status).toBe(200)
    expect(headers['content-type']).toBe('application/json')
    expect(headers['cache-control']).toBe('no-store')
    const token = JSON.parse(body)
    expect(token).toEqual({ access_token: expect.any(String), token_type: 'Bearer', expires_in: 120 })
    expect(decodeProtectedHeader(token.access_token)).toEqual({ alg: 'ES256', typ: 'JWT' })
    const { iat = 0, exp = 0, ...claims } = decodeJwt(token.access_token)
    expect(claims).toEqual({
      iss: `${emulator.authUrl}/auth/realms/emulator`,
      sub: emulator.clientId,
      azp: emulator.clientId,
      jti: expect.stringMatching(/^[0-9a-f-]{36}$/),
    })
    // The end is rounded up to whole seconds.
    expect([120, 121]).toContain(exp - iat)
  })

  test('accepts client ID and secret in the form instead of the header', async () => {
    const credentials = { client_id: emulator.clientId, client_secret: emulator.clientSecret }
    const body = new URLSearchParams({ grant_type: 'client_credentials', ...credentials }).toString()
    expect((await requestToken(emulator, { authorization: null, body })).status).toBe(200)
  })

  test('answers invalid_client with 401 and WWW-Authenticate to wrong, missing or foreign credentials', async () => {
    await using emulator = await startEmulator({ domain: 'acme "north"' })
    const wrong = [basic(emulator.clientId, 'wrong'), 'Bearer x', 'x', null]
    for (const authorization of wrong) {
      const answer = await requestToken(emulator, { authorization })
      expect(answer.status).toBe(401)
      expect(JSON.parse(answer.body)).toEqual({
        error: 'invalid_client',
        error_description: 'No credentials, or not those of this emulator',
      })
      expect(answer.headers['www-authenticate']).toBe('Basic realm="acme \\"north\\""')
      expect(answer.headers['cache-control']).toBe('no-store')
    }
  })

  test('answers 400 with what is wrong in the request', async () => {
    const messages: Record<string, string> = {}
    for (const [name, body, contentType] of [
      ['another grant type', 'grant_type=password', form],
      ['a field twice', 'grant_type=client_credentials&grant_type=client_credentials', form],
      ['another content type', '{"grant_type":"client_credentials"}', 'application/json'],
    ] as const) {
      const answer = await requestToken(emulator, { body, contentType })
      expect([name, answer.status]).toEqual([name, 400])
      const { error, error_description } = JSON.parse(answer.body)
      messages[name] = `${error}: ${error_description}`
    }
    await expectPage('emulator-token-refusals', messages)
  })

  test('answers 404 for another domain, and 405 to another method', async () => {
    await using emulator = await startEmulator({ domain: 'acme+' })
    expect((await requestToken(emulator)).status).toBe(200)
    for (const other of ['other', 'acme%20', '%zz']) {
      const path = tokenPath('X').replace('X', other)
      const answer = await send(emulator, 'POST', path, { headers: { 'content-type': form } })
      expect([answer.status, JSON.parse(answer.body)]).toEqual([
        404,
        { error: 'not_found', error_description: 'There is no such domain' },
      ])
    }
    const get = await send(emulator, 'GET', tokenPath(emulator.domain))
    expect([get.status, get.headers.allow]).toEqual([405, 'POST'])
  })

  const secret = 's3cr:et/+%41 ä'
  const encoded = encodeURIComponent(secret).replaceAll('%20', '+')
  test.each<[NonNullable<EmulatorOptions['credentialsEncoding']>, string, string]>([
    ['raw', secret, encoded],
    ['form-urlencoded', encoded, secret],
  ])(
    'takes Basic credentials %s and refuses the other encoding',
    async (credentialsEncoding, right, wrong) => {
      await using emulator = await startEmulator({ clientSecret: secret, credentialsEncoding })
      const ask = (sent: string) => requestToken(emulator, { authorization: basic(emulator.clientId, sent) })
      expect((await ask(right)).status).toBe(200)
      expect((await ask(wrong)).status).toBe(401)
      expect((await requestToken(emulator, { authorization: basic('wrong', right) })).status).toBe(401)
      // No percent-encoding.
      expect((await requestToken(emulator, { authorization: basic('%', '%') })).status).toBe(401)
      expect(emulator.clientOptions.auth.credentialsEncoding).toBe(credentialsEncoding)
    },
  )
})

describe('authorization of subscription calls (docs/service.md, Authentication)', () => {
  test('accepts a token and Basic credentials, with the scheme in any case', async () => {
    const token = await accessToken(emulator)
    const credentials = basic(emulator.username, emulator.password).replace('Basic ', '')
    const good = [`Bearer ${token}`, `bearer ${token}`, `Basic ${credentials}`, `BASIC   ${credentials}`]
    for (const authorization of good) expect(await statusWith(emulator, authorization)).toBe(404)
    const bad = [
      ...[undefined, 'Basic', `Basic ${credentials} x`, `x Basic ${credentials}`, `Digest ${credentials}`],
      ...[basic(emulator.username, 'wrong'), basic(emulator.clientId, emulator.clientSecret)],
    ]
    for (const authorization of bad) expect(await statusWith(emulator, authorization)).toBe(401)
  })

  test.each([
    ['Bearer nonsense', 'Bearer realm="notifications", error="invalid_token", Basic realm="notifications"'],
    ['Basic nonsense', 'Bearer realm="notifications", Basic realm="notifications"'],
  ])('names both schemes to "%s"', async (authorization, expected) => {
    const answer = await send(emulator, 'POST', createPath, { headers: { authorization } })
    expect(answer.headers['www-authenticate']).toBe(expected)
  })

  test('refuses a token with a changed claim, without a signature, or from another emulator', async () => {
    await using other = await startEmulator()
    const [header = '', , signature = ''] = (await accessToken(emulator)).split('.')
    const claims = { ...decodeJwt(await accessToken(emulator)), exp: 4e9 }
    const payload = Buffer.from(JSON.stringify(claims)).toString('base64url')
    const none = Buffer.from('{"alg":"none"}').toString('base64url')
    expect(await statusWith(emulator, `Bearer ${header}.${payload}.${signature}`)).toBe(401)
    expect(await statusWith(emulator, `Bearer ${none}.${payload}.`)).toBe(401)
    expect(await statusWith(emulator, `Bearer ${await accessToken(other)}`)).toBe(401)
  })

  test('a token lives for exactly its lifetime, to the millisecond', async () => {
    await using emulator = await startEmulator({ tokenLifetimeSeconds: 1 })
    vi.useFakeTimers({ toFake: ['Date'], now: Date.UTC(2030, 0, 1, 12, 0, 0, 700) })
    const token = await accessToken(emulator)
    expect(await statusWith(emulator, `Bearer ${token}`)).toBe(404)
    vi.setSystemTime(Date.now() + 999)
    expect(await statusWith(emulator, `Bearer ${token}`)).toBe(404)
    vi.setSystemTime(Date.now() + 1)
    expect(await statusWith(emulator, `Bearer ${token}`)).toBe(401)
  })

  test('revokeTokens() refuses every earlier token and no later one', async () => {
    const early = await accessToken(emulator)
    emulator.revokeTokens()
    expect(await statusWith(emulator, `Bearer ${early}`)).toBe(401)
    expect(await statusWith(emulator, `Bearer ${await accessToken(emulator)}`)).toBe(404)
  })
})
