import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { ConfigurationError, DeliveryReceiver, InvalidDeliveryError } from 'notification-subscriber/webhooks'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { deferred } from '../support/deferred.js'
import { deliveryOf, lowEnergyDelivery } from './deliveries.js'
import { post, recordingLogger, recordingOnInvalid, secrets } from './support.js'

const body = JSON.stringify(lowEnergyDelivery())
const open = { allowUnauthenticated: true, logger: false } as const

function fail(): never {
  throw new Error('no')
}

type Then = (resolve: () => void, reject: (error: Error) => void) => void
const thenable = (then: Then) => Object.fromEntries([['then', then]])

describe('only requests that cannot come from the service are refused', () => {
  test('a method other than POST, in any case: 405 with Allow', async () => {
    const receiver = new DeliveryReceiver({ secrets, onRefused() {} })
    for (const method of ['GET', 'PUT', 'HEAD', 'OPTIONS', '', undefined, 'POSTS']) {
      const answer = await receiver.handle({ method, headers: {}, body })
      expect(answer).toEqual({ status: 405, headers: { allow: 'POST' } })
    }
    expect((await receiver.handle({ ...post(), method: 'post' })).status).toBe(204)
  })

  test('a missing method and a secret that is doubled are named as such', async () => {
    const reasons: string[] = []
    const receiver = new DeliveryReceiver({ secrets, onRefused: ({ reason }) => reasons.push(reason) })
    await receiver.handle({ ...post(), method: undefined })
    for (const token of [['a', 'b'], 'a, a', 'a,a', 'a, b', 'a']) await receiver.handle(post({ token }))
    expect(reasons).toEqual([
      expect.stringContaining('no method'),
      'the header "token" is there twice',
      'the header "token" is there twice, joined by a comma',
      'the header "token" is there twice, joined by a comma',
      'the header "token" is wrong',
      'the header "token" is wrong',
    ])
  })

  test('`handle` is bound, and no route: a second argument is refused at once', async () => {
    const { handle } = new DeliveryReceiver({ secrets })
    expect((await handle(post())).status).toBe(204)
    // As `[request].map(handle)` calls it.
    expect(await Reflect.apply(handle, undefined, [post(), 0, [post()]])).toMatchObject({ status: 204 })
    for (const second of [{}, () => {}]) {
      expect(() => Reflect.apply(handle, undefined, [post(), second])).toThrow(ConfigurationError)
    }
  })

  test('the test delivery of `check` is answered 204 and reaches no handler', async () => {
    const reached: unknown[] = []
    const receiver = new DeliveryReceiver({ secrets }).onAny((_, { subscriptionId }) =>
      reached.push(subscriptionId),
    )
    for (const [subscriptionId, type] of [
      [0, 'configurationCheck'] as const,
      [1, 'configurationCheck'] as const,
      [0, 'other'] as const,
    ]) {
      const sent = { ...deliveryOf(type, {}), subscriptionId }
      expect((await receiver.handle({ ...post(), body: sent })).status).toBe(204)
    }
    expect(reached).toEqual([1, 0])
  })

  test('headers of any kind are no reason to refuse where no secret is asked for', async () => {
    const receiver = new DeliveryReceiver(open)
    for (const headers of [undefined, null, 'token: a', 5, () => {}, []]) {
      expect((await receiver.handle({ ...post(), headers: headers as never })).status).toBe(204)
    }
  })

  test('the method is looked at first, then the secret, then the size', async () => {
    const receiver = new DeliveryReceiver({ secrets, maxBodyBytes: 1 })
    expect((await receiver.handle({ method: 'GET', headers: {}, body })).status).toBe(405)
    expect((await receiver.handle({ method: 'POST', headers: {}, body })).status).toBe(401)
    expect((await receiver.handle(post())).status).toBe(413)
  })
})

describe('everything else is answered with 204', () => {
  test.each<[string, unknown]>([
    ['no JSON', '{'],
    ['no body', undefined],
    ['no UTF-8', new Uint8Array([0xff])],
    ['a wrong payload', deliveryOf('lowEnergyAgentOpened', { callId: 1 })],
  ])('%s goes to onInvalid, with the body', async (_, invalid) => {
    const { onInvalid, errors } = recordingOnInvalid()
    const receiver = new DeliveryReceiver({ secrets, onInvalid }).onAny(() => expect.unreachable())
    expect((await receiver.handle({ ...post(), body: invalid })).status).toBe(204)
    expect(errors).toEqual([expect.any(InvalidDeliveryError)])
    expect(errors[0]?.body).toBe(invalid)
  })

  test('a body is read as JSON once, also to log the names in it', async () => {
    const parse = vi.spyOn(JSON, 'parse')
    const { lines, logger } = recordingLogger()
    const receiver = new DeliveryReceiver({ allowUnauthenticated: true, logger })
    await receiver.handle({ method: 'POST', headers: {}, body: '{"subscriptionId":4711,"notification":{}}' })
    expect(parse).toHaveBeenCalledOnce()
    parse.mockRestore()
    expect(lines).toMatchObject([{ fields: { event: 'delivery.invalid', subscriptionId: 4711 } }])
  })

  test('types and fields that are not known reach handlers', async () => {
    const seen: string[] = []
    const receiver = new DeliveryReceiver({ secrets, onInvalid: () => expect.unreachable() })
      .on<string>('somethingNew', ({ payload }) => seen.push(`on ${Object(payload).a}`))
      .onAny(({ type }) => seen.push(`any ${type}`))
    await receiver.handle({ ...post(), body: deliveryOf('somethingNew', { a: 1 }) })
    await receiver.handle({ ...post(), body: deliveryOf('cxScoreUpdated', {}) })
    expect(seen).toEqual(['on 1', 'any somethingNew', 'any cxScoreUpdated'])
  })

  test('a type that is named like a property of objects reaches only its own handlers', async () => {
    const seen: string[] = []
    const receiver = new DeliveryReceiver(open).on<string>('__proto__', ({ type }) => seen.push(type))
    for (const type of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      expect((await receiver.handle({ ...post(), body: deliveryOf(type, {}) })).status).toBe(204)
    }
    expect(seen).toEqual(['__proto__'])
  })

  test.each<[string, () => unknown]>([
    ['throws', fail],
    ['rejects', async () => fail()],
    ['rejects later', () => new Promise((_, reject) => setTimeout(() => reject(new Error('no')), 5))],
    ['returns a thenable that rejects', () => thenable((_, reject) => reject(new Error('no')))],
    ['returns a thenable that throws', () => thenable(fail)],
  ])(
    'a handler that %s: onError gets what the handler got, and the other handlers are called',
    async (_, handler) => {
      const onError = vi.fn()
      const others: string[] = []
      const receiver = new DeliveryReceiver({ secrets, onError })
        .onAny(() => others.push('before'))
        .on('lowEnergyAgentOpened', handler)
        .on('lowEnergyAgentOpened', async () => others.push('after'))
      expect((await receiver.handle(post())).status).toBe(204)
      expect(others).toEqual(['before', 'after'])
      const delivery = lowEnergyDelivery()
      expect(onError.mock.calls).toEqual([
        [
          new Error('no'),
          delivery.notification,
          { subscriptionId: 4711, delivery, header: expect.any(Function) },
        ],
      ])
    },
  )
})

describe('the log', () => {
  test.each([
    ['without callbacks', {}],
    ['with callbacks', { onError() {}, onInvalid() {}, onRefused() {} }],
  ])(
    '%s gets a debug line for a delivery, and a line for what is refused, invalid or failed',
    async (...row) => {
      const [, callbacks] = row
      const { logger, lines } = recordingLogger()
      const receiver = new DeliveryReceiver({ secrets, logger, maxBodyBytes: 1000, ...callbacks })
        .on('lowEnergyAgentOpened', () => {})
        .on('cxScoreUpdated', () => {
          throw new Error('handler broke')
        })
      await receiver.handle(post())
      await receiver.handle({ ...post(), body: deliveryOf('cxScoreUpdated', {}) })
      await receiver.handle({ ...post(), body: '{' })
      await receiver.handle(post({}))
      await receiver.handle({ ...post(), method: 'PUT' })
      await receiver.handle({ ...post(), body: 'x'.repeat(1001) })
      const { id: notificationId } = deliveryOf('cxScoreUpdated', {}).notification
      const delivered = (type: string) => ({ subscriptionId: 4711, notificationId, type })
      const err = expect.objectContaining({ message: 'handler broke' })
      const [reason, issues] = [expect.any(String), [{ path: [], message: expect.any(String) }]]
      const token = { reason: 'the header "token" is missing', header: 'token' }
      expect(lines.map(({ level, fields }) => [level, fields])).toEqual([
        ['debug', { event: 'delivery.received', ...delivered('lowEnergyAgentOpened') }],
        ['debug', { event: 'delivery.received', ...delivered('cxScoreUpdated') }],
        ['error', { event: 'handler.failed', ...delivered('cxScoreUpdated'), err }],
        ['error', { event: 'delivery.invalid', reason, issues }],
        ['warn', { event: 'callback.refused', status: 401, ...token }],
        ['warn', { event: 'callback.refused', status: 405, reason: 'the method is not POST' }],
        ['warn', { event: 'callback.refused', status: 413, reason: 'the body is larger than 1000 bytes' }],
      ])
    },
  )

  test('has a line for each callback that fails, with the fields of what it was about', async () => {
    const { logger, lines } = recordingLogger()
    const failing = { onError: fail, onInvalid: fail, onRefused: fail }
    const receiver = new DeliveryReceiver({ secrets, logger, ...failing }).onAny(fail)
    for (const request of [post(), { ...post(), body: '{' }, post({})]) await receiver.handle(request)
    const { id, type } = lowEnergyDelivery().notification
    const err = expect.objectContaining({ message: 'no' })
    const reason = expect.any(String)
    expect(lines.map(({ fields }) => fields).filter((fields) => /^on-/.test(Object(fields).event))).toEqual([
      { event: 'on-error.failed', subscriptionId: 4711, notificationId: id, type, err },
      { event: 'on-invalid.failed', issues: [expect.anything()], err },
      { event: 'on-refused.failed', status: 401, reason, header: 'token', err },
    ])
  })

  test('never holds a secret, and neither does an error', async () => {
    const { logger, lines } = recordingLogger()
    const { onInvalid, errors } = recordingOnInvalid()
    const seen: unknown[] = [lines, errors]
    const receiver = new DeliveryReceiver({
      secrets,
      logger,
      onInvalid,
      onError: (...values) => seen.push(values),
    })
    receiver.onAny((...values) => {
      seen.push(values)
      throw new Error('no')
    })
    for (const token of [...secrets.token, 'a-wrong-secret', 'the-current-secret, the-current-secret']) {
      for (const content of [body, '{', 'x'.repeat(2 ** 21)]) {
        await receiver.handle({ ...post({ token }), body: content })
      }
    }
    expect(lines.length).toBeGreaterThan(0)
    expect(inspect(seen, { depth: 9, showHidden: true })).not.toContain('-secret')
  })
})

describe('the answer waits for the handlers, at most ackTimeoutMs', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  test('it waits until all handlers are done', async () => {
    const first = deferred<void>()
    const second = deferred<void>()
    const receiver = new DeliveryReceiver(open).onAny(() => first.promise).onAny(() => second.promise)
    const answered = vi.fn()
    const answer = receiver.handle(post()).then(answered)
    first.resolve()
    await vi.advanceTimersByTimeAsync(1999)
    expect(answered).not.toHaveBeenCalled()
    second.resolve()
    await answer
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
    expect(vi.getTimerCount()).toBe(0)
    handler.resolve()
    await receiver.drain()
  })

  test('a handler that fails after the answer still goes to onError', async () => {
    const onError = vi.fn()
    const receiver = new DeliveryReceiver({ ...open, onError, ackTimeoutMs: 10 })
    receiver.onAny(() => new Promise((_, reject) => setTimeout(() => reject(new Error('late')), 1000)))
    const answer = receiver.handle(post())
    await vi.advanceTimersByTimeAsync(10)
    await answer
    expect(onError).not.toHaveBeenCalled()
    await vi.advanceTimersByTimeAsync(1000)
    expect(onError).toHaveBeenCalledOnce()
    await receiver.drain()
  })

  test('it waits for an asynchronous onInvalid and onError, too', async () => {
    const { promise, resolve } = deferred<void>()
    const receiver = new DeliveryReceiver({ ...open, onError: () => promise, onInvalid: () => promise })
    receiver.onAny(fail)
    const answered = vi.fn()
    const answers = [post(), { ...post(), body: '' }].map((request) =>
      receiver.handle(request).then(answered),
    )
    await vi.advanceTimersByTimeAsync(100)
    expect(answered).not.toHaveBeenCalled()
    resolve()
    await Promise.all(answers)
  })
})

describe('work that blocks the process is logged as handler.slow, because the answer is late', () => {
  const block = (ms: number) => {
    const end = performance.now() + ms
    while (performance.now() < end);
  }

  test.each<[when: string, ackTimeoutMs: number, handler: () => unknown]>([
    ['at once', 50, () => block(150)],
    ['at once, with ackTimeoutMs 0', 0, () => block(150)],
    [
      'after a while',
      50,
      async () => {
        await sleep(1)
        block(150)
      },
    ],
    [
      'after a while, and continues',
      50,
      async () => {
        await sleep(1)
        block(150)
        await sleep(10)
      },
    ],
  ])('%s', async (_, ackTimeoutMs, handler) => {
    const { logger, lines } = recordingLogger()
    const receiver = new DeliveryReceiver({ secrets, logger, ackTimeoutMs }).onAny(handler)
    expect((await receiver.handle(post())).status).toBe(204)
    await receiver.drain()
    const [, ...warnings] = lines
    const { id: notificationId, type } = lowEnergyDelivery().notification
    const fields = { event: 'handler.slow', subscriptionId: 4711, notificationId, type, ackTimeoutMs }
    expect(warnings).toMatchObject([{ level: 'warn', fields }])
    expect(warnings[0]?.message).toContain('blocked the process')
    expect(Object(warnings[0]?.fields).durationMs).toBeGreaterThanOrEqual(150)
  })

  test('also without a logger; a handler that only takes long is not', async () => {
    const error = vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => void vi.restoreAllMocks())
    const receiver = new DeliveryReceiver({ secrets, ackTimeoutMs: 50 })
    receiver.on('lowEnergyAgentOpened', () => block(150)).on('cxScoreUpdated', () => sleep(150))
    await receiver.handle({ ...post(), body: deliveryOf('cxScoreUpdated', {}) })
    expect(error).not.toHaveBeenCalled()
    await receiver.handle(post())
    expect(error).toHaveBeenCalledOnce()
  })

  test('not behind setImmediate', async () => {
    const { logger, lines } = recordingLogger()
    const receiver = new DeliveryReceiver({ secrets, logger, ackTimeoutMs: 50 })
    receiver.onAny(() => void setImmediate(block, 150))
    await receiver.handle(post())
    await new Promise(setImmediate)
    expect(lines).toMatchObject([{ fields: { event: 'delivery.received' } }])
  })
})

describe('handlers', () => {
  test('that wait for nothing need no timer', async () => {
    const setTimer = vi.spyOn(globalThis, 'setTimeout')
    const receiver = new DeliveryReceiver({ ...open, onError() {} })
      .onAny(() => {})
      .onAny(async () => {})
      .onAny(async () => fail())
    await receiver.handle(post())
    expect(setTimer).not.toHaveBeenCalled()
    setTimer.mockRestore()
  })

  test('are called in the order of their registration, each once, and all of them for one delivery', async () => {
    const seen: number[] = []
    const add = (value: number) => () => void seen.push(value)
    const same = add(1)
    const receiver = new DeliveryReceiver(open).onAny(same).on('lowEnergyAgentOpened', add(2)).onAny(add(3))
    receiver.on<string>('other', add(4)).onAny(same)
    await receiver.handle(post())
    expect(seen).toEqual([1, 2, 3, 1])
  })

  test('one that is registered during a delivery gets the next one', async () => {
    const later = vi.fn()
    const receiver = new DeliveryReceiver(open)
    receiver.onAny(() => void receiver.onAny(later))
    await receiver.handle(post())
    expect(later).not.toHaveBeenCalled()
    await receiver.handle(post())
    expect(later).toHaveBeenCalledOnce()
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
    expect(drained).toHaveBeenCalledTimes(2)
  })

  test('with timeoutMs resolves with the number of deliveries that are still in flight', async () => {
    const first = deferred<void>()
    const second = deferred<void>()
    const receiver = new DeliveryReceiver({ secrets, ackTimeoutMs: 0 })
    receiver.on('cxScoreUpdated', () => first.promise).on('lowEnergyAgentOpened', () => second.promise)
    await receiver.handle(post())
    await receiver.handle({ ...post(), body: deliveryOf('cxScoreUpdated', {}) })
    expect(await receiver.drain({ timeoutMs: 0 })).toBe(2)
    first.resolve()
    expect(await receiver.drain({ timeoutMs: 5 })).toBe(1)
    second.resolve()
    expect(await receiver.drain({ timeoutMs: 60_000 })).toBe(0)
    expect(await receiver.drain()).toBe(0)
  })

  test('refuses what is no timeoutMs', async () => {
    const receiver = new DeliveryReceiver({ secrets })
    for (const timeoutMs of [-1, Number.NaN, 2 ** 31, '5', null]) {
      const issues = [expect.objectContaining({ path: ['timeoutMs'] })]
      await expect(receiver.drain({ timeoutMs: timeoutMs as number })).rejects.toMatchObject({ issues })
    }
  })
})
