/** What every framework has to do: the one expectation that the tables of this folder share. */
import type { KeyAndCertificate } from 'notification-subscriber/emulator'
import {
  DeliveryReceiver,
  type InvalidDeliveryError,
  type Notification,
} from 'notification-subscriber/webhooks'
import { expect } from 'vitest'
import { lowEnergy } from './notifications.js'
import type { RunningServer } from './running-server.js'
import { callbackToken, subscribe } from './subscribed.js'

/** Starts a server with a receiver behind `/notifications`. */
export type StartServer = (receiver: DeliveryReceiver, tls: KeyAndCertificate) => Promise<RunningServer>

/** The receiver's handler gets a notification of the emulator once and typed; a callback with another token is refused. */
export async function expectTypedDelivery(startServer: StartServer): Promise<void> {
  const handled: { subscriptionId: number; notification: Notification<'lowEnergyAgentOpened'> }[] = []
  const problems: unknown[] = []
  const receiver = new DeliveryReceiver({
    secrets: { token: callbackToken },
    onInvalid: (error: InvalidDeliveryError) => problems.push(error),
    onError: (error) => problems.push(error),
    // The stranger at the end is no news here.
    onRefused: () => {},
  }).on('lowEnergyAgentOpened', async (notification, { subscriptionId }) => {
    handled.push({ subscriptionId, notification })
  })
  await using subscribed = await subscribe((tls) => startServer(receiver, tls))

  const [callback] = await subscribed.emulator.notify(lowEnergy)

  expect(problems).toEqual([])
  expect(callback).toMatchObject({ status: 204, subscriptionEnded: false })
  const { id, time, ver, type, payload } = lowEnergy
  const { subscriptionId } = subscribed
  expect(handled).toEqual([{ subscriptionId, notification: { id, time, ver, type, payload } }])

  await subscribed.sendToken('of-someone-else')
  const [refused] = await subscribed.emulator.notify(lowEnergy)
  expect(refused).toMatchObject({ status: 401 })
  expect(handled).toHaveLength(1)
}
