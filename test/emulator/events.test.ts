import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { InvalidRequestError } from '../../src/errors.js'
import { eventually } from '../support/eventually.js'
import { freePort } from '../support/listen.js'
import { apiAuthorization, create, created, form, lowEnergy, Receiver, send } from './support.js'

let emulator: Emulator
beforeEach(async () => {
  emulator = await startEmulator()
})
afterEach(() => emulator.close())

const url = 'https://app.example.com/'

describe('what went out', () => {
  test('callbacks tell it as it was sent, and how it was answered', async () => {
    await using receiver = await Receiver.start(emulator)
    const subscriptionId = await created(emulator, { url: receiver.url, fields: { Token: 'hush' } })
    receiver.reactions.push(204, 500)
    await emulator.notify({ ...lowEnergy, id: 'n1', time: 5 })
    await emulator.notify({ ...lowEnergy, id: 'n2', time: 6 })
    const body = JSON.stringify({
      subscriptionId,
      notification: { id: 'n1', time: 5, ver: '1.0', type: lowEnergy.type, payload: lowEnergy.payload },
    })
    expect(emulator.callbacks).toEqual([
      {
        id: 1,
        startedAt: expect.any(Number),
        subscriptionId,
        callbackUrl: receiver.url,
        headers: { 'content-type': 'application/json', Token: 'hush' },
        body,
        bodyLength: body.length,
        status: 204,
        durationMs: expect.any(Number),
      },
      expect.objectContaining({
        id: 2,
        status: 500,
        error: 'The callback was answered with status 500',
      }),
    ])
  })

  test('a refused connection is told with its address', async () => {
    const port = await freePort()
    await created(emulator, { url: `https://localhost:${port}/` })
    const [result] = await emulator.notify(lowEnergy)
    expect(result?.error?.message).toContain(`127.0.0.1:${port}`)
    expect(emulator.callbacks).toMatchObject([{ error: result?.error?.message }])
  })

  test('a body is kept to 16,384 characters, and its length is told', async () => {
    await using receiver = await Receiver.start(emulator)
    await created(emulator, { url: receiver.url })
    await emulator.notify({ ...lowEnergy, payload: { text: 'x'.repeat(20_000) } })
    const [callback] = emulator.callbacks
    expect(callback?.body).toHaveLength(16_384)
    expect(callback?.bodyLength).toBeGreaterThan(20_000)
    await send(emulator, 'POST', '/api/subscriptions', { body: 'y'.repeat(17_000) })
    expect(emulator.requests.at(-1)).toMatchObject({ body: 'y'.repeat(16_384), bodyLength: 17_000 })
  })

  test('the last 1,000 callbacks are kept, with growing ids', async () => {
    await created(emulator)
    for (let i = 0; i < 1_003; i++) {
      if (i % 3 === 2) await create(emulator, { recreate: 'true' })
      emulator.injectFault('callback', { status: 500 })
      await emulator.notify(lowEnergy)
    }
    expect(emulator.callbacks.map(({ id }) => id)).toEqual(Array.from({ length: 1_000 }, (_, n) => n + 4))
  })
})

describe('emulator.on', () => {
  test('created and ended tell of every subscription, and of why it ended', async () => {
    const events: unknown[] = []
    emulator.on('created', ({ subscriptionId }) => events.push(['created', subscriptionId]))
    emulator.on('ended', ({ subscriptionId, usernames }, reason) => {
      events.push(['ended', subscriptionId, usernames, reason])
    })
    const first = await created(emulator)
    const second = await created(emulator, { recreate: 'true' })
    await send(emulator, 'DELETE', `/api/subscriptions/${second}`, {
      headers: { authorization: apiAuthorization(emulator), 'content-type': form },
    })
    const third = await created(emulator)
    emulator.injectFault('callback', { status: 500 }, { times: 3 })
    for (let i = 0; i < 3; i++) await emulator.notify(lowEnergy)
    const fourth = await created(emulator)
    expect(emulator.endSubscription(fourth)).toBe(true)
    expect(events).toEqual([
      ['created', first],
      ['ended', first, ['alice'], 'replaced'],
      ['created', second],
      ['ended', second, ['alice'], 'unsubscribed'],
      ['created', third],
      ['ended', third, ['alice'], 'three-failures'],
      ['created', fourth],
      ['ended', fourth, ['alice'], 'by-request'],
    ])
  })

  test('created is told before the answer goes out, and the subscription can be ended at once', async () => {
    emulator.on('created', ({ subscriptionId }) => emulator.endSubscription(subscriptionId))
    await created(emulator)
    expect(emulator.subscriptions).toEqual([])
  })

  test('request and callback are told of once, when they are over', async () => {
    await using receiver = await Receiver.start(emulator)
    const events: unknown[] = []
    emulator.on('request', (entry) => events.push(entry))
    emulator.on('callback', (entry) => events.push(entry))
    await created(emulator, { url: receiver.url })
    await emulator.notify(lowEnergy)
    expect(events).toEqual([...emulator.requests, ...emulator.callbacks])
    expect(events).toMatchObject([
      { operation: 'create', status: 201, durationMs: expect.any(Number) },
      { callbackUrl: receiver.url, status: 204, durationMs: expect.any(Number) },
    ])
  })

  test('a request that is under way stands in the history without a duration, and is told of when it is over', async () => {
    const listener = vi.fn()
    emulator.on('request', listener)
    emulator.injectFault('create', { delayMs: 1_500 })
    const answer = create(emulator)
    await eventually(() => expect(emulator.requests).toHaveLength(1))
    expect(emulator.requests[0]).not.toHaveProperty('durationMs')
    expect(listener).not.toHaveBeenCalled()
    await answer
    expect(listener).toHaveBeenCalledTimes(1)
  })

  test('the function that it returns stops that listener only', async () => {
    const listener = vi.fn()
    const stop = emulator.on('created', listener)
    emulator.on('created', listener)
    stop()
    stop()
    await created(emulator)
    expect(listener).toHaveBeenCalledTimes(1)
  })

  test('a listener that throws or rejects is logged and breaks nothing', async () => {
    const log = vi.spyOn(console, 'error').mockReturnValue()
    const after = vi.fn()
    emulator.on('created', () => {
      throw new Error('thrown')
    })
    emulator.on('created', () => Promise.reject(new Error('rejected')))
    emulator.on('created', after)
    await created(emulator)
    expect(after).toHaveBeenCalledTimes(1)
    await eventually(() => expect(log).toHaveBeenCalledTimes(2))
    const lines = log.mock.calls.map(([line]) => line)
    expect(lines.sort()).toEqual([
      'notification-subscriber: A listener for "created" of the emulator failed: rejected',
      'notification-subscriber: A listener for "created" of the emulator failed: thrown',
    ])
    log.mockRestore()
  })

  test.each([
    ['requests', () => {}, 'event must be one of request, callback, created, ended'],
    ['request', 'log', 'listener must be a function'],
  ])('what cannot be listened to is refused: %s', (event, listener, sentence) => {
    const listen = () => Reflect.apply(emulator.on, emulator, [event, listener])
    expect(listen).toThrow(InvalidRequestError)
    expect(listen).toThrow(`The emulator cannot be listened to: ${sentence}.`)
  })
})

describe('emulator.endSubscription', () => {
  test('ends it silently: notifications go nowhere, and the same can be created again', async () => {
    const id = await created(emulator, { url })
    expect(emulator.endSubscription(id)).toBe(true)
    expect(emulator.subscriptions).toEqual([])
    expect(await emulator.notify(lowEnergy)).toEqual([])
    expect(await created(emulator, { url })).not.toBe(id)
  })

  test('says whether there was one', async () => {
    expect(emulator.endSubscription(1)).toBe(false)
    const id = await created(emulator)
    emulator.endSubscription(id)
    expect(emulator.endSubscription(id)).toBe(false)
  })
})
