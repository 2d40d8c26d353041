import {
  type CallbackFault,
  type CallbackFaultOptions,
  startEmulator,
} from 'notification-subscriber/emulator'
import { describe, expect, test } from 'vitest'
import { InvalidRequestError, TimeoutError } from '../../src/errors.js'
import { created, lowEnergy, Receiver } from './support.js'

describe('injected faults of callbacks', () => {
  test.each<[CallbackFault, number, string]>([
    [{ status: 503 }, 0, 'The callback was answered with status 503'],
    [{ status: 302 }, 0, 'The callback was answered with status 302'],
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

  test('three of them end the subscription', async () => {
    await using emulator = await startEmulator()
    await created(emulator)
    emulator.injectFault('callback', { status: 500 }, { times: 3 })
    for (const subscriptionEnded of [false, false, true]) {
      expect(await emulator.notify(lowEnergy)).toMatchObject([{ subscriptionEnded }])
    }
    expect(emulator.subscriptions).toEqual([])
  })

  test('with a subscriptionId the callbacks of others are left alone, and later faults do not wait', async () => {
    await using emulator = await startEmulator()
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

  test('clearFaults() forgets them, and requests never meet them', async () => {
    await using emulator = await startEmulator()
    await using receiver = await Receiver.start(emulator)
    emulator.injectFault('callback', { status: 500 }, { times: 9 })
    await created(emulator, { url: receiver.url })
    emulator.clearFaults()
    expect(await emulator.notify(lowEnergy)).toMatchObject([{ status: 204 }])
  })

  const oneKind = '`fault` must be one of { status }, { delayMs } and { reset }.'
  test.each<[unknown, CallbackFaultOptions, string]>([
    [
      { status: 204 },
      {},
      '`fault.status` must be 300 to 599: a callback that is answered with 2xx succeeds.',
    ],
    [{ status: 600 }, {}, '`fault.status` must be at most 599.'],
    [{ status: 500, body: 'no' }, {}, '`fault` has no `body`, only `status`.'],
    [{ malformedBody: true }, {}, oneKind],
    [{ delayMs: -1 }, {}, '`fault.delayMs` must be at least 0.'],
    [{ status: 500 }, { times: 0 }, '`times` must be at least 1.'],
    [{ status: 500 }, { subscriptionId: 0 }, '`subscriptionId` must be at least 1.'],
  ])('one that could never happen is refused: %j %j', async (fault, options, sentence) => {
    await using emulator = await startEmulator()
    const inject = () => emulator.injectFault('callback', fault as CallbackFault, options)
    expect(inject).toThrow(InvalidRequestError)
    expect(inject).toThrow(`The fault cannot be injected: ${sentence}`)
  })

  test('a subscriptionId for the fault of an endpoint is refused', async () => {
    await using emulator = await startEmulator()
    const options = { times: 1, subscriptionId: 1 }
    expect(() => emulator.injectFault('create', { status: 500 }, options)).toThrow(
      'The fault cannot be injected: `subscriptionId` is for callbacks only.',
    )
  })
})
