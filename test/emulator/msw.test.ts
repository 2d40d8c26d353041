import { createRequire } from 'node:module'
import { http } from 'msw'
import { setupServer } from 'msw/node'
import { type Emulator, emulatorHandlers, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { ConfigurationError } from '../../src/errors.js'
import { apiAuthorization, basic, lowEnergy, Receiver, tokenPath } from './support.js'

let emulator: Emulator
beforeEach(async () => {
  emulator = await startEmulator()
})
afterEach(() => emulator.close())

/** Lets the emulator answer what global fetch asks for, until it is disposed of. */
function intercept(): Disposable {
  const server = setupServer(
    ...emulatorHandlers(emulator),
    http.all('*', () => new Response('somebody else')),
  )
  server.listen()
  return { [Symbol.dispose]: () => server.close() }
}

function post(path: string, authorization: string, fields: Record<string, string>): Promise<Response> {
  // Not through a connection: global fetch does not trust the emulator's certificate.
  return fetch(emulator.baseUrl + path, {
    method: 'POST',
    headers: { authorization },
    body: new URLSearchParams(fields),
  })
}

const create = (user: string, url = 'https://app.example.com/') =>
  post('/api/subscriptions', apiAuthorization(emulator), {
    notification_type: 'behavioral',
    username: user,
    callback_url: url,
  })

describe('emulatorHandlers', () => {
  test('answer token and subscription requests of a global fetch', async () => {
    using _ = intercept()
    const token = await post(tokenPath(emulator), basic(emulator.clientId, emulator.clientSecret), {
      grant_type: 'client_credentials',
    })
    expect(token.status).toBe(200)
    const { access_token } = JSON.parse(await token.text())
    const answer = await post('/api/subscriptions', `Bearer ${access_token}`, {
      notification_type: 'behavioral',
      username: 'msw',
      callback_url: 'https://app.example.com/',
    })
    expect(answer.status).toBe(201)
    expect(emulator.subscriptions.at(-1)?.usernames).toEqual(['msw'])
    expect((await create('msw')).status).toBe(409)
    const { subscription_id } = JSON.parse(await answer.text())
    const ended = await fetch(`${emulator.baseUrl}/api/subscriptions/${subscription_id}`, {
      method: 'DELETE',
      headers: { authorization: apiAuthorization(emulator) },
    })
    expect([ended.status, await ended.text()]).toEqual([204, ''])
  })

  test('a reset becomes a network error', async () => {
    using _ = intercept()
    emulator.injectFault('create', { reset: 'after-processing' })
    await expect(create('reset')).rejects.toBeInstanceOf(TypeError)
    expect(emulator.subscriptions.at(-1)?.usernames).toEqual(['reset'])
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
    expect(await answer.text()).toBe('somebody else')
    expect(emulator.requestCounts.unknown).toBe(0)
  })

  test('without an msw that can be loaded the error says what to install', () => {
    const require = createRequire(import.meta.url)
    const path = require.resolve('msw')
    const loaded = require.cache[path]
    const cause = new Error('no such package')
    // Stands for a package that is not there: Node looks here first.
    require.cache[path] = Object.defineProperty(
      Object.assign(Object.create(null), { loaded: true }),
      'exports',
      {
        get() {
          throw cause
        },
      },
    )
    try {
      const load = () => emulatorHandlers(emulator)
      const message = 'emulatorHandlers() needs msw, which cannot be loaded: npm install --save-dev msw'
      expect(load).toThrow(ConfigurationError)
      expect(load).toThrow(expect.objectContaining({ message, issues: [{ path: [], message }], cause }))
    } finally {
      if (loaded) require.cache[path] = loaded
      else delete require.cache[path]
    }
  })
})
