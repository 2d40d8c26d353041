import type { EmulatedNotification } from 'notification-subscriber/emulator'
import { DeliveryReceiver } from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import { brokenPayload, lowEnergy, unknownType } from './support/notifications.js'
import { servers } from './support/servers.js'
import { callbackToken, type Subscribed, subscribe } from './support/subscribed.js'

const times = 10

describe.each(servers)('three failures end a subscription (docs/service.md, States): $name', (server) => {
  test.each([
    ['a handler that always throws', lowEnergy, 'onError'],
    ['a payload that breaks the schema', brokenPayload, 'onInvalid'],
    ['an unknown type', unknownType, 'onAny'],
  ] as const)(`${times} times %s, and it is still active`, async (_name, notification, expected) => {
    const reached: string[] = []
    const receiver = new DeliveryReceiver({
      secrets: { token: callbackToken },
      onError: () => reached.push('onError'),
      onInvalid: () => reached.push('onInvalid'),
    })
      .on('lowEnergyAgentOpened', async () => {
        throw new Error('the database is away')
      })
      .on<string>(unknownType.type, () => reached.push('onAny'))
    await using subscribed = await subscribe((tls) => server.start(receiver, tls))

    expect(await sendTimes(subscribed, notification)).toEqual(Array(times).fill(204))

    expect(reached).toEqual(Array(times).fill(expected))
    expect(subscribed.emulator.subscriptions).toHaveLength(1)
  })

  test(`${times} times a handler that hangs, and it is still active`, async () => {
    const { released, release } = gate()
    let started = 0
    let finished = 0
    const receiver = new DeliveryReceiver({
      secrets: { token: callbackToken },
      ackTimeoutMs: 20,
    }).onAny(async () => {
      started += 1
      await released
      finished += 1
    })
    await using subscribed = await subscribe((tls) => server.start(receiver, tls))

    expect(await sendTimes(subscribed, lowEnergy)).toEqual(Array(times).fill(204))

    expect({ started, finished }).toEqual({ started: times, finished: 0 })
    expect(subscribed.emulator.subscriptions).toHaveLength(1)
    release()
    await receiver.drain()
    expect(finished).toBe(times)
  })

  test('a shutdown closes the server, then waits for the handlers that still run', async () => {
    const { released, release } = gate()
    let finished = 0
    const receiver = new DeliveryReceiver({
      secrets: { token: callbackToken },
      ackTimeoutMs: 20,
    }).onAny(async () => {
      await released
      finished += 1
    })
    await using subscribed = await subscribe((tls) => server.start(receiver, tls))
    await Promise.all([subscribed.emulator.notify(lowEnergy), subscribed.emulator.notify(unknownType)])

    await subscribed.server.close()
    const drained = receiver.drain()
    expect(await Promise.race([drained.then(() => 'drained'), 'handlers still run'])).toBe(
      'handlers still run',
    )
    release()
    await drained

    expect(finished).toBe(2)
    const [afterwards] = await subscribed.emulator.notify(lowEnergy)
    expect(afterwards?.error).toBeInstanceOf(Error)
    expect(afterwards).not.toHaveProperty('status')
  })
})

/** One after the other; resolves with the statuses of the answers. */
async function sendTimes({ emulator }: Subscribed, notification: EmulatedNotification) {
  const statuses: (number | undefined)[] = []
  for (let sent = 0; sent < times; sent += 1) {
    const [callback] = await emulator.notify(notification)
    statuses.push(callback?.status)
  }
  return statuses
}

/** What a handler waits for until the test releases it. */
function gate() {
  let release = () => {}
  const released = new Promise<void>((resolve) => {
    release = resolve
  })
  return { released, release }
}
