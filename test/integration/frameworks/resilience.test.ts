/** Nothing that an app does with a delivery fails a callback: docs/service.md, States. */
import { createServer } from 'node:https'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'
import { expect, test } from 'vitest'
import { deferred } from '../../support/deferred.js'
import { brokenPayload, lowEnergy, unknownType } from './support/notifications.js'
import { startServer } from './support/running-server.js'
import { callbackToken, subscribe } from './support/subscribed.js'

const never = deferred<void>()

test.each([
  ['a handler that always throws', lowEnergy, 'onError'],
  ['a payload that breaks the schema', brokenPayload, 'onInvalid'],
  ['an unknown type, and a handler that hangs', unknownType, 'onAny'],
] as const)('ten times %s, and the subscription is still active', async (_name, notification, expected) => {
  const reached: string[] = []
  const receiver = new DeliveryReceiver({
    secrets: { token: callbackToken },
    ackTimeoutMs: 20,
    onError: () => reached.push('onError'),
    onInvalid: () => reached.push('onInvalid'),
  })
    .on('lowEnergyAgentOpened', async () => {
      throw new Error('the database is away')
    })
    .on<string>(unknownType.type, () => {
      reached.push('onAny')
      return never.promise
    })
  await using subscribed = await subscribe((tls) => startServer(createServer(tls, toNodeHandler(receiver))))

  for (let sent = 0; sent < 10; sent += 1) {
    expect(await subscribed.emulator.notify(notification)).toMatchObject([{ status: 204 }])
  }

  expect(reached).toEqual(Array(10).fill(expected))
  expect(subscribed.emulator.subscriptions).toHaveLength(1)
})
