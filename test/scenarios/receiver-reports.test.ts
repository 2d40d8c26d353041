/** What a receiver reports: to handlers, `onInvalid`, `onError`, `onRefused`, and the logger. */
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
import { deliveryOf, lowEnergyDelivery } from '../webhooks/deliveries.js'
import { post, recordingLogger, secrets } from '../webhooks/support.js'

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
    const refused = {
      event: 'callback.refused',
      status: 401,
      reason: 'the header "token" is missing',
      header: 'token',
    }
    expect(written()).toEqual([[expect.any(String), refused]])
    vi.advanceTimersByTime(59_999)
    await receiver.handle(post({}))
    expect(console.error).toHaveBeenCalledOnce()
    vi.advanceTimersByTime(1)
    await receiver.handle(post({}))
    await receiver.handle(post({ token: 'x' }))
    expect(written().map(([, fields]) => fields)).toEqual([
      refused,
      { ...refused, unreported: 100 },
      { ...refused, reason: 'the header "token" is wrong' },
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

describe('onRefused gets every refusal, and so does the log', () => {
  async function refusalsOf(...requests: CallbackRequest[]) {
    const refusals: RefusedCallback[] = []
    const { logger, lines } = recordingLogger()
    const receiver = new DeliveryReceiver({
      secrets: { Token: 'the-current-secret', 'x-tenant': 'acme' },
      maxBodyBytes: 1_000,
      logger,
      onRefused: (refused) => refusals.push(refused),
    })
    for (const request of requests) await receiver.handle(request)
    expect(lines).toEqual(
      refusals.map((refused) => ({
        level: 'warn',
        fields: { event: 'callback.refused', ...refused },
        message: expect.stringContaining('Callback refused'),
      })),
    )
    return refusals
  }

  test.each<[string, CallbackRequest['headers'], string, string]>([
    ['missing', {}, 'Token', 'the header "Token" is missing'],
    [
      'the second one missing',
      { token: 'the-current-secret' },
      'x-tenant',
      'the header "x-tenant" is missing',
    ],
    ['missing in Headers', new Headers({ 'x-tenant': 'acme' }), 'Token', 'the header "Token" is missing'],
    ['wrong', { token: 'a-guess', 'x-tenant': 'acme' }, 'Token', 'the header "Token" is wrong'],
    ['empty', { token: '' }, 'Token', 'the header "Token" is wrong'],
    ['a list', { token: ['the-current-secret', 'x'] }, 'Token', 'the header "Token" is there twice'],
  ])('401: a header that is %s is named, never its value', async (_, headers, header, reason) => {
    expect(await refusalsOf(post(headers))).toEqual([{ status: 401, reason, header }])
  })

  test('405 and 413, and 401 for what is no request', async () => {
    const authentic = { token: 'the-current-secret', 'x-tenant': 'acme' }
    const requests = [
      { ...post(), method: 'PUT' },
      { ...post(authentic), body: 'x'.repeat(1_001) },
      undefined as never,
    ]
    expect(await refusalsOf(...requests)).toEqual([
      { status: 405, reason: 'the method is not POST' },
      { status: 413, reason: 'the body is larger than 1000 bytes' },
      { status: 401, reason: 'the request cannot be read' },
    ])
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
    const { id, type } = lowEnergyDelivery().notification
    const slow = { event: 'handler.slow', ackTimeoutMs: 1, durationMs: expect.any(Number) }
    expect(lines.filter(({ level }) => level === 'warn')).toEqual([
      {
        level: 'warn',
        fields: { ...slow, subscriptionId: 4711, notificationId: id, type },
        message: expect.any(String),
      },
      {
        level: 'warn',
        fields: { ...slow, issues: [expect.anything()] },
        message: expect.any(String),
      },
    ])
    resolve()
    await receiver.drain()
  })

  test('has a probe at debug level, and onRefused does not get it', async () => {
    const { logger, lines } = recordingLogger()
    const onRefused = vi.fn()
    const receiver = new DeliveryReceiver({ secrets, logger, onRefused })
    for (const method of ['GET', 'head']) {
      const answer = await receiver.handle({ ...post({}), method })
      expect(answer).toEqual({ status: 405, headers: { allow: 'POST' } })
    }
    expect(lines.map(({ level, fields }) => [level, fields])).toEqual([
      ['debug', { event: 'callback.probed', method: 'GET' }],
      ['debug', { event: 'callback.probed', method: 'head' }],
    ])
    expect(onRefused).not.toHaveBeenCalled()
    await new DeliveryReceiver({ secrets }).handle({ ...post({}), method: 'GET' })
    expect(console.error).not.toHaveBeenCalled()
  })
})

describe('the log line of a body that is no delivery', () => {
  const fieldsOf = async (body: unknown) => {
    const { logger, lines } = recordingLogger()
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
      expect(inspect(await fieldsOf(form), { depth: 9 })).not.toContain('secret')
    }
  })

  test.each<[string, unknown]>([
    ['no JSON', '{"type":"secret"'],
    ['bytes that are no text', Uint8Array.of(0x22, 0xff)],
    [
      'names that are none',
      { subscriptionId: 'secret', notification: { id: ['secret'], type: { a: 'secret' } } },
    ],
    ['no notification', { notification: 'secret' }],
    ['a schema of the user’s, which quotes', deliveryOf('cxScoreUpdated', { score: 'secret' })],
    ['a record, whose keys are in the path', deliveryOf('scoresUpdated', { secret: 'high' })],
  ])('quotes nothing of %s', async (_, body) => {
    const lines = await fieldsOf(body)
    expect(lines).toMatchObject([{ event: 'delivery.invalid', reason: expect.any(String) }])
    expect(inspect(lines, { depth: 9 })).not.toContain('secret')
  })

  test('has long names cut', async () => {
    const [fields] = await fieldsOf({ notification: { type: 'x'.repeat(1_000) } })
    expect(fields).toMatchObject({ type: `${'x'.repeat(100)}…` })
  })
})
