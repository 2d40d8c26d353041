import { setImmediate } from 'node:timers/promises'
import { http } from 'msw'
import { setupServer } from 'msw/node'
import { NotificationClient } from 'notification-subscriber'
import { type Emulator, emulatorHandlers, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { ConfigurationError } from '../../src/errors.js'
import { apiAuthorization, lowEnergy, Receiver } from './support.js'

let emulator: Emulator
beforeEach(async () => {
  emulator = await startEmulator()
})
afterEach(() => emulator.close())

/** Lets the emulator answer what global fetch asks for, until it is disposed of. */
function intercept(): Disposable {
  const server = setupServer(
    ...emulatorHandlers(emulator, http),
    http.all('*', () => new Response('another handler')),
  )
  server.listen()
  return { [Symbol.dispose]: () => server.close() }
}

/** Not through a connection: global fetch does not trust the emulator's certificate. */
const create = (user: string, url = 'https://app.example.com/') =>
  fetch(`${emulator.baseUrl}/api/subscriptions`, {
    method: 'POST',
    headers: { authorization: apiAuthorization(emulator) },
    body: new URLSearchParams({ notification_type: 'behavioral', username: user, callback_url: url }),
  })

describe('emulatorHandlers', () => {
  test('a reset becomes a network error', async () => {
    using _ = intercept()
    emulator.injectFault('create', { reset: 'after-processing' })
    await expect(create('reset')).rejects.toBeInstanceOf(TypeError)
    expect(emulator.subscriptions.at(-1)?.usernames).toEqual(['reset'])
  })

  test('a call that its caller aborts ends without a line of msw', async () => {
    using _ = intercept()
    using printed = vi.spyOn(console, 'error')
    emulator.injectFault('create', { delayMs: 1_000_000 })
    const controller = new AbortController()
    const { signal } = controller
    const call = fetch(`${emulator.baseUrl}/api/subscriptions`, { method: 'POST', signal })
    await vi.waitUntil(() => emulator.requestCounts.create === 1)
    controller.abort()
    await expect(call).rejects.toMatchObject({ name: 'AbortError' })
    await vi.waitUntil(() => emulator.requests[0]?.error !== undefined)
    await setImmediate()
    expect(printed).not.toHaveBeenCalled()
  })

  test('callbacks still go out over real HTTPS', async () => {
    using _ = intercept()
    await using receiver = await Receiver.start(emulator)
    await create('alice', receiver.url)
    expect(await emulator.notify(lowEnergy)).toMatchObject([{ status: 204 }])
  })

  test('another address is not answered', async () => {
    using _ = intercept()
    const answer = await fetch('https://other.example/api/subscriptions')
    expect(await answer.text()).toBe('another handler')
    expect(emulator.requestCounts.unknown).toBe(0)
  })

  test('an app with its production addresses is answered, whatever path they end with', async () => {
    await using acme = await startEmulator({ domain: 'acme', clientId: 'id', clientSecret: 'secret' })
    const baseUrl = 'https://app.example.com/notify(v1)/'
    const authUrl = 'https://app.example.com/notify(v1)/sso'
    const server = setupServer(
      ...emulatorHandlers(acme, http, { baseUrl, authUrl }),
      http.all('*', () => new Response('another handler')),
    )
    server.listen()
    const auth = { authUrl, domain: 'acme', clientId: 'id', clientSecret: 'secret' }
    await using client = new NotificationClient({ baseUrl, auth, fetch: globalThis.fetch })
    const { subscriptionId } = await client.createSubscription({
      notificationTypes: ['behavioral'],
      usernames: ['alice'],
      callbackUrl: 'https://app.example.com/notifications',
    })
    await client.unsubscribe(subscriptionId)
    const own = await fetch(`${acme.baseUrl}/api/subscriptions/0`, { method: 'DELETE' })
    const neighbours = await Promise.all(
      ['https://app.example.com/other', 'https://app.example.com/notify(v1)x/'].map(async (address) =>
        (await fetch(address)).text(),
      ),
    )
    server.close()
    expect(acme.requestCounts).toEqual({ token: 1, create: 1, update: 0, unsubscribe: 2, unknown: 0 })
    expect(acme.requests.map(({ path, status }) => [path, status])).toEqual([
      ['/auth/realms/acme/protocol/openid-connect/token', 200],
      ['/api/subscriptions', 201],
      [`/api/subscriptions/${subscriptionId}`, 204],
      ['/api/subscriptions/0', 401],
    ])
    expect(own.status).toBe(401)
    expect(neighbours).toEqual(['another handler', 'another handler'])
  })

  test.each<[string, unknown[], string]>([
    ['without msw’s http', [], "`http` must be an export of msw: `import { http } from 'msw'`"],
    [
      'with an address that is none',
      [http, { baseUrl: 'app.example.com' }],
      '`baseUrl` must be an absolute URL',
    ],
    ['with an http: address', [http, { authUrl: 'http://a.example' }], '`authUrl` must be an https: URL'],
  ])('are refused %s', (_, args, sentence) => {
    const make = () => Reflect.apply(emulatorHandlers, undefined, [emulator, ...args])
    expect(make).toThrow(ConfigurationError)
    expect(make).toThrow(`emulatorHandlers cannot be made: ${sentence}`)
  })
})
