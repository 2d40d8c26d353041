import { expect, test } from 'vitest'
import { checkFixture } from './check-support.js'
import { call } from './support.js'

const fixture = checkFixture()
const jwt = /^[\w-]+\.[\w-]+\.[\w-]+$/

/** The answer of a token endpoint that issues this token. */
const issued = (accessToken: string) =>
  JSON.stringify({ access_token: accessToken, token_type: 'Bearer', expires_in: 1800 })
const jwtOf = (claims: object) => `x.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.x`

const token = (...args: string[]) => call(['token', ...args], fixture.environment())

test('shows the claims, but not the token', async () => {
  const iss = `${fixture.emulator.authUrl}/auth/realms/emulator`
  const stdout = `✔ Bearer token: iss ${iss}, azp emulator-client, expires in 60 minutes, scope none`
  expect(await token()).toEqual({ code: 0, stdout, stderr: '' })
  const claims = { iss, azp: 'emulator-client', exp: expect.any(Number) }
  expect(JSON.parse((await token('--json')).stdout)).toEqual({ event: 'token', type: 'Bearer', ...claims })
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

test('a token that is no JWT is said to be none', async () => {
  fixture.emulator.injectFault('token', { malformedBody: issued('opaque') })
  expect((await token()).stdout).toBe('✔ Bearer token: not a JWT: only the service can read it')
})

test('a token that has expired already fails, except where it is only printed', async () => {
  const expired = jwtOf({ exp: Math.floor(Date.now() / 1000) - 3_600 })
  fixture.emulator.injectFault('token', { malformedBody: issued(expired) }, { times: 2 })
  const { code, stdout, stderr } = await token()
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).toMatch(/expired 60 minutes ago[\s\S]*clock/)
  expect((await token('--print-token')).stdout).toBe(expired)
})
