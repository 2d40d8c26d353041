import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { eventually } from '../support/eventually.js'
import { heapUsed } from '../support/heap.js'
import { createPath, routeOf } from '../support/routes.js'
import { apiAuthorization, create, created, lowEnergy, Receiver, send, unsubscribe } from './support.js'

let emulator: Emulator
let receiver: Receiver
beforeEach(async () => {
  emulator = await startEmulator()
  receiver = await Receiver.start(emulator)
})
afterEach(async () => {
  await receiver[Symbol.asyncDispose]()
  await emulator.close()
})

const url = 'https://app.example.com/'

describe('callbacks', () => {
  test('are recorded as they were sent, with their answers', async () => {
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
        notificationId: 'n1',
        type: 'lowEnergyAgentOpened',
        username: 'alice',
        headers: { 'content-type': 'application/json', Token: 'hush' },
        body,
        bodyLength: body.length,
        status: 204,
        answer: { headers: expect.objectContaining({ connection: 'keep-alive' }), body: '', bodyLength: 0 },
        durationMs: expect.any(Number),
      },
      expect.objectContaining({
        id: 2,
        status: 500,
        error: 'The callback was answered with status 500',
      }),
    ])
  })

  test('have the first 16,384 characters of a body, and its length; so have answers, and requests', async () => {
    await created(emulator, { url: receiver.url })
    receiver.reactions.push({ status: 500, body: 'ü'.repeat(300_000) }, 'cut')
    for (let i = 0; i < 2; i++) await emulator.notify({ ...lowEnergy, payload: { text: 'x'.repeat(20_000) } })
    const [whole, cut] = emulator.callbacks
    expect(whole?.body).toHaveLength(16_384)
    expect(whole?.bodyLength).toBeGreaterThan(20_000)
    expect(whole?.answer).toMatchObject({ body: 'ü'.repeat(16_384), bodyLength: 300_000 })
    expect(cut).not.toHaveProperty('answer')
    await send(emulator, 'POST', createPath, { body: 'y'.repeat(17_000) })
    expect(emulator.requests.at(-1)).toMatchObject({ body: 'y'.repeat(16_384), bodyLength: 17_000 })
  })
})

describe('emulator.on', () => {
  test('created and ended come for every subscription, with the reason of its end', async () => {
    const events: unknown[] = []
    emulator.on('created', ({ subscriptionId }) => events.push(['created', subscriptionId]))
    emulator.on('ended', ({ subscriptionId, usernames }, reason) => {
      events.push(['ended', subscriptionId, usernames, reason])
    })
    const first = await created(emulator)
    expect(events).toEqual([['created', first]])
    const second = await created(emulator, { recreate: 'true' })
    await unsubscribe(emulator, second)
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

  test('request and callback come once, when they have ended', async () => {
    const events: unknown[] = []
    emulator.on('request', (entry) => events.push(entry))
    emulator.on('callback', (entry) => events.push(entry))
    emulator.injectFault('create', { delayMs: 200 })
    const answer = created(emulator, { url: receiver.url })
    await eventually(() => expect(emulator.requests).toHaveLength(1))
    expect(emulator.requests[0]).not.toHaveProperty('durationMs')
    expect(events).toEqual([])
    await answer
    await emulator.notify(lowEnergy)
    expect(events).toEqual([...emulator.requests, ...emulator.callbacks])
    expect(events).toMatchObject([
      { operation: 'create', status: 201, durationMs: expect.any(Number) },
      { callbackUrl: receiver.url, status: 204, durationMs: expect.any(Number) },
    ])
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
    const fields = { event: 'emulator.listener-failed', listener: 'created' }
    for (const [, logged] of log.mock.calls) expect(logged).toMatchObject(fields)
    log.mockRestore()
  })
})

describe('requests', () => {
  test('name the subscription, also where a fault lost or broke the answer', async () => {
    emulator.injectFault('create', { reset: 'after-processing' })
    await expect(created(emulator)).rejects.toThrow()
    emulator.injectFault('create', { malformedBody: true })
    await create(emulator, { users: 'bob' })
    await unsubscribe(emulator, 2)
    await unsubscribe(emulator, 9)
    expect(emulator.requests.map(({ subscriptionId, answer }) => [subscriptionId, answer?.body])).toEqual([
      [1, undefined],
      [2, '{"subscrip'],
      [2, ''],
      [9, expect.stringContaining('not_found')],
    ])
  })

  test('are recorded and counted as they were sent', async () => {
    const before = Date.now()
    const id = await created(emulator, { url, headers: { 'X-Mark': '1' } })
    const { method, path } = routeOf('unsubscribe', id)
    await send(emulator, method, `${path}?why=not`)
    await send(emulator, 'PATCH', '/nowhere')
    await send(emulator, 'PATCH', createPath)
    const form = `notification_type=behavioral&username=alice&callback_url=${encodeURIComponent(url)}`
    expect(emulator.requests).toEqual([
      {
        id: 1,
        startedAt: expect.toSatisfy((at: number) => at >= before && at <= Date.now()),
        operation: 'create',
        method: 'POST',
        path: createPath,
        headers: expect.objectContaining({ 'x-mark': '1', authorization: apiAuthorization(emulator) }),
        body: form,
        bodyLength: form.length,
        subscriptionId: 1,
        status: 201,
        answer: {
          headers: { 'content-type': 'application/json' },
          body: '{"subscription_id":1}',
          bodyLength: 21,
        },
        durationMs: expect.toSatisfy((ms: number) => Number.isInteger(ms) && ms >= 0),
      },
      expect.objectContaining({
        operation: 'unsubscribe',
        path: `${path}?why=not`,
        status: 401,
      }),
      expect.objectContaining({ operation: 'unknown', method: 'PATCH', path: '/nowhere', status: 404 }),
      expect.objectContaining({ operation: 'unknown', path: createPath, status: 405 }),
    ])
    expect(emulator.requestCounts).toEqual({ token: 0, create: 1, update: 0, unsubscribe: 1, unknown: 2 })
  })

  test('keep the beginnings of large bodies only, not the bodies', async () => {
    const before = heapUsed()
    for (let i = 0; i < 50; i++) {
      await emulator.fetch(new Request('https://x.example/', { method: 'POST', body: 'x'.repeat(1_000_000) }))
    }
    expect(emulator.requests.at(-1)).toMatchObject({ bodyLength: 1_000_000 })
    expect(heapUsed() - before).toBeLessThan(20_000_000)
  })

  test('are kept to the last 1,000, and all are counted', async () => {
    for (let i = 0; i < 1_005; i++) await emulator.fetch(new Request(`https://x.example/${i}`))
    expect(emulator.requests).toHaveLength(1_000)
    expect(emulator.requests[0]).toMatchObject({ id: 6, path: '/5', status: 404 })
    expect(emulator.requests.at(-1)).toMatchObject({ id: 1_005, path: '/1004' })
    expect(emulator.requestCounts.unknown).toBe(1_005)
  })
})
