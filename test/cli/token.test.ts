import { expect, test } from 'vitest'
import { checkCommand } from '../../src/cli/check.js'
import { tokenCommand } from '../../src/cli/token.js'
import { checkFixture } from './check-support.js'
import { call } from './support.js'

const fixture = checkFixture()
const jwt = /^[\w-]+\.[\w-]+\.[\w-]+$/

/** The answer of a token endpoint that issues this token. */
const issued = (accessToken: string) =>
  JSON.stringify({ access_token: accessToken, token_type: 'Bearer', expires_in: 1800 })
const jwtOf = (claims: object) => `x.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`

const token = (...args: string[]) => call(tokenCommand, args, fixture.environment())

test('shows lifetime and claims, but not the token', async () => {
  const { code, stdout, stderr } = await token()
  expect([code, stderr]).toEqual([0, ''])
  const issuer = `${fixture.emulator.authUrl}/auth/realms/emulator`
  expect(stdout).toBe(
    `✔ Bearer token, valid for 60 minutes: iss ${issuer}, azp emulator-client, expires in 60 minutes, scope none`,
  )
})

test('--json is one object, without the token', async () => {
  const { code, stdout } = await token('--json')
  expect(code).toBe(0)
  expect(JSON.parse(stdout)).toEqual({
    event: 'token',
    type: 'Bearer',
    expiresInMs: expect.any(Number),
    iss: `${fixture.emulator.authUrl}/auth/realms/emulator`,
    azp: 'emulator-client',
    exp: expect.any(Number),
  })
})

test('--print-token prints the token and nothing else', async () => {
  const { code, stdout, stderr } = await token('--print-token')
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toMatch(jwt)
  const { accessToken } = JSON.parse((await token('--print-token', '--json')).stdout)
  expect(accessToken).toMatch(jwt)
})

test('a failure leaves standard output empty, so that $(…) holds no text of an error', async () => {
  fixture.emulator.injectFault('token', { status: 400, body: '{"error":"invalid_scope"}' })
  const { code, stdout, stderr } = await token('--print-token')
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(/^✘ TOKEN_REQUEST: .* Check NOTIFICATION_SCOPE/)
})

test('a token that is no JWT has only a lifetime', async () => {
  fixture.emulator.injectFault('token', { malformedBody: issued('opaque') })
  expect((await token()).stdout).toBe(
    '✔ Bearer token, valid for 30 minutes: not a JWT: only the service can read it',
  )
})

test('a token that has expired already fails, except where it is only printed', async () => {
  const expired = jwtOf({ exp: Math.floor(Date.now() / 1000) - 3_600 })
  fixture.emulator.injectFault('token', { malformedBody: issued(expired) }, { times: 2 })
  const { code, stdout, stderr } = await token()
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(/expired 60 minutes ago[\s\S]*clock/)
  expect((await token('--print-token')).stdout).toBe(expired)
})

test('claims that repeat the client secret are not shown, by neither command', async () => {
  const { clientId, clientSecret } = fixture.emulator
  const claims = {
    iss: `https://auth.example/${clientSecret}`,
    azp: Buffer.from(`${clientId}:${clientSecret}`).toString('base64'),
    scope: encodeURIComponent(`all ${clientSecret}`),
  }
  fixture.emulator.injectFault('token', { malformedBody: issued(jwtOf(claims)) }, { times: 3 })
  const printed = [
    await token(),
    await token('--json'),
    await call(checkCommand, ['--json'], fixture.environment()),
  ]
  const texts = printed.map(({ stdout }) => stdout)
  expect(texts.map((text) => text.match(/\[redacted/g)?.length)).toEqual([3, 3, 3])
  for (const text of texts) {
    for (const repeated of [clientSecret, claims.azp, claims.scope]) expect(text).not.toContain(repeated)
  }
})

test('a user name and a password have no token', async () => {
  const { username, password } = fixture.emulator
  const env = { NOTIFICATION_USERNAME: username, NOTIFICATION_PASSWORD: password }
  const { code, stdout, stderr } = await call(tokenCommand, [], env)
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr).toContain('NOTIFICATION_CLIENT_ID')
})
