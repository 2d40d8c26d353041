/** What a receiver reports of callbacks: to the logger, on the console, and to `onRefused`. */
import { inspect } from 'node:util'
import {
  type CallbackRequest,
  DeliveryReceiver,
  type DeliveryReceiverOptions,
  type RefusedCallback,
} from 'notification-subscriber/webhooks'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import * as z from 'zod'
import { deferred } from '../support/deferred.js'
import { eventually } from '../support/eventually.js'
import { expectPage } from '../support/message-page.js'
import { recordingLogger } from '../support/recording-logger.js'
import { deliveryOf, lowEnergyDelivery } from './deliveries.js'
import { post, recordingReceiver, secrets } from './support.js'

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

/** What was written to console.error: each message with its fields. */
const written = () => vi.mocked(console.error).mock.calls as [message: string, fields: { reason?: string }][]

/** Callbacks that fail to keep what is lost, by the event that says so. */
const losing: [
  event: string,
  Pick<DeliveryReceiverOptions, 'onError' | 'onInvalid' | 'onRefused'>,
  CallbackRequest,
][] = [
  ['on-invalid.failed', { onInvalid: async () => fail() }, { ...post(), body: '{' }],
  ['on-error.failed', { onError: fail }, post()],
  ['on-refused.failed', { onRefused: fail }, post({})],
]

describe('without a logger and callbacks, losses are reported on console.error', () => {
  test('in these words: the reviewed page', async () => {
    const messages: Record<string, string> = {}
    const report = async (what: string, receiver: DeliveryReceiver, request: CallbackRequest) => {
      await receiver.handle(request)
      await eventually(() => expect(console.error).toHaveBeenCalledOnce())
      const [[message, { reason = 'none' }] = ['', {}]] = written()
      messages[what] = `${message}\n  reason: ${reason}`
      vi.mocked(console.error).mockClear()
    }
    await report('a handler that throws', new DeliveryReceiver({ secrets }).onAny(fail), post())
    await report('a body that is no delivery', new DeliveryReceiver({ secrets }), { ...post(), body: '{' })
    await report('no body at all', new DeliveryReceiver({ secrets }), { ...post(), body: undefined })
    await report('a request without the secret', new DeliveryReceiver({ secrets }), post({}))
    await report('another method', new DeliveryReceiver({ secrets }), { ...post(), method: 'PUT' })
    for (const [event, callbacks, request] of losing) {
      await report(event, new DeliveryReceiver({ secrets, ...callbacks }).onAny(fail), request)
    }
    await expectPage('losses-on-the-console', messages)
  })

  test('a refusal, at most once a minute for each reason, with the number of refusals in between', async () => {
    vi.useFakeTimers({ toFake: ['performance'] })
    const receiver = new DeliveryReceiver({ secrets })
    for (let request = 0; request < 100; request += 1) await receiver.handle(post({}))
    vi.advanceTimersByTime(59_999)
    await receiver.handle(post({}))
    expect(console.error).toHaveBeenCalledOnce()
    vi.advanceTimersByTime(1)
    await receiver.handle(post({}))
    await receiver.handle(post({ token: 'x' }))
    const refused = { event: 'callback.refused', status: 401, header: 'token' }
    const missing = { ...refused, reason: 'the header "token" is missing' }
    expect(written().map(([, fields]) => fields)).toEqual([
      missing,
      { ...missing, unreported: 100 },
      { ...refused, reason: 'the header "token" is wrong' },
    ])
  })

  test.each<[string, Partial<DeliveryReceiverOptions>]>([
    ['logger: false', { logger: false }],
    ['a logger', { logger: recordingLogger() }],
    ['callbacks', { onError() {}, onInvalid() {}, onRefused() {} }],
  ])('nothing with %s, and nothing when all is well', async (_, options) => {
    const receiver = new DeliveryReceiver({ secrets, ...options } as DeliveryReceiverOptions).onAny(fail)
    for (const request of [post(), { ...post(), body: '{' }, post({})]) await receiver.handle(request)
    await new DeliveryReceiver({ secrets }).onAny(() => {}).handle(post())
    expect(console.error).not.toHaveBeenCalled()
  })
})

test.each<[string, CallbackRequest, RefusedCallback['status'], reason: string, header?: string]>([
  ['no secret', post({}), 401, 'the header "Token" is missing', 'Token'],
  ['one of two', post({ token: 'right' }), 401, 'the header "x-tenant" is missing', 'x-tenant'],
  ['a wrong secret', post({ token: 'a-guess' }), 401, 'the header "Token" is wrong', 'Token'],
  ['a list', post({ token: ['right', 'x'] }), 401, 'the header "Token" is there twice', 'Token'],
  [
    'a secret twice',
    post({ token: 'right, right' }),
    401,
    'the header "Token" is there twice, joined by a comma',
    'Token',
  ],
  ['two secrets', post({ token: 'right, left' }), 401, 'the header "Token" is wrong', 'Token'],
  ['PUT', { ...post({}), method: 'PUT' }, 405, 'the method is not POST'],
  [
    'no method',
    { ...post({}), method: undefined },
    405,
    'the request has no method: pass a Request, or { method, headers, body }',
  ],
  [
    'a long body',
    { ...post({ token: 'right', 'x-tenant': 'acme' }), body: 'x'.repeat(1_001) },
    413,
    'the body is larger than 1000 bytes',
  ],
])(
  'onRefused and the log get the reason, and never a value: %s',
  async (_, request, status, reason, header) => {
    const refusals: RefusedCallback[] = []
    const { receiver, lines } = recordingReceiver({
      secrets: { Token: 'right', 'x-tenant': ['acme', 'a-long-name-of-a-tenant'] },
      maxBodyBytes: 1_000,
      onRefused: (refused) => refusals.push(refused),
    })
    lines.length = 0
    await receiver.handle(request)
    const refused = { status, reason, ...(header && { header }) }
    expect(refusals).toEqual([refused])
    expect(lines).toMatchObject([{ level: 'warn', fields: { event: 'callback.refused', ...refused } }])
  },
)

describe('the log', () => {
  test('has a debug line for a delivery, and a line for what is invalid or failed, with what it was about', async () => {
    const failing = { onError: fail, onInvalid: fail, onRefused: fail }
    const { receiver, lines } = recordingReceiver(failing)
    receiver.onAny(fail)
    for (const request of [post(), { ...post(), body: '{' }, post({})]) await receiver.handle(request)
    const { id, type } = lowEnergyDelivery().notification
    const delivery = { subscriptionId: 4711, notificationId: id, type }
    const err = expect.objectContaining({ message: 'no database' })
    const issues = [{ path: [], message: expect.any(String) }]
    const refused = { status: 401, reason: expect.any(String), header: 'token' }
    expect(lines.map(({ level, fields }) => [level, fields])).toEqual([
      ['debug', { event: 'delivery.received', ...delivery }],
      ['error', { event: 'handler.failed', ...delivery, err }],
      ['error', { event: 'on-error.failed', ...delivery, err }],
      ['error', { event: 'delivery.invalid', reason: expect.any(String), issues }],
      ['error', { event: 'on-invalid.failed', issues, err }],
      ['warn', { event: 'callback.refused', ...refused }],
      ['error', { event: 'on-refused.failed', ...refused, err }],
    ])
  })

  test('warns of handlers that are still running after ackTimeoutMs, of onInvalid, too', async () => {
    const { promise, resolve } = deferred<void>()
    const { receiver, lines } = recordingReceiver({ ackTimeoutMs: 1, onInvalid: () => promise })
    receiver.onAny(() => promise)
    await receiver.handle(post())
    await receiver.handle({ ...post(), body: '{' })
    const { id, type } = lowEnergyDelivery().notification
    const slow = { event: 'handler.slow', ackTimeoutMs: 1, durationMs: expect.any(Number) }
    expect(lines.filter(({ level }) => level === 'warn').map(({ fields }) => fields)).toEqual([
      { ...slow, subscriptionId: 4711, notificationId: id, type },
      { ...slow, issues: [expect.anything()] },
    ])
    resolve()
    await receiver.drain()
  })

  test('has a probe at debug level, and onRefused does not get it', async () => {
    const { receiver, lines } = recordingReceiver({ onRefused: () => expect.unreachable() })
    for (const method of ['GET', 'head']) await receiver.handle({ ...post({}), method })
    expect(lines.map(({ level, fields }) => [level, fields])).toEqual([
      ['debug', { event: 'callback.probed', method: 'GET' }],
      ['debug', { event: 'callback.probed', method: 'head' }],
    ])
  })

  test('never holds a secret, and neither do a receiver and what callbacks get', async () => {
    const { lines, ...logger } = recordingLogger()
    const seen: unknown[] = [lines]
    const see = (...values: unknown[]) => {
      seen.push(values)
      throw new Error('no')
    }
    const receiver = new DeliveryReceiver({ secrets, logger, onInvalid: see, onError: see }).onAny(see)
    for (const token of [...secrets.token, 'a-wrong-secret', 'the-current-secret, the-current-secret']) {
      for (const body of [post().body, '{', 'x'.repeat(2 ** 21)]) {
        await receiver.handle({ ...post({ token }), body })
      }
    }
    expect(seen.length).toBeGreaterThan(1)
    expect(inspect([seen, receiver], { depth: 9, showHidden: true })).not.toContain('-secret')
  })

  test.each<[type: string, fields: object]>([
    ['lowEnergyAgentOpend', { nearest: 'lowEnergyAgentOpened' }],
    ['silenceHigh', { nearest: 'silenceHighOpened' }],
    ['call-score', { delivered: ['cxScoreUpdated'] }],
  ])('has one warning about handlers for the undocumented type %s', (type, fields) => {
    const { receiver, lines } = recordingReceiver({ payloads: { mine: z.object({}) } })
    receiver
      .on<string>(type, () => {})
      .on<string>(type, () => {})
      .on<string>('mine', () => {})
      .on('topicKeywordEvent', () => {})
    const warning = { level: 'warn', fields: { event: 'handler.type-undocumented', type, ...fields } }
    expect(lines).toMatchObject([warning])
    new DeliveryReceiver({ secrets }).on<string>(type, () => {})
    expect(console.error).toHaveBeenCalledOnce()
  })
})

describe('the log line of a body that is no delivery', () => {
  const fieldsOf = async (body: unknown) => {
    const { lines, ...logger } = recordingLogger()
    const payloads = {
      cxScoreUpdated: z.object({ score: z.literal(4, { error: (issue) => `not ${issue.input}` }) }),
      scoresUpdated: z.record(z.string(), z.number()),
    }
    const receiver = new DeliveryReceiver({ secrets, logger, payloads })
    await receiver.handle({ ...post(), body })
    return lines.filter(({ level }) => level === 'error').map(({ fields }) => fields)
  }

  test('names type, subscription and notification', async () => {
    const body = deliveryOf('lowEnergyAgentOpened', { callId: 'secret' })
    const names = { type: 'lowEnergyAgentOpened', subscriptionId: 4711, notificationId: body.notification.id }
    for (const form of [body, JSON.stringify(body)]) {
      expect(await fieldsOf(form)).toMatchObject([{ event: 'delivery.invalid', ...names }])
    }
    const [fields] = await fieldsOf({ notification: { type: 'x'.repeat(1_000) } })
    expect(fields).toMatchObject({ type: `${'x'.repeat(100)}…` })
  })

  test.each<[string, unknown]>([
    ['no JSON', '{"type":"secret"'],
    ['a wrong payload', deliveryOf('lowEnergyAgentOpened', { callId: 'secret' })],
    ['names that are none', { subscriptionId: 'secret', notification: { id: ['secret'], type: ['secret'] } }],
    ['a schema of the user’s, which quotes', deliveryOf('cxScoreUpdated', { score: 'secret' })],
    ['a record, whose keys are in the path', deliveryOf('scoresUpdated', { secret: 'high' })],
  ])('quotes nothing of %s', async (_, body) => {
    const lines = await fieldsOf(body)
    expect(lines).toMatchObject([{ event: 'delivery.invalid', reason: expect.any(String) }])
    expect(inspect(lines, { depth: 9 })).not.toContain('secret')
  })
})
