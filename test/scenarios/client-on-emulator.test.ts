import { createServer, type Server } from 'node:https'
import { text } from 'node:stream/consumers'
import { NotificationClient, OutcomeUnknownError, parseDelivery } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { listen } from '../support/listen.js'

let emulator: Emulator
let receiver: Server
let callbackUrl: string
const received: { headers: NodeJS.Dict<string | string[]>; body: string }[] = []

beforeEach(async () => {
  received.length = 0
  emulator = await startEmulator()
  receiver = createServer(emulator.tls, async (request, response) => {
    received.push({ headers: request.headers, body: await text(request) })
    response.writeHead(204).end()
  })
  callbackUrl = `https://127.0.0.1:${await listen(receiver)}/notifications`
})
afterEach(async () => {
  await emulator.close()
  receiver.close()
  receiver.closeAllConnections()
})

const alice = { notificationTypes: ['behavioral'], usernames: ['alice'] } as const
const lowEnergy = {
  type: 'lowEnergyAgentOpened',
  category: 'behavioral',
  username: 'alice',
  payload: { callId: 'c', username: 'alice', bTime: 21648, nTime: 35912, idx: 0 },
} as const

describe('the main job over real TLS (interface 1)', () => {
  test('a token is obtained, a subscription created, and a notification arrives typed with its parameters as headers', async () => {
    await using client = new NotificationClient(emulator.clientOptions)
    const { subscriptionId } = await client.createSubscription({
      notificationTypes: ['behavioral', 'call-score'],
      usernames: ['alice', 'bob'],
      callbackUrl,
      parameters: { token: 'callback-token' },
      headers: { UserData: 'myData' },
    })
    const results = await emulator.notify(lowEnergy)
    expect(results).toMatchObject([{ subscriptionId, status: 204 }])

    expect(received).toHaveLength(1)
    expect(received[0]?.headers).toMatchObject({ token: 'callback-token', userdata: 'myData' })
    const delivery = parseDelivery(received[0]?.body)
    expect(delivery.subscriptionId).toBe(subscriptionId)
    if (delivery.notification.type !== 'lowEnergyAgentOpened') expect.fail(delivery.notification.type)
    expect(delivery.notification.payload).toEqual(lowEnergy.payload)
  })

  test('an updated parameter goes out on later callbacks', async () => {
    await using client = new NotificationClient(emulator.clientOptions)
    const { subscriptionId } = await client.createSubscription({
      ...alice,
      callbackUrl,
      parameters: { token: 'old' },
    })
    await client.updateSubscriptionParameters(subscriptionId, { parameters: { token: 'new' } })
    await emulator.notify(lowEnergy)
    expect(received[0]?.headers.token).toBe('new')
  })

  test('200 concurrent creates on a cold client make one token request and 200 subscriptions', async () => {
    await using client = new NotificationClient(emulator.clientOptions)
    const ids = await Promise.all(
      Array.from({ length: 200 }, async (_, index) => {
        const usernames = [`agent-${index}`]
        return (await client.createSubscription({ ...alice, usernames, callbackUrl })).subscriptionId
      }),
    )
    expect(new Set(ids).size).toBe(200)
    expect(emulator.requestCounts).toMatchObject({ token: 1, create: 200 })
  })

  test.each([
    ['Basic', () => ({ username: emulator.username, password: emulator.password })],
    [
      'a token of the caller',
      () => ({ getAccessToken: () => new NotificationClient(emulator.clientOptions).getAccessToken() }),
    ],
  ])('%s authenticates the calls', async (_name, auth) => {
    await using client = new NotificationClient({ ...emulator.clientOptions, auth: auth() })
    await client.createSubscription({ ...alice, callbackUrl })
    expect(emulator.subscriptions).toHaveLength(1)
  })
})

describe('the state table (interface 3) as the client tells it', () => {
  test('duplicate: conflict, and with recreateIfExists a new id in its place', async () => {
    await using client = new NotificationClient(emulator.clientOptions)
    const first = await client.createSubscription({ ...alice, callbackUrl })
    expect(await client.tryCreateSubscription({ ...alice, callbackUrl })).toMatchObject({
      created: false,
      conflict: { reason: 'duplicate-or-overlap' },
    })
    const second = await client.createSubscription({ ...alice, callbackUrl, recreateIfExists: true })
    expect(second.subscriptionId).not.toBe(first.subscriptionId)
    expect(emulator.subscriptions.map(({ subscriptionId }) => subscriptionId)).toEqual([
      second.subscriptionId,
    ])
  })

  test('partial overlap: conflict also with recreateIfExists, and nothing changes', async () => {
    await using client = new NotificationClient(emulator.clientOptions)
    const { subscriptionId } = await client.createSubscription({ ...alice, callbackUrl })
    const overlapping = { ...alice, usernames: ['alice', 'bob'], callbackUrl, recreateIfExists: true }
    expect(await client.tryCreateSubscription(overlapping)).toMatchObject({
      created: false,
      conflict: { reason: 'partial-overlap', status: 409 },
    })
    expect(emulator.subscriptions.map((record) => record.subscriptionId)).toEqual([subscriptionId])
  })

  test('unsubscribe ends it; a second time it is not found', async () => {
    await using client = new NotificationClient(emulator.clientOptions)
    const { subscriptionId } = await client.createSubscription({ ...alice, callbackUrl })
    await client.unsubscribe(subscriptionId)
    expect(emulator.subscriptions).toEqual([])
    await expect(client.unsubscribe(subscriptionId)).rejects.toMatchObject({
      code: 'SUBSCRIPTION_NOT_FOUND',
      subscriptionId,
    })
  })
})

describe('tokens against a server that checks them (interface 5)', () => {
  test('revoked: the next call succeeds after exactly one new token and one repeat', async () => {
    await using client = new NotificationClient(emulator.clientOptions)
    await client.createSubscription({ ...alice, callbackUrl })
    emulator.revokeTokens()
    await client.createSubscription({ ...alice, usernames: ['bob'], callbackUrl })
    expect(emulator.requestCounts).toMatchObject({ token: 2, create: 3 })
  })

  test('a client secret with reserved characters works form-urlencoded where the server decodes it', async () => {
    await using decoding = await startEmulator({
      clientSecret: 's3cr:et/+%41',
      credentialsEncoding: 'form-urlencoded',
    })
    const { auth, ...options } = decoding.clientOptions
    await using encoded = new NotificationClient({
      ...options,
      auth: { ...auth, credentialsEncoding: 'form-urlencoded' },
    })
    expect(await encoded.getAccessToken()).toMatch(/^eyJ/)
    await using raw = new NotificationClient({ ...options, auth: { ...auth, credentialsEncoding: 'raw' } })
    await expect(raw.getAccessToken()).rejects.toMatchObject({ code: 'TOKEN_REQUEST', status: 401 })
  })
})

describe('faults', () => {
  test.each([
    ['before it was processed', 'before-processing', 0],
    ['after it was processed', 'after-processing', 1],
  ] as const)(
    'a create whose connection is reset %s is an unknown outcome that recreateIfExists settles',
    async (_name, reset, exists) => {
      await using client = new NotificationClient(emulator.clientOptions)
      emulator.injectFault('create', { reset })
      await expect(client.createSubscription({ ...alice, callbackUrl })).rejects.toBeInstanceOf(
        OutcomeUnknownError,
      )
      expect(emulator.subscriptions).toHaveLength(exists)

      const settled = await client.createSubscription({ ...alice, callbackUrl, recreateIfExists: true })
      expect(emulator.subscriptions.map(({ subscriptionId }) => subscriptionId)).toEqual([
        settled.subscriptionId,
      ])
    },
  )
})
