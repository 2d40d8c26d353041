import { inspect } from 'node:util'
import {
  type CallbackRequest,
  createDeliveryParser,
  DeliveryReceiver,
  InvalidDeliveryError,
} from 'notification-subscriber/webhooks'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import * as z from 'zod'
import { deferred } from '../../support/deferred.js'
import { deliveryOf, lowEnergyDelivery } from '../deliveries.js'
import { authenticated, recordingLogger, recordingOnInvalid, secrets } from './support.js'

const body = JSON.stringify(lowEnergyDelivery())
const post = (headers: CallbackRequest['headers'] = authenticated) => ({ method: 'POST', headers, body })
const open = { allowUnauthenticated: true, logger: false } as const

type Then = (resolve: () => void, reject: (error: Error) => void) => void
function revokedProxy() {
  const { proxy, revoke } = Proxy.revocable({}, {})
  revoke()
  return proxy
}

const thenable = (then: Then) => Object.fromEntries([['then', then]])

describe('only what is not from the service is refused', () => {
  test('a POST with the secret is answered with 204 and reaches the handler', async () => {
    const seen: unknown[] = []
    const receiver = new DeliveryReceiver({ secrets }).on('lowEnergyAgentOpened', (notification, context) => {
      seen.push(notification.payload.callId, context.subscriptionId, context.delivery)
    })
    expect(await receiver.handle(post())).toEqual({ status: 204, headers: {} })
    expect(seen).toEqual(['9a1f0a52-1f6e-4a41-8b8b-9f1d2d3c4b5a', 4711, lowEnergyDelivery()])
  })

  test.each(['GET', 'PUT', 'HEAD', 'OPTIONS', '', undefined, 'POSTS'])(
    'method %s: 405 with Allow',
    async (method) => {
      const receiver = new DeliveryReceiver({ secrets }).onAny(() => expect.unreachable())
      const answer = await receiver.handle({ method, headers: {}, body })
      expect(answer).toEqual({ status: 405, headers: { allow: 'POST' } })
    },
  )

  test.each<[string, unknown]>([
    ['missing', {}],
    ['wrong', { token: 'current-secreT' }],
    ['wrong in its last character, the longest one', { token: 'previous-secreT' }],
    ['wrong in its first character', { token: 'Current-secret' }],
    ['a prefix', { token: 'current-secre' }],
    ['longer', { token: 'current-secret1' }],
    ['padded', { token: 'current-secret\0\0' }],
    ['longer than all accepted values', { token: 'previous-secret'.repeat(1000) }],
    ['empty', { token: '' }],
    ['undefined', { token: undefined }],
    ['an array', { token: ['current-secret'] }],
    ['an array of two', { token: ['current-secret', 'current-secret'] }],
    ['sent twice and joined', { token: 'current-secret, current-secret' }],
    ['sent twice in different case', { token: 'current-secret', Token: 'current-secret' }],
    [
      'in Headers twice',
      new Headers([
        ['token', 'current-secret'],
        ['token', 'current-secret'],
      ]),
    ],
    ['in empty Headers', new Headers()],
    ['a number', { token: 5 }],
    ['in another header, whose name is as long', { taken: 'current-secret' }],
    ['on the prototype', Object.create({ token: 'current-secret' })],
    ['no headers', undefined],
    ['null', null],
    ['text', 'token: current-secret'],
    ['pairs', [['token', 'current-secret']]],
  ])('a secret that is %s: 401, and no handler is called', async (_, headers) => {
    const receiver = new DeliveryReceiver({ secrets, onInvalid: () => expect.unreachable() })
    receiver.onAny(() => expect.unreachable())
    expect(await receiver.handle({ ...post(), headers: headers as CallbackRequest['headers'] })).toEqual({
      status: 401,
      headers: {},
    })
  })

  test('header names are the same in any case, in every form of headers', async () => {
    const receiver = new DeliveryReceiver({ secrets: { 'X-Token': 'a', userdata: 'b, c' } })
    for (const headers of [
      { 'x-token': 'a', UserData: 'b, c' },
      { 'X-TOKEN': 'a', userdata: 'b, c', other: ['x', 'y'], absent: undefined },
      { 'x-token': 'a', 'X-Token': undefined, userdata: 'b, c', UserData: null },
      { 'y-token': 'a', 'x-token': 'a', usertype: 'x', userdata: 'b, c' },
      { 'x-token': 'a', userdata: 'b, c', get: 'a header of this name' },
      { get: (name: string) => ({ 'x-token': 'a', userdata: 'b, c' })[name] ?? null },
      new Headers({ 'x-token': 'a', userData: 'b, c' }),
      Object.assign(Object.create(null), { 'x-token': 'a', userdata: 'b, c' }),
    ]) {
      expect((await receiver.handle(post(headers as CallbackRequest['headers']))).status).toBe(204)
    }
  })

  test('methods are the same in any case, as some frameworks write them', async () => {
    const receiver = new DeliveryReceiver({ secrets })
    expect((await receiver.handle({ ...post(), method: 'post' })).status).toBe(204)
  })

  test.each([undefined, null, 'token: a', 5, () => {}, []])(
    'headers of %j are no reason to refuse where no secret is asked for',
    async (headers) => {
      const receiver = new DeliveryReceiver(open)
      expect((await receiver.handle({ ...post(), headers: headers as never })).status).toBe(204)
    },
  )

  test('every header that is named must be right', async () => {
    const receiver = new DeliveryReceiver({ secrets: { first: 'a', second: ['b', 'c'] } })
    const status = async (headers: CallbackRequest['headers']) =>
      (await receiver.handle(post(headers))).status
    expect(await status({ first: 'a', second: 'c' })).toBe(204)
    expect(await status({ first: 'x', second: 'c' })).toBe(401)
    expect(await status({ first: 'a', second: 'x' })).toBe(401)
    expect(await status({ first: 'a' })).toBe(401)
    expect(await status({ first: 'b', second: 'a' })).toBe(401)
  })

  test('the old and the new secret pass while secrets are rotated', async () => {
    const receiver = new DeliveryReceiver({ secrets })
    for (const token of secrets.token) expect((await receiver.handle(post({ token }))).status).toBe(204)
  })

  test('a header named like a property of objects is a header like others', async () => {
    const receiver = new DeliveryReceiver({ secrets: JSON.parse('{"__proto__": "a", "constructor": "b"}') })
    expect((await receiver.handle(post({}))).status).toBe(401)
    const headers = JSON.parse('{"__proto__": "a", "constructor": "b"}')
    expect((await receiver.handle(post(headers))).status).toBe(204)
  })

  test('the method is looked at first, then the secret, then the size', async () => {
    const receiver = new DeliveryReceiver({ secrets, maxBodyBytes: 1 })
    expect((await receiver.handle({ method: 'GET', headers: {}, body })).status).toBe(405)
    expect((await receiver.handle({ method: 'POST', headers: {}, body })).status).toBe(401)
    expect((await receiver.handle(post())).status).toBe(413)
  })

  test('a body of maxBodyBytes is read, a larger one gets 413: text counts in UTF-8', async () => {
    const text = JSON.stringify(deliveryOf('größer', { text: '€€€€€€€€€' }))
    const bytes = new TextEncoder().encode(text)
    for (const form of [text, bytes, Buffer.from(text), bytes.buffer, new DataView(bytes.buffer)]) {
      for (const [maxBodyBytes, status] of [
        [bytes.length, 204],
        [bytes.length - 1, 413],
        [5, 413],
      ] as const) {
        const calls: string[] = []
        const receiver = new DeliveryReceiver({ ...open, maxBodyBytes }).onAny(({ type }) => calls.push(type))
        expect((await receiver.handle({ method: 'POST', headers: {}, body: form })).status).toBe(status)
        expect(calls).toHaveLength(status === 204 ? 1 : 0)
      }
    }
  })

  test('the default limit is 1 MiB', async () => {
    const receiver = new DeliveryReceiver(open)
    const status = async (size: number) =>
      (await receiver.handle({ method: 'POST', headers: {}, body: new Uint8Array(size) })).status
    expect(await status(2 ** 20)).toBe(204)
    expect(await status(2 ** 20 + 1)).toBe(413)
  })
})

describe('everything else is answered with 204', () => {
  test.each<[string, unknown, string]>([
    ['no JSON', '{', 'the body is not JSON'],
    ['an empty body', '', 'the body is empty'],
    ['no body', undefined, 'an object is needed, not undefined'],
    ['no UTF-8', new Uint8Array([0xff]), 'the body is not UTF-8'],
    [
      'a wrong shape',
      { subscriptionId: 'x', notification: lowEnergyDelivery().notification },
      'must be a number',
    ],
    ['a wrong payload', deliveryOf('lowEnergyAgentOpened', { callId: 1 }), 'must be text'],
    [
      'getters that throw',
      {
        get subscriptionId() {
          throw new Error('no')
        },
      },
      'the body cannot be read (no)',
    ],
    ['a proxy without an object', revokedProxy(), 'the body cannot be read'],
  ])('%s goes to onInvalid, with the body', async (_, invalid, problem) => {
    const { onInvalid, errors, problems } = recordingOnInvalid()
    const receiver = new DeliveryReceiver({ secrets, onInvalid }).onAny(() => expect.unreachable())
    expect((await receiver.handle({ ...post(), body: invalid })).status).toBe(204)
    expect(errors).toEqual([expect.any(InvalidDeliveryError)])
    expect(errors[0]?.body).toBe(invalid)
    expect(problems()[0]).toContain(problem)
  })

  test('types and fields that are not known reach handlers', async () => {
    const seen: string[] = []
    const receiver = new DeliveryReceiver({ secrets, onInvalid: () => expect.unreachable() })
      .on('somethingNew', ({ payload }) => seen.push(`on ${payload.a}`))
      .onAny(({ type }) => seen.push(`any ${type}`))
    await receiver.handle({ ...post(), body: deliveryOf('somethingNew', { a: 1 }) })
    await receiver.handle({ ...post(), body: deliveryOf('cxScoreUpdated', {}) })
    expect(seen).toEqual(['on 1', 'any somethingNew', 'any cxScoreUpdated'])
  })

  test('a type that is named like a property of objects reaches only its own handlers', async () => {
    const seen: string[] = []
    const receiver = new DeliveryReceiver(open).on('__proto__', ({ type }) => seen.push(type))
    for (const type of ['__proto__', 'constructor', 'toString', 'hasOwnProperty']) {
      expect((await receiver.handle({ ...post(), body: deliveryOf(type, {}) })).status).toBe(204)
    }
    expect(seen).toEqual(['__proto__'])
  })

  test('a parser’s schemas give handlers their output', async () => {
    const parser = createDeliveryParser({
      payloads: { cxScoreUpdated: z.object({ score: z.coerce.number() }) },
    })
    const scores: number[] = []
    const { onInvalid, errors } = recordingOnInvalid()
    const receiver = new DeliveryReceiver({ ...open, parser, onInvalid })
    receiver.on('cxScoreUpdated', ({ payload }) => scores.push(payload.score))
    await receiver.handle({ ...post(), body: deliveryOf('cxScoreUpdated', { score: '87' }) })
    await receiver.handle({ ...post(), body: deliveryOf('cxScoreUpdated', { score: {} }) })
    expect(scores).toEqual([87])
    expect(errors).toHaveLength(1)
  })

  test('a parser of another make that throws is no failure', async () => {
    const { onInvalid, problems } = recordingOnInvalid()
    const safeParse = () => {
      throw new Error('broken')
    }
    const receiver = new DeliveryReceiver({ ...open, onInvalid, parser: { safeParse, parse: safeParse } })
    expect((await receiver.handle(post())).status).toBe(204)
    expect(problems()).toEqual(['the body cannot be read (broken)'])
  })

  test.each<[string, () => unknown]>([
    [
      'throws',
      () => {
        throw new Error('no')
      },
    ],
    [
      'rejects',
      async () => {
        throw new Error('no')
      },
    ],
    ['rejects later', () => new Promise((_, reject) => setTimeout(() => reject(new Error('no')), 5))],
    ['returns a thenable that rejects', () => thenable((_, reject) => reject(new Error('no')))],
    [
      'returns a thenable that throws',
      () =>
        thenable(() => {
          throw new Error('no')
        }),
    ],
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

  test('what is thrown may be anything', async () => {
    const thrown: unknown[] = []
    for (const value of [undefined, null, 0, 'text', Object.create(null), Symbol('s')]) {
      const receiver = new DeliveryReceiver({ ...open, onError: (error) => thrown.push(error) })
      receiver.onAny(() => {
        throw value
      })
      expect((await receiver.handle(post())).status).toBe(204)
    }
    expect(thrown).toHaveLength(6)
  })

  test.each<[string, () => unknown]>([
    [
      'throw',
      () => {
        throw new Error('callback broke')
      },
    ],
    [
      'reject',
      async () => {
        throw new Error('callback broke')
      },
    ],
  ])('onInvalid and onError that %s are logged and change nothing', async (_, broken) => {
    const { logger, lines } = recordingLogger()
    const receiver = new DeliveryReceiver({ secrets, logger, onInvalid: broken, onError: broken })
    receiver.onAny(() => {
      throw new Error('handler broke')
    })
    expect((await receiver.handle(post())).status).toBe(204)
    expect((await receiver.handle({ ...post(), body: '{' })).status).toBe(204)
    const err = new Error('callback broke')
    const { id, type } = lowEnergyDelivery().notification
    expect(lines.filter(({ level }) => level !== 'debug')).toEqual([
      {
        level: 'error',
        fields: { subscriptionId: 4711, id, type, err },
        message: 'onError failed',
      },
      {
        level: 'error',
        fields: { err, issues: [{ path: [], message: expect.stringContaining('not JSON') }] },
        message: 'onInvalid failed',
      },
    ])
  })
})

describe('the log', () => {
  test('gets a debug line for a delivery, and a line for what has no callback', async () => {
    const { logger, lines } = recordingLogger()
    const receiver = new DeliveryReceiver({ secrets, logger, maxBodyBytes: 1000 })
      .on('lowEnergyAgentOpened', () => {})
      .on('cxScoreUpdated', () => {
        throw new Error('handler broke')
      })
    await receiver.handle(post())
    await receiver.handle({ ...post(), body: deliveryOf('cxScoreUpdated', {}) })
    await receiver.handle({ ...post(), body: '{' })
    await receiver.handle(post({}))
    await receiver.handle({ ...post(), method: 'GET' })
    await receiver.handle({ ...post(), body: 'x'.repeat(1001) })
    const { id } = deliveryOf('cxScoreUpdated', {}).notification
    const delivered = (type: string) => ({
      level: 'debug',
      fields: { subscriptionId: 4711, id, type },
      message: 'Delivery received',
    })
    const refused = (fields: object) => ({
      level: 'warn',
      fields,
      message: expect.stringMatching(/^Callback refused/),
    })
    expect(lines).toEqual([
      delivered('lowEnergyAgentOpened'),
      delivered('cxScoreUpdated'),
      {
        level: 'error',
        fields: { subscriptionId: 4711, id, type: 'cxScoreUpdated', err: new Error('handler broke') },
        message: 'Handler failed',
      },
      {
        level: 'error',
        fields: { issues: [{ path: [], message: expect.stringContaining('the body is not JSON') }] },
        message: expect.stringMatching(/^Not a notification delivery: the body is not JSON.*onInvalid/),
      },
      refused({ status: 401, reason: 'the header "token" is missing', header: 'token' }),
      refused({ status: 405, reason: 'the method is not POST' }),
      refused({ status: 413, reason: 'the body is larger than 1000 bytes' }),
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
    for (const token of [...secrets.token, 'a-wrong-secret', 'current-secret, current-secret']) {
      for (const content of [body, '{', 'x'.repeat(2 ** 21)]) {
        await receiver.handle({ ...post({ token }), body: content })
      }
    }
    expect(lines.length).toBeGreaterThan(0)
    expect(inspect(seen, { depth: 9, showHidden: true })).not.toContain('-secret')
  })

  test('a logger that throws changes nothing', async () => {
    const broken = () => {
      throw new Error('disk full')
    }
    const logger = { debug: broken, info: broken, warn: broken, error: broken }
    const receiver = new DeliveryReceiver({ secrets, logger }).onAny(broken)
    expect((await receiver.handle(post())).status).toBe(204)
    expect((await receiver.handle({ ...post(), body: '' })).status).toBe(204)
    expect((await receiver.handle(post({}))).status).toBe(401)
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
    receiver.onAny(() => {
      throw new Error('no')
    })
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

describe('handlers', () => {
  test('that wait for nothing need no timer', async () => {
    const setTimer = vi.spyOn(globalThis, 'setTimeout')
    const receiver = new DeliveryReceiver({ ...open, onError() {} })
      .onAny(() => {})
      .onAny(async () => {})
      .onAny(async () => {
        throw new Error('no')
      })
    await receiver.handle(post())
    expect(setTimer).not.toHaveBeenCalled()
    setTimer.mockRestore()
  })

  test('are called in the order of their registration, each once, and all of them for one delivery', async () => {
    const seen: number[] = []
    const add = (value: number) => () => void seen.push(value)
    const same = add(1)
    const receiver = new DeliveryReceiver(open).onAny(same).on('lowEnergyAgentOpened', add(2)).onAny(add(3))
    receiver.on('other', add(4)).onAny(same)
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
  test('at once if none does', async () => {
    const receiver = new DeliveryReceiver(open).onAny(() => {})
    await receiver.drain()
    await receiver.handle(post())
    await receiver.drain()
  })

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

  test('after onError of a handler that failed late', async () => {
    const reported = deferred<void>()
    const receiver = new DeliveryReceiver({ ...open, ackTimeoutMs: 1, onError: () => reported.promise })
    receiver.onAny(async () => {
      throw new Error('no')
    })
    await receiver.handle(post())
    const drained = vi.fn()
    const drain = receiver.drain().then(drained)
    await new Promise(setImmediate)
    expect(drained).not.toHaveBeenCalled()
    reported.resolve()
    await drain
  })
})
