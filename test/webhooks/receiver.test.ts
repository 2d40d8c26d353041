import { setTimeout as sleep } from 'node:timers/promises'
import {
  type CallbackRequest,
  ConfigurationError,
  DeliveryReceiver,
  type Secrets,
} from 'notification-subscriber/webhooks'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { deferred } from '../support/deferred.js'
import { deliveryOf, lowEnergyDelivery } from './deliveries.js'
import { post, recordingReceiver, secrets } from './support.js'

const open = { secrets: undefined, allowUnauthenticated: true, logger: false } as const

function fail(): never {
  throw new Error('no')
}

describe('only requests that cannot come from the service are refused', () => {
  test('the method is looked at first, in any case, then the secret, then the size', async () => {
    const { receiver } = recordingReceiver({ allowUnauthenticated: false, maxBodyBytes: 1 })
    for (const method of ['GET', '', undefined, 'POSTS']) {
      expect((await receiver.handle({ ...post({}), method })).status).toBe(405)
    }
    expect((await receiver.handle({ ...post({}), method: 'post' })).status).toBe(401)
    expect((await receiver.handle(post())).status).toBe(413)
  })

  test('`handle` is bound, and no route: a second object is refused at once', async () => {
    const { handle } = new DeliveryReceiver({ secrets })
    expect((await handle(post())).status).toBe(204)
    expect(() => Reflect.apply(handle, undefined, [post(), {}])).toThrow(ConfigurationError)
  })

  test('headers of any kind are no reason to refuse where no secret is asked for', async () => {
    const receiver = new DeliveryReceiver(open)
    for (const headers of [undefined, null, 'token: a', 5, () => {}, []]) {
      expect((await receiver.handle({ ...post(), headers: headers as never })).status).toBe(204)
    }
  })

  test('an onRefused that never ends delays no answer', async () => {
    const receiver = new DeliveryReceiver({ secrets, onRefused: () => new Promise(() => {}) })
    expect((await receiver.handle(post({}))).status).toBe(401)
    expect(await receiver.drain()).toBe(0)
  })
})

describe('a delivery', () => {
  test('of an unknown type, or with unknown fields, reaches the handlers of its type and of all types', async () => {
    const seen: string[] = []
    const receiver = new DeliveryReceiver({ ...open, onInvalid: () => expect.unreachable() })
      .on<string>('somethingNew', ({ payload }) => seen.push(`on ${Object(payload).a}`))
      .on<string>('__proto__', () => seen.push('on __proto__'))
      .onAny(({ type }) => seen.push(type))
    for (const type of ['somethingNew', 'cxScoreUpdated', '__proto__', 'constructor']) {
      await receiver.handle({ ...post(), body: deliveryOf(type, { a: 1 }) })
    }
    expect(seen).toEqual([
      ...['on 1', 'somethingNew', 'cxScoreUpdated'],
      ...['on __proto__', '__proto__', 'constructor'],
    ])
  })

  test('that `check` sends reaches no handler; one that has only its type or its subscription does', async () => {
    const reached: unknown[] = []
    const receiver = new DeliveryReceiver(open).onAny((_, context) => reached.push(context.subscriptionId))
    for (const [subscriptionId, type] of [
      [0, 'configurationCheck'] as const,
      [1, 'configurationCheck'] as const,
      [0, 'other'] as const,
    ]) {
      const body = { ...deliveryOf(type, {}), subscriptionId }
      expect((await receiver.handle({ ...post(), body })).status).toBe(204)
    }
    expect(reached).toEqual([1, 0])
  })
})

describe('handlers', () => {
  test.each<[string, () => unknown]>([
    ['throws', fail],
    ['rejects after the answer', () => sleep(5).then(fail)],
    ['returns a thenable that throws', () => Object.fromEntries([['then', fail]])],
  ])('one that %s: onError gets what it got, and the others are called', async (_, handler) => {
    const onError = vi.fn()
    const others: string[] = []
    const receiver = new DeliveryReceiver({ secrets, onError, ackTimeoutMs: 0 })
      .onAny(() => others.push('before'))
      .on('lowEnergyAgentOpened', handler)
      .on('lowEnergyAgentOpened', async () => others.push('after'))
    expect((await receiver.handle(post())).status).toBe(204)
    await receiver.drain()
    expect(others).toEqual(['before', 'after'])
    const delivery = lowEnergyDelivery()
    const context = { subscriptionId: 4711, delivery, header: expect.any(Function) }
    expect(onError.mock.calls).toEqual([[new Error('no'), delivery.notification, context]])
  })

  test('are called in the order of their registration; one that is registered during a delivery gets the next one', async () => {
    const seen: number[] = []
    const add = (value: number) => () => void seen.push(value)
    const same = add(1)
    const receiver = new DeliveryReceiver(open).onAny(same).on('lowEnergyAgentOpened', add(2)).onAny(same)
    receiver.onAny(() => void receiver.onAny(add(3)))
    await receiver.handle(post())
    expect(seen.splice(0)).toEqual([1, 2, 1])
    await receiver.handle(post())
    expect(seen).toEqual([1, 2, 1, 3])
  })

  test('that wait for nothing need no timer', async () => {
    const setTimer = vi.spyOn(globalThis, 'setTimeout')
    onTestFinished(() => void setTimer.mockRestore())
    const receiver = new DeliveryReceiver({ ...open, onError() {} }).onAny(() => {}).onAny(async () => fail())
    await receiver.handle(post())
    expect(setTimer).not.toHaveBeenCalled()
  })

  test('read headers by names in any case: what was sent once', async () => {
    const seen: (string | undefined)[] = []
    const receiver = new DeliveryReceiver(open).onAny((_, { header }) => {
      seen.push(...['userdata', 'UserData', 'x-empty', 'x-absent', 'one', 'two'].map(header))
    })
    const sent = { UserData: 'tenant=acme', 'x-empty': '' }
    const both = ['tenant=acme', 'tenant=acme', '', undefined]
    for (const headers of [{ ...sent, one: ['a'], two: ['a', 'b'] }, new Headers({ ...sent, one: 'a' })]) {
      await receiver.handle(post(headers as CallbackRequest['headers']))
      expect(seen.splice(0)).toEqual([...both, 'a', undefined])
    }
  })
})

describe('the answer waits for the handlers, at most ackTimeoutMs', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  test('until all of them are done, onInvalid and onError included', async () => {
    const { promise, resolve } = deferred<void>()
    const receiver = new DeliveryReceiver({ ...open, onError: () => promise, onInvalid: () => promise })
    receiver.onAny(fail)
    const answered = vi.fn()
    const answers = [post(), { ...post(), body: '' }].map((request) =>
      receiver.handle(request).then(answered),
    )
    await vi.advanceTimersByTimeAsync(1_999)
    expect(answered).not.toHaveBeenCalled()
    resolve()
    await Promise.all(answers)
    expect(vi.getTimerCount()).toBe(0)
  })

  test.each([
    [undefined, 2000],
    [50, 50],
    [0, 0],
  ])('with ackTimeoutMs %j it comes after %d ms', async (ackTimeoutMs, waits) => {
    const handler = deferred<void>()
    const receiver = new DeliveryReceiver({ ...open, ackTimeoutMs }).onAny(() => handler.promise)
    const answered = vi.fn()
    const answer = receiver.handle(post()).then(answered)
    await vi.advanceTimersByTimeAsync(Math.max(waits - 1, 0))
    if (waits > 0) expect(answered).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1)
    await answer
    expect(answered).toHaveBeenCalledWith({ status: 204, headers: {} })
    handler.resolve()
    await receiver.drain()
  })
})

describe('work that blocks the process is logged as handler.slow, because the answer is late', () => {
  const block = (ms: number) => {
    const end = performance.now() + ms
    while (performance.now() < end);
  }

  const readSlowly = () => {
    block(150)
    return secrets
  }

  test.each<[when: string, ackTimeoutMs: number, handler: () => unknown, source: Secrets | (() => Secrets)]>([
    ['at once', 50, () => block(150), secrets],
    ['at once, with ackTimeoutMs 0', 0, () => block(150), secrets],
    ['after a while', 50, () => sleep(1).then(() => block(150)), secrets],
    ['in the function `secrets`', 50, () => {}, readSlowly],
  ])('%s', async (_, ackTimeoutMs, handler, source) => {
    const { receiver, lines } = recordingReceiver({ secrets: source, ackTimeoutMs })
    receiver.onAny(handler)
    expect((await receiver.handle(post())).status).toBe(204)
    await receiver.drain()
    const [, ...warnings] = lines
    const { id: notificationId, type } = lowEnergyDelivery().notification
    const fields = { event: 'handler.slow', subscriptionId: 4711, notificationId, type, ackTimeoutMs }
    expect(warnings).toMatchObject([{ level: 'warn', fields }])
    expect(warnings[0]?.message).toContain('blocked the process')
    expect(Object(warnings[0]?.fields).durationMs).toBeGreaterThanOrEqual(150)
  })

  test('also without a logger; a handler that only takes long is not, nor is work behind setImmediate', async () => {
    const error = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => void vi.restoreAllMocks())
    const receiver = new DeliveryReceiver({ secrets, ackTimeoutMs: 50 })
    receiver
      .on('lowEnergyAgentOpened', () => block(150))
      .on('cxScoreUpdated', () => sleep(150))
      .on('topicKeywordEvent', () => void setImmediate(block, 150))
    // Virtual time: a busy machine would be late by itself.
    vi.useFakeTimers({ toFake: ['setTimeout', 'performance'] })
    const answer = receiver.handle({ ...post(), body: deliveryOf('cxScoreUpdated', {}) })
    await vi.advanceTimersByTimeAsync(49)
    // Any timer may come 50 ms late.
    const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now() + 51)
    await vi.advanceTimersByTimeAsync(1)
    await answer
    clock.mockRestore()
    vi.useRealTimers()
    await receiver.handle({ ...post(), body: deliveryOf('topicKeywordEvent', {}) })
    await new Promise(setImmediate)
    expect(error).not.toHaveBeenCalled()
    await receiver.handle(post())
    expect(error).toHaveBeenCalledOnce()
  })
})

describe('drain resolves when no handler runs', () => {
  test('after handlers that the answer did not wait for, and after those that begin while it waits', async () => {
    const waiting: (() => void)[] = []
    const receiver = new DeliveryReceiver({ ...open, ackTimeoutMs: 1 })
    receiver.onAny(() => new Promise<void>((resolve) => waiting.push(resolve)))
    await receiver.handle(post())
    const drained = vi.fn()
    const drains = [receiver.drain().then(drained), receiver.drain().then(drained)]
    await receiver.handle(post())
    waiting[0]?.()
    await new Promise(setImmediate)
    expect(drained).not.toHaveBeenCalled()
    waiting[1]?.()
    await Promise.all(drains)
  })

  test('with timeoutMs resolves with the number of deliveries that are still in flight', async () => {
    const work = deferred<void>()
    const receiver = new DeliveryReceiver({ ...open, ackTimeoutMs: 0 }).onAny(() => work.promise)
    for (let sent = 0; sent < 2; sent += 1) await receiver.handle(post())
    expect(await receiver.drain({ timeoutMs: 5 })).toBe(2)
    work.resolve()
    expect(await receiver.drain({ timeoutMs: 60_000 })).toBe(0)
  })
})
