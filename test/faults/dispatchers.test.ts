/** Any dispatcher of undici 6, 7 or 8: the same outcomes, and the client knows whether a request was sent. */
import { createRequire } from 'node:module'
import { type DispatcherLike, NotificationClient } from 'notification-subscriber'
import { Agent, interceptors, MockAgent } from 'undici'
import { describe, expect, test } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { auth, expectNoSecretIn } from '../support/secrets.js'
import { operations } from './operations.js'
import { type Script, ScriptedServer } from './scripted-server.js'

interface Undici {
  readonly Agent: new (options: {
    connections?: number
    connect: { ca: string }
  }) => DispatcherLike & { destroy(): Promise<void> }
}

const { ca, tls } = createLoopbackCertificate()
const require = createRequire(import.meta.url)

/** Undici 8 loads on newer versions of Node.js only. */
function load(name: string): Undici | undefined {
  try {
    return require(name)
  } catch {
    return undefined
  }
}

const create = async (client: NotificationClient, timeoutMs: number) =>
  operations.find(({ name }) => name === 'create')?.call(client, timeoutMs)

const created = 'HTTP/1.1 201 Created\r\ncontent-length: 21\r\n\r\n{"subscription_id":7}'

/** Long enough for a busy machine to get the request to the server. */
const shortTimeoutMs = 1_000

describe.concurrent.each(['undici6', 'undici', 'undici8'])('a dispatcher of %s', (name) => {
  const undici = load(name)
  const testWhereItLoads = test.skipIf(undici === undefined) // undici 8 needs Node.js 22

  async function outcomeOf(script: Script, calls: (client: NotificationClient) => Promise<unknown>[]) {
    await using server = await ScriptedServer.listen(tls, script)
    const { Agent } = undici as Undici
    const dispatcher = new Agent({ connections: 1, connect: { ca } })
    await using client = new NotificationClient({ baseUrl: server.origin, auth: auth.token, dispatcher })
    const results = await Promise.allSettled(calls(client))
    expectNoSecretIn(results)
    await dispatcher.destroy()
    return { results, seen: server.seen }
  }

  testWhereItLoads('makes calls', async () => {
    const { results } = await outcomeOf(
      async (connection) => {
        await connection.request()
        await connection.write(created)
      },
      (client) => [create(client, 30_000)],
    )
    expect(results).toMatchObject([{ value: { subscriptionId: 7 } }])
  })

  testWhereItLoads(
    'a create without a connection in time is a timeout, and one without an answer in time an unknown outcome',
    async () => {
      const waiting = await outcomeOf(
        (connection) => connection.stall(),
        (client) => [create(client, shortTimeoutMs)],
      )
      expect(waiting).toMatchObject({ results: [{ reason: { code: 'TIMEOUT' } }], seen: 0 })
      const sent = await outcomeOf(
        async (connection) => {
          await connection.request()
          await connection.stall()
        },
        (client) => [create(client, shortTimeoutMs)],
      )
      expect(sent).toMatchObject({
        results: [{ reason: { code: 'OUTCOME_UNKNOWN', cause: { code: 'TIMEOUT' } } }],
        seen: 1,
      })
    },
  )

  testWhereItLoads('a create that waits in line for a connection was not sent', async () => {
    const { results, seen } = await outcomeOf(
      async (connection) => {
        await connection.request()
        await connection.stall()
      },
      (client) => [create(client, shortTimeoutMs), create(client, shortTimeoutMs / 2)],
    )
    expect(results).toMatchObject([{ reason: { code: 'OUTCOME_UNKNOWN' } }, { reason: { code: 'TIMEOUT' } }])
    expect(seen).toBe(1)
  })

  testWhereItLoads('a connection that breaks leaves the outcome unknown', async () => {
    const { results, seen } = await outcomeOf(
      async (connection) => {
        await connection.request()
        await connection.reset()
      },
      (client) => [create(client, 30_000)],
    )
    expect(results).toMatchObject([{ reason: { code: 'OUTCOME_UNKNOWN', cause: { requestSent: true } } }])
    expect(seen).toBe(1)
  })
})

describe.concurrent('what else may be given as a dispatcher', () => {
  const agent = () => new Agent({ connect: { ca } })

  test.each<[string, () => DispatcherLike, afterTimeout: string]>([
    ['one composed of interceptors', () => agent().compose(interceptors.retry()), 'TIMEOUT'],
    // It does not tell when a request leaves: what may have been sent counts as sent.
    ['an object that only has `request`', () => only(agent()), 'OUTCOME_UNKNOWN'],
  ])('%s', async (_name, dispatcherOf, afterTimeout) => {
    await using healthy = await ScriptedServer.listen(tls, async (connection) => {
      await connection.request()
      await connection.write(created)
    })
    await using stalling = await ScriptedServer.listen(tls, (connection) => connection.stall())
    const dispatcher = dispatcherOf()
    const clientOf = ({ origin }: ScriptedServer) =>
      new NotificationClient({ baseUrl: origin, auth: auth.token, dispatcher })
    expect(await create(clientOf(healthy), 30_000)).toEqual({ subscriptionId: 7 })
    await expect(create(clientOf(stalling), shortTimeoutMs)).rejects.toMatchObject({ code: afterTimeout })
  })

  test('a MockAgent, also one that matches the body', async () => {
    const dispatcher = new MockAgent()
    dispatcher.disableNetConnect()
    const mock = dispatcher.get('https://service.example.com')
    const body = (text: string) => text.startsWith('notification_type=behavioral&username=alice&')
    mock.intercept({ path: '/api/subscriptions', method: 'POST', body }).reply(201, { subscription_id: 7 })
    const client = new NotificationClient({
      baseUrl: 'https://service.example.com',
      auth: auth.token,
      dispatcher,
    })
    expect(await create(client, 30_000)).toEqual({ subscriptionId: 7 })
    const lost = Object.assign(new Error('gone'), { code: 'ECONNRESET' })
    mock.intercept({ path: '/api/subscriptions', method: 'POST' }).replyWithError(lost)
    await expect(create(client, 30_000)).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
  })
})

function only(dispatcher: DispatcherLike): DispatcherLike {
  return { request: (options) => dispatcher.request(options) }
}
