import dns from 'node:dns'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { TimeoutError } from '../../src/errors.js'
import { refusingPort } from '../support/listen.js'
import { created, lowEnergy, type Reaction, Receiver } from './support.js'

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

/** Every name has these addresses. */
function stubLookup(...found: { address: string; family: number }[]) {
  const lookup = (_name: string, _options: object, answer: (error: null, found: object) => void) =>
    answer(null, found)
  return vi.spyOn(dns, 'lookup').mockImplementation(lookup as never)
}

test('a callback (docs/service.md, Delivery) is a POST over HTTPS with the JSON body and every parameter as a header', async () => {
  const id = await created(emulator, {
    url: `${receiver.url}?a=1`,
    fields: { token: 'Bearer x', 'X-Umlaut': 'ä' },
    headers: { userdata: 'mine' },
  })
  const before = Date.now()
  const results = await emulator.notify(lowEnergy)
  expect(results).toEqual([
    { subscriptionId: id, callbackUrl: `${receiver.url}?a=1`, status: 204, subscriptionEnded: false },
  ])
  const [callback] = receiver.callbacks
  expect(callback).toMatchObject({
    method: 'POST',
    path: '/callbacks?a=1',
    headers: { 'content-type': 'application/json', token: 'Bearer x', 'x-umlaut': 'ä', userdata: 'mine' },
    body: {
      subscriptionId: id,
      notification: { ver: '1.0', type: 'lowEnergyAgentOpened', payload: lowEnergy.payload },
    },
  })
  const notification = callback?.body.notification
  expect(notification?.id).toMatch(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
  expect(notification?.time).toBeGreaterThanOrEqual(before)
  expect(notification?.time).toBeLessThanOrEqual(Date.now())
})

describe('failed callbacks (docs/service.md, States)', () => {
  const late = 'The callback was not answered within 1000 ms'
  const failures: [string, Reaction, string | RegExp, status?: number][] = [
    ['an answer of 500', 500, 'The callback was answered with status 500', 500],
    ['a redirect, which is not followed', { redirectTo: '/elsewhere' }, /answered with status 307$/, 307],
    ['a broken connection', 'break', /closed|reset|disconnected/],
    ['no answer in time', 'hang', late],
    ['an answer that breaks off', 'cut', /closed|terminated|aborted/],
    ['an answer that never ends', 'endless', late],
    ['an answer of more than 1 MiB', { status: 200, body: 'x'.repeat(1_048_577) }, /over 1048576 bytes$/],
  ]
  // At the same time: some of them wait for the time limit.
  test.concurrent.each(failures)(
    '%s is a failure and is not retried',
    async (_, reaction, message, status) => {
      const timesOut = message === late
      await using emulator = await startEmulator({ callbackTimeoutMs: timesOut ? 1_000 : 10_000 })
      await using receiver = await Receiver.start(emulator)
      await created(emulator, { url: receiver.url })
      receiver.reactions.push(reaction)
      const [result] = await emulator.notify(lowEnergy)
      expect(result?.error?.message).toMatch(message)
      expect(result?.error instanceof TimeoutError).toBe(timesOut)
      if (result?.error instanceof TimeoutError) expect(result.error.timeoutMs).toBe(1_000)
      expect(result?.status).toBe(status)
      expect(result?.subscriptionEnded).toBe(false)
      expect(emulator.subscriptions).toMatchObject([{ consecutiveFailures: 1 }])
      // The next one gets through: what was received in between would have been a retry.
      await emulator.notify({ ...lowEnergy, id: 'next' })
      expect(receiver.callbacks).toHaveLength(2)
      expect(receiver.callbacks[1]).toMatchObject({
        path: '/callbacks',
        body: { notification: { id: 'next' } },
      })
    },
  )

  test('a port without a listener and an untrusted certificate are failures', async () => {
    await using emulator = await startEmulator()
    await using stranger = await startEmulator()
    await using untrusted = await Receiver.start(stranger)
    await created(emulator, { url: untrusted.url })
    // A name of two addresses: Node.js gives an error without a message.
    await created(emulator, { url: `https://localhost:${refusingPort}/` })
    using _lookup = stubLookup({ address: '127.0.0.1', family: 4 }, { address: '::1', family: 6 })
    expect(await emulator.notify(lowEnergy)).toMatchObject([
      { error: { code: 'UNABLE_TO_VERIFY_LEAF_SIGNATURE' } },
      { error: { message: expect.stringMatching(/^connect E\w+ 127\.0\.0\.1:.+; connect E\w+ ::1:/) } },
    ])
    expect(untrusted.callbacks).toEqual([])
  })

  test.each([
    ['localhost', 'write `http:` in the callback URL, or serve it with `emulator.tls`'],
    ['plain.test', 'write the port of the receiver that speaks TLS in the callback URL'],
  ])('a port of %s that does not speak TLS is named so, with what to write', async (host, advice) => {
    await using plain = await Receiver.startInsecure()
    const { port } = new URL(plain.url)
    using _lookup = stubLookup({ address: '127.0.0.1', family: 4 })
    await created(emulator, { url: `https://${host}:${port}/` })
    const [failed] = await emulator.notify(lowEnergy)
    expect(failed?.error?.message).toBe(`The port answers, but not in TLS: ${advice}`)
  })

  test('callbackCa makes such a certificate trusted', async () => {
    await using stranger = await startEmulator()
    await using emulator = await startEmulator({ callbackCa: stranger.ca })
    await using receiver = await Receiver.start(stranger)
    await using own = await Receiver.start(emulator)
    await created(emulator, { url: receiver.url })
    await created(emulator, { url: own.url })
    expect(await emulator.notify(lowEnergy)).toMatchObject([{ status: 204 }, { status: 204 }])
  })

  test('callbacks that still queue when their subscription ends are not sent', async () => {
    await using emulator = await startEmulator({ callbackTimeoutMs: 60_000 })
    await using receiver = await Receiver.start(emulator)
    await created(emulator, { url: receiver.url })
    receiver.reactions.push(...new Array(1_000).fill(500))
    const sent = await Promise.all(Array.from({ length: 300 }, () => emulator.notify(lowEnergy)))
    const results = sent.flat()
    expect(results).toHaveLength(300)
    expect(results.every(({ error }) => error !== undefined)).toBe(true)
    expect(receiver.callbacks.length).toBeGreaterThanOrEqual(3)
    expect(receiver.callbacks.length).toBeLessThan(300)
    expect(results.filter(({ status }) => status === 500)).toHaveLength(receiver.callbacks.length)
    const unsent = results.filter(({ status }) => status === undefined)
    expect(new Set(unsent.map(({ error }) => error?.message))).toEqual(
      new Set(['The subscription ended before this callback was sent']),
    )
  })

  test('a receiver that hangs does not hold up another one', async () => {
    await using emulator = await startEmulator({ callbackTimeoutMs: 600_000 })
    await using hanging = await Receiver.start(emulator)
    await using other = await Receiver.start(emulator)
    await created(emulator, { url: hanging.url })
    await created(emulator, { url: other.url, users: 'bob' })
    hanging.reactions.push(...new Array(200).fill('hang'))
    const waiting = Array.from({ length: 200 }, () => emulator.notify(lowEnergy))
    expect(await emulator.notify({ ...lowEnergy, username: 'bob' })).toMatchObject([{ status: 204 }])
    // A burst waits in turn.
    expect(hanging.callbacks.length).toBeLessThanOrEqual(64)
    await emulator.close()
    await Promise.all(waiting)
  })
})
