import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Answer, create, send } from '../support.js'

let emulator: Emulator
beforeAll(async () => {
  emulator = await startEmulator()
})
afterAll(() => emulator.close())

const url = 'https://app.example.com/'
const refusalOf = ({ status, body }: Answer) => [status, JSON.parse(body)]

describe('section 4: paths and methods', () => {
  test.each([
    ['GET', '/api/subscriptions', 'POST'],
    ['DELETE', '/api/subscriptions', 'POST'],
    ['GET', '/api/subscriptions/1', 'PUT, DELETE'],
    ['POST', '/api/subscriptions/1', 'PUT, DELETE'],
  ])('%s %s is 405 with Allow: %s', async (method, path, allow) => {
    const answer = await send(emulator, method, path)
    const message = `Only ${allow} is allowed here`
    expect(refusalOf(answer)).toEqual([405, { error: 'method_not_allowed', message }])
    expect(answer.headers.allow).toBe(allow)
  })

  test.each([
    '/',
    '/api',
    '/api/subscriptions/',
    '/api/subscriptions/x',
    '/api/subscriptions/1/x',
    '/api/subscriptions/1x',
    '/v1/api/subscriptions/1',
    '//x',
    '/v1/auth/realms/emulator/protocol/openid-connect/token',
    '/auth/realms/emulator/protocol/openid-connect/token/introspect',
    '/auth/realms//protocol/openid-connect/token',
  ])('%s is 404', async (path) => {
    const answer = await send(emulator, 'POST', path)
    const message = 'There is nothing at this path'
    expect(refusalOf(answer)).toEqual([404, { error: 'not_found', message }])
  })

  test('a target that is no path is answered, too', async () => {
    expect((await send(emulator, 'GET', 'https://other.example/')).status).toBe(400)
  })
})

describe('the size of a body', () => {
  test('answers 413 to a body over 1 MiB, and keeps the connection usable', async () => {
    const answer = await create(emulator, { url, fields: { token: 'x'.repeat(1024 * 1024) } })
    const message = 'The request body is over 1048576 bytes'
    expect(refusalOf(answer)).toEqual([413, { error: 'content_too_large', message }])
    expect((await create(emulator, { url, fields: { token: 'x'.repeat(1000 * 1000) } })).status).toBe(201)
    for (const [size, status] of [
      [1024 * 1024, 401],
      [1024 * 1024 + 1, 413],
    ] as const) {
      const body = 'x'.repeat(size)
      expect((await send(emulator, 'POST', '/api/subscriptions', { body })).status).toBe(status)
    }
  })

  test('reads no more of a body than shows that it is too long', async () => {
    await using fresh = await startEmulator()
    let pulls = 0
    const body = new ReadableStream({
      pull(controller) {
        pulls += 1
        controller.enqueue(new TextEncoder().encode('x'.repeat(400 * 1024)))
      },
    })
    const request = new Request(`${fresh.baseUrl}/api/subscriptions`, {
      method: 'POST',
      body,
      duplex: 'half',
    })
    expect((await fresh.fetch(request)).status).toBe(413)
    expect(fresh.requests[0]).toMatchObject({ bodyLength: 1024 * 1024, status: 413 })
    expect(pulls).toBeLessThan(6)
  })
})
