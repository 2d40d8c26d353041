import { setImmediate } from 'node:timers/promises'
import { type CallbackFault, type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { InvalidRequestError, TimeoutError } from '../../src/errors.js'
import { collectGarbage } from '../support/heap.js'
import { expectPage, problemsIn } from '../support/message-page.js'
import { createPath } from '../support/routes.js'
import { create, created, lowEnergy, Receiver, requestToken, unsubscribe, update } from './support.js'

let emulator: Emulator
beforeEach(async () => {
  emulator = await startEmulator()
})
afterEach(() => emulator.close())

describe('injected faults of requests', () => {
  test('the next n requests get status, body and headers of the fault, and are not processed', async () => {
    const fault = { status: 503, body: 'busy', headers: { 'retry-after': '7' } }
    emulator.injectFault('create', fault, { times: 2 })
    for (let i = 0; i < 2; i++) {
      const { status, headers, body } = await create(emulator)
      expect([status, headers['retry-after'], body]).toEqual([503, '7', 'busy'])
    }
    expect(emulator.subscriptions).toEqual([])
    expect((await create(emulator)).status).toBe(201)
    emulator.injectFault('create', { status: 500 }, { times: Number.POSITIVE_INFINITY })
    for (let i = 0; i < 3; i++) expect(await create(emulator)).toMatchObject({ status: 500, body: '' })
    emulator.clearFaults()
    emulator.injectFault('create', { delayMs: 50 })
    expect((await create(emulator, { users: 'bob' })).status).toBe(201)
    expect(emulator.requests.at(-1)?.durationMs).toBeGreaterThanOrEqual(49)
  })

  test('it happens once by default, to its own endpoint, in the order of injection', async () => {
    emulator.injectFault('create', { status: 500 })
    emulator.injectFault('create', { status: 204, body: 'a 204 has none' })
    emulator.injectFault('token', { status: 429 })
    emulator.injectFault('update', { status: 403 })
    emulator.injectFault('unsubscribe', { status: 502 })
    expect((await create(emulator)).status).toBe(500)
    expect(await create(emulator)).toMatchObject({ status: 204, body: '' })
    const id = await created(emulator)
    expect((await requestToken(emulator)).status).toBe(429)
    expect((await requestToken(emulator)).status).toBe(200)
    expect((await update(emulator, id, 'a=1')).status).toBe(403)
    expect((await update(emulator, id, 'a=1')).status).toBe(200)
    expect((await unsubscribe(emulator, id)).status).toBe(502)
    expect((await unsubscribe(emulator, id)).status).toBe(204)
  })

  test.each([
    ['before-processing', 0],
    ['after-processing', 1],
  ] as const)(
    'a reset %s breaks the connection and leaves %i subscriptions',
    async (reset, subscriptions) => {
      emulator.injectFault('create', { reset })
      await expect(create(emulator)).rejects.toMatchObject({ code: 'UND_ERR_SOCKET' })
      expect(emulator.subscriptions).toHaveLength(subscriptions)
      const [recorded] = emulator.requests
      expect(recorded).toMatchObject({ operation: 'create', path: createPath })
      expect(recorded).not.toHaveProperty('status')
      expect(recorded).toMatchObject({
        fault: { reset },
        error: `An injected fault broke the connection ${reset.replace('-', ' ')}`,
      })
    },
  )

  test('through emulator.fetch a reset is the TypeError of a fetch', async () => {
    emulator.injectFault('create', { reset: 'before-processing' })
    const request = new Request(emulator.baseUrl + createPath, { method: 'POST' })
    const refused = emulator.fetch(request)
    await expect(refused).rejects.toBeInstanceOf(TypeError)
    await expect(refused).rejects.toMatchObject({
      message: 'fetch failed',
      cause: { code: 'ECONNRESET', message: 'read ECONNRESET' },
    })
  })

  test('through emulator.fetch a signal ends a delay, whatever is collected meanwhile', async () => {
    emulator.injectFault('create', { delayMs: 1_000_000 }, { times: 2 })
    const controller = new AbortController()
    const url = emulator.baseUrl + createPath
    const init = { method: 'POST', signal: controller.signal }
    const answers = [emulator.fetch(url, init), emulator.fetch(new Request(url, init))]
    await setImmediate()
    collectGarbage()
    const reason = new Error('mine')
    controller.abort(reason)
    for (const answer of answers) await expect(answer).rejects.toBe(reason)
  })

  test('a malformed body comes with the right status, and the request is processed', async () => {
    emulator.injectFault('create', { malformedBody: '{"subscription_id":"one"}' })
    expect(await create(emulator)).toMatchObject({ status: 201, body: '{"subscription_id":"one"}' })
    expect(emulator.subscriptions).toHaveLength(1)
    emulator.injectFault('create', { malformedBody: true })
    const half = await create(emulator, { users: 'bob' })
    expect(half).toMatchObject({ status: 201, body: '{"subscrip' })
    expect(half.headers['content-type']).toBe('application/json')
    // Of an answer without a body there is no half.
    emulator.injectFault('update', { malformedBody: true })
    expect(await update(emulator, 1, 'a=1')).toMatchObject({ status: 200, body: '{' })
  })
})

describe('injected faults of callbacks', () => {
  test.each<[CallbackFault, number, string]>([
    [{ status: 503 }, 0, 'An injected fault answered with status 503'],
    [
      { reset: 'before-processing' },
      0,
      'An injected fault broke the connection before the callback was sent',
    ],
    [{ reset: 'after-processing' }, 1, 'An injected fault broke the connection before the answer arrived'],
    [{ delayMs: 60_000 }, 1, 'The callback was not answered within 1000 ms'],
  ])(
    '%j fails the callback, which reaches the receiver %i times, and counts',
    async (fault, times, message) => {
      // Only the one that is late waits for it: the callback that succeeds may take its time.
      await using emulator = await startEmulator('delayMs' in fault ? { callbackTimeoutMs: 1_000 } : {})
      await using receiver = await Receiver.start(emulator)
      const subscriptionId = await created(emulator, { url: receiver.url })
      emulator.injectFault('callback', fault)
      const [failed] = await emulator.notify(lowEnergy)
      expect(failed).toMatchObject({ subscriptionId, subscriptionEnded: false, error: { message } })
      expect(failed?.status).toBe('status' in fault ? fault.status : undefined)
      if ('delayMs' in fault) expect(failed?.error).toBeInstanceOf(TimeoutError)
      expect(receiver.callbacks).toHaveLength(times)
      expect(emulator.subscriptions).toMatchObject([{ consecutiveFailures: 1 }])
      expect(emulator.callbacks).toMatchObject([{ subscriptionId, fault, error: message }])
      expect(await emulator.notify(lowEnergy)).toEqual([
        { subscriptionId, callbackUrl: receiver.url, status: 204, subscriptionEnded: false },
      ])
    },
  )

  test('a delay below callbackTimeoutMs lets the callback succeed, later', async () => {
    await using emulator = await startEmulator({ callbackTimeoutMs: 60_000 })
    await using receiver = await Receiver.start(emulator)
    await created(emulator, { url: receiver.url })
    emulator.injectFault('callback', { delayMs: 30 })
    expect(await emulator.notify(lowEnergy)).toMatchObject([{ status: 204 }])
    expect(emulator.callbacks).toMatchObject([{ durationMs: expect.toSatisfy((ms: number) => ms >= 29) }])
  })

  test('with a subscriptionId the callbacks of others are left alone, and later faults do not wait', async () => {
    await using receiver = await Receiver.start(emulator)
    const first = await created(emulator, { url: `${receiver.url}/1` })
    const second = await created(emulator, { url: `${receiver.url}/2` })
    emulator.injectFault('callback', { status: 500 }, { subscriptionId: second, times: 2 })
    emulator.injectFault('callback', { status: 418 }, { subscriptionId: first })
    const statuses = async () => (await emulator.notify(lowEnergy)).map(({ status }) => status)
    expect(await statuses()).toEqual([418, 500])
    expect(await statuses()).toEqual([204, 500])
    expect(await statuses()).toEqual([204, 204])
  })
})

describe('a fault that could never happen is refused, and nothing is injected', () => {
  const refused: [operation: string, fault: unknown, options?: unknown][] = [
    ['tokens', { status: 500 }],
    ['create', { status: 199 }],
    ['create', { status: 500, reset: 'before-processing' }],
    ['create', { status: 500, headers: { 'not a name': 'x' } }],
    ['create', { status: 500, headers: { fine: 'a\nb' } }],
    ['create', { delayMs: 2 ** 31 }],
    ['create', { reset: 'sometimes' }],
    ['create', { malformedBody: false }],
    ['create', null],
    ['create', { status: 500 }, { times: 1.5 }],
    ['create', { status: 500 }, { subscriptionId: 1 }],
    ['unsubscribe', { malformedBody: true }],
    ['callback', { status: 204 }],
    ['callback', { status: 500, body: 'no' }],
    ['callback', { malformedBody: true }],
    ['callback', { status: 500 }, { subscriptionId: 0 }],
  ]

  test('with the place and the reason of each problem', async () => {
    const messages: Record<string, string> = {}
    for (const given of refused) {
      try {
        Reflect.apply(emulator.injectFault, emulator, given)
      } catch (error) {
        expect(error).toBeInstanceOf(InvalidRequestError)
        messages[given.map((part) => JSON.stringify(part)).join(' ')] = problemsIn(error)
      }
    }
    await expectPage('problems-of-faults', messages)
    // No fault is left that would strike here.
    expect((await create(emulator)).status).toBe(201)
    expect((await requestToken(emulator)).status).toBe(200)
  })
})
