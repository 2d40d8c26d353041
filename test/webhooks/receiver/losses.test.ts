import { inspect } from 'node:util'
import {
  type CallbackRequest,
  createDeliveryParser,
  DeliveryReceiver,
  type DeliveryReceiverOptions,
  type RefusedCallback,
} from 'notification-subscriber/webhooks'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import * as z from 'zod'
import { deferred } from '../../support/deferred.js'
import { eventually } from '../../support/eventually.js'
import { deliveryOf, lowEnergyDelivery } from '../deliveries.js'
import { authenticated, recordingLogger, secrets } from './support.js'

const body = JSON.stringify(lowEnergyDelivery())
const post = (headers: CallbackRequest['headers'] = authenticated) => ({ method: 'POST', headers, body })

const fail = () => {
  throw new Error('no database')
}

beforeEach(() => {
  vi.spyOn(console, 'error').mockImplementation(() => {})
})
afterEach(() => {
  vi.restoreAllMocks()
  vi.useRealTimers()
})

/** What was written to console.error, each call as one text. */
const written = () => vi.mocked(console.error).mock.calls.map((values) => values.map(String).join(' '))

describe('without a logger and callbacks, what is lost is told on console.error', () => {
  test('a handler that throws', async () => {
    await new DeliveryReceiver({ secrets }).onAny(fail).handle(post())
    expect(console.error).toHaveBeenCalledExactlyOnceWith('notification-subscriber: Handler failed', {
      subscriptionId: 4711,
      id: lowEnergyDelivery().notification.id,
      type: 'lowEnergyAgentOpened',
      err: new Error('no database'),
    })
  })

  test('a body that is no delivery, with what to do', async () => {
    await new DeliveryReceiver({ secrets }).handle({ ...post(), body: '{' })
    expect(written()).toEqual([
      expect.stringMatching(/^notification-subscriber: Not a notification .*onInvalid/),
    ])
  })

  test('no body at all, with what to do, which is not onInvalid: that could keep nothing', async () => {
    await new DeliveryReceiver({ secrets }).handle({ ...post(), body: undefined })
    expect(written()).toEqual([
      expect.stringMatching(/It is lost: put the route before every body parser \(docs\/receiver\.md\)\./),
    ])
  })

  test.each<[string, Pick<DeliveryReceiverOptions, 'onError' | 'onInvalid' | 'onRefused'>, CallbackRequest]>([
    ['onInvalid', { onInvalid: async () => fail() }, { ...post(), body: '{' }],
    ['onError', { onError: fail }, post()],
    ['onRefused', { onRefused: fail }, post({})],
  ])('what %s throws: it was to keep what is lost now', async (name, callbacks, request) => {
    await new DeliveryReceiver({ secrets, ...callbacks }).onAny(fail).handle(request)
    await eventually(() => expect(written()).toEqual([expect.stringContaining(`: ${name} failed`)]))
  })

  test('a refusal, at most once a minute, with the number of those in between', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const receiver = new DeliveryReceiver({ secrets })
    for (let request = 0; request < 100; request += 1) await receiver.handle(post({}))
    const refused = { status: 401, reason: 'the header "token" is missing', header: 'token' }
    const counted = '(more within a minute are only counted)'
    const line = `notification-subscriber: Callback refused: "401 on my route" in docs/troubleshooting.md ${counted}`
    expect(vi.mocked(console.error).mock.calls).toEqual([[line, refused]])
    vi.advanceTimersByTime(59_999)
    await receiver.handle(post({}))
    expect(console.error).toHaveBeenCalledOnce()
    vi.advanceTimersByTime(1)
    await receiver.handle(post({}))
    await receiver.handle(post({}))
    vi.advanceTimersByTime(60_000)
    await receiver.handle({ ...post(), method: 'GET' })
    expect(vi.mocked(console.error).mock.calls).toEqual([
      [line, refused],
      [line, { ...refused, unreported: 100 }],
      [
        `notification-subscriber: Callback refused ${counted}`,
        { status: 405, reason: 'the method is not POST', unreported: 1 },
      ],
    ])
  })

  test.each<[string, Partial<DeliveryReceiverOptions>]>([
    ['logger: false', { logger: false }],
    ['a logger', { logger: recordingLogger().logger }],
    ['callbacks', { onError() {}, onInvalid() {}, onRefused() {} }],
  ])('nothing with %s, and nothing when all is well', async (_, options) => {
    const receiver = new DeliveryReceiver({ secrets, ...options } as DeliveryReceiverOptions).onAny(fail)
    await receiver.handle(post())
    await receiver.handle({ ...post(), body: '{' })
    await receiver.handle(post({}))
    await new DeliveryReceiver({ secrets }).onAny(() => {}).handle(post())
    expect(console.error).not.toHaveBeenCalled()
  })
})

describe('onRefused gets every refusal instead of the log', () => {
  async function refusalsOf(...requests: CallbackRequest[]) {
    const refusals: RefusedCallback[] = []
    const { logger, lines } = recordingLogger()
    const receiver = new DeliveryReceiver({
      secrets: { Token: 'current-secret', 'x-tenant': 'acme' },
      maxBodyBytes: 1_000,
      logger,
      onRefused: (refused) => refusals.push(refused),
    })
    for (const request of requests) await receiver.handle(request)
    expect(lines).toEqual([])
    return refusals
  }

  test.each<[string, CallbackRequest['headers'], string, string]>([
    ['missing', {}, 'Token', 'the header "Token" is missing'],
    ['the second one missing', { token: 'current-secret' }, 'x-tenant', 'the header "x-tenant" is missing'],
    ['missing in Headers', new Headers({ 'x-tenant': 'acme' }), 'Token', 'the header "Token" is missing'],
    ['wrong', { token: 'a-guess', 'x-tenant': 'acme' }, 'Token', 'the header "Token" is wrong'],
    ['empty', { token: '' }, 'Token', 'the header "Token" is wrong'],
    ['there twice', { token: 'a', TOKEN: 'b' }, 'Token', 'the header "Token" is there twice'],
    ['a list', { token: ['current-secret'] }, 'Token', 'the header "Token" is not text'],
  ])('401: a header that is %s is named, never its value', async (_, headers, header, reason) => {
    expect(await refusalsOf(post(headers))).toEqual([{ status: 401, reason, header }])
  })

  test('405 and 413, and 401 for what is no request', async () => {
    const authentic = { token: 'current-secret', 'x-tenant': 'acme' }
    const requests = [
      { ...post(), method: 'GET' },
      { ...post(authentic), body: 'x'.repeat(1_001) },
      undefined as never,
    ]
    expect(await refusalsOf(...requests)).toEqual([
      { status: 405, reason: 'the method is not POST' },
      { status: 413, reason: 'the body is larger than 1000 bytes' },
      { status: 401, reason: 'the request cannot be read' },
    ])
  })

  test.each([
    ['throws', fail],
    ['rejects', async () => fail()],
  ])('one that %s is logged, and the answer stays', async (_, onRefused) => {
    const { logger, lines } = recordingLogger()
    const receiver = new DeliveryReceiver({ secrets, logger, onRefused })
    expect((await receiver.handle(post({ token: 'a-guess' }))).status).toBe(401)
    await eventually(() => expect(lines).toHaveLength(1))
    expect(lines).toMatchObject([{ level: 'error', fields: { status: 401 }, message: 'onRefused failed' }])
    expect(inspect(lines, { depth: 9 })).not.toContain('a-guess')
  })

  test('one that never ends delays no answer', async () => {
    const receiver = new DeliveryReceiver({ secrets, onRefused: () => new Promise(() => {}) })
    expect((await receiver.handle(post({}))).status).toBe(401)
    expect(await receiver.drain()).toBe(0)
  })
})

describe('the log', () => {
  test('warns of handlers that are still running after ackTimeoutMs, of onInvalid, too', async () => {
    const { promise, resolve } = deferred<void>()
    const { logger, lines } = recordingLogger()
    const receiver = new DeliveryReceiver({ secrets, logger, ackTimeoutMs: 1, onInvalid: () => promise })
    receiver.onAny(() => promise)
    await receiver.handle(post())
    await receiver.handle({ ...post(), body: '{' })
    const message = 'Answered before the handlers were done: they go on'
    const { id, type } = lowEnergyDelivery().notification
    expect(lines.filter(({ level }) => level === 'warn')).toEqual([
      { level: 'warn', fields: { subscriptionId: 4711, id, type, ackTimeoutMs: 1 }, message },
      { level: 'warn', fields: { issues: [expect.anything()], ackTimeoutMs: 1 }, message },
    ])
    resolve()
    await receiver.drain()
  })

  test.each([
    ['lowEnergyAgentOpend', 'lowEnergyAgentOpened'],
    ['LowEnergyAgentOpened', 'lowEnergyAgentOpened'],
    ['silenceHigh', 'silenceHighOpened'],
    ['cxScoreUpdate', 'cxScoreUpdated'],
    ['topicKeywordsAbsentEvents', 'topicKeywordAbsentEvent'],
  ])('gets one info line about a handler for %s, which names %s', (type, nearest) => {
    const { logger, lines } = recordingLogger()
    new DeliveryReceiver({ secrets, logger }).on(type, () => {}).on(type, () => {})
    expect(lines).toEqual([
      { level: 'info', fields: { type, nearest }, message: expect.stringContaining(`"${nearest}" misspelt`) },
    ])
  })

  test('gets one without a name where none is near', () => {
    const { logger, lines } = recordingLogger()
    new DeliveryReceiver({ secrets, logger }).on('somethingNew', () => {})
    const message = 'A handler waits for "somethingNew", a notification type that is not documented'
    expect(lines).toEqual([{ level: 'info', fields: { type: 'somethingNew' }, message }])
  })

  test('gets one about a type that is subscribed to, with what is delivered for it', () => {
    const { logger, lines } = recordingLogger()
    new DeliveryReceiver({ secrets, logger }).on('call-score', () => {})
    const message =
      'A handler waits for "call-score", which is subscribed to and never delivered: wait for what it brings'
    expect(lines).toEqual([
      { level: 'info', fields: { type: 'call-score', delivered: ['cxScoreUpdated'] }, message },
    ])
  })

  test('gets none about a type that is documented or has a schema', () => {
    const { logger, lines } = recordingLogger()
    const payloads = { mine: z.object({}) }
    for (const options of [{ payloads }, { parser: createDeliveryParser({ payloads }) }]) {
      new DeliveryReceiver({ secrets, logger, ...options })
        .on('mine', () => {})
        .on('topicKeywordEvent', () => {})
        .onAny(() => {})
    }
    expect(lines).toEqual([])
  })
})

describe('drain', () => {
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

  test('leaves no timer when the deliveries are done in time', async () => {
    vi.useFakeTimers()
    const { promise, resolve } = deferred<void>()
    const receiver = new DeliveryReceiver({ secrets, ackTimeoutMs: 0 }).onAny(() => promise)
    const answer = receiver.handle(post())
    await vi.advanceTimersByTimeAsync(0)
    await answer
    const drained = receiver.drain({ timeoutMs: 60_000 })
    await vi.advanceTimersByTimeAsync(59_999)
    expect(vi.getTimerCount()).toBe(1)
    resolve()
    expect(await drained).toBe(0)
    expect(vi.getTimerCount()).toBe(0)
  })

  test.each([-1, Number.NaN, 2 ** 31, '5', null])('refuses a timeoutMs of %j', async (timeoutMs) => {
    const receiver = new DeliveryReceiver({ secrets })
    await expect(receiver.drain({ timeoutMs: timeoutMs as number })).rejects.toThrow(
      /^The delivery receiver cannot work: `timeoutMs`/,
    )
  })
})

describe('context.header', () => {
  async function headersSeen(headers: CallbackRequest['headers'], ...names: string[]) {
    const seen: (string | undefined)[] = []
    const receiver = new DeliveryReceiver({ secrets }).onAny((_, { header }) => {
      seen.push(...names.map(header))
    })
    await receiver.handle(post(headers))
    return seen
  }

  test('gives the associated values of the subscription, by names in any case', async () => {
    const sent = { ...authenticated, UserData: 'tenant=acme', 'x-empty': '' }
    const names = ['userdata', 'UserData', 'token', 'x-empty', 'X-Absent']
    const values = ['tenant=acme', 'tenant=acme', 'current-secret', '', undefined]
    expect(await headersSeen(sent, ...names)).toEqual(values)
    expect(await headersSeen(new Headers(sent), ...names)).toEqual(values)
  })

  test('gives nothing for a header that was sent twice, or is a list', async () => {
    const sent = { ...authenticated, userdata: 'a', UserData: 'b', list: ['a'] }
    expect(await headersSeen(sent, 'userdata', 'list')).toEqual([undefined, undefined])
  })

  test('reaches onError, and works after the answer', async () => {
    const { promise, resolve } = deferred<void>()
    const seen = vi.fn()
    const receiver = new DeliveryReceiver({
      secrets,
      ackTimeoutMs: 0,
      onError: (_error, _notification, context) => seen(context.header('userdata')),
    }).onAny(async () => {
      await promise
      fail()
    })
    await receiver.handle(post({ ...authenticated, userdata: 'tenant=acme' }))
    resolve()
    await receiver.drain()
    expect(seen).toHaveBeenCalledExactlyOnceWith('tenant=acme')
  })
})

describe('payloads', () => {
  const payloads = { cxScoreUpdated: z.object({ score: z.coerce.number() }) }

  test('are checked and given to handlers as their schemas return them', async () => {
    const scores: number[] = []
    const problems: string[] = []
    const receiver = new DeliveryReceiver({
      secrets,
      payloads,
      onInvalid: ({ message }) => problems.push(message),
    }).on('cxScoreUpdated', ({ payload }) => scores.push(payload.score))
    await receiver.handle({ ...post(), body: deliveryOf('cxScoreUpdated', { score: '87' }) })
    await receiver.handle({ ...post(), body: deliveryOf('cxScoreUpdated', { score: {} }) })
    expect(scores).toEqual([87])
    expect(problems).toEqual([expect.stringContaining('notification.payload.score')])
  })

  test('cannot go with a parser, and must be zod schemas', () => {
    const parser = createDeliveryParser({ payloads })
    const construct = (options: object) => () => new DeliveryReceiver({ secrets, ...options })
    expect(construct({ payloads, parser })).toThrow(/`payloads` cannot go with `parser`/)
    expect(construct({ payloads: { a: () => true } })).toThrow(/`payloads\.a` must be a zod 4 schema/)
    expect(construct({ payloads: [] })).toThrow(
      /`payloads` must be an object of zod schemas by notification type/,
    )
  })
})
