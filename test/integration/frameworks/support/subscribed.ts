/** The emulator as the sender, with one subscription that calls back the server under test. */
import type { RequestListener } from 'node:http'
import { createServer } from 'node:https'
import { NotificationClient } from 'notification-subscriber'
import {
  type EmulatedNotification,
  type Emulator,
  type KeyAndCertificate,
  startEmulator,
} from 'notification-subscriber/emulator'
import type { DeliveryReceiver } from 'notification-subscriber/webhooks'
import { serving } from '../../../support/listen.js'

export const callbackToken = 'token-of-the-subscription'

/** Not ASCII only: a server that decodes bodies as something else than UTF-8 would be found out. */
export const lowEnergy = {
  type: 'lowEnergyAgentOpened',
  category: 'behavioral',
  username: 'alice',
  id: '5f0c9a56-9d0c-4c55-8a4e-0f3d3a1f9b11',
  time: 1_700_000_000_000,
  ver: '1.0',
  payload: { callId: 'Anruf № 1 – ☎', username: 'alice', bTime: 21648, nTime: 35912, idx: 0 },
} satisfies EmulatedNotification

export interface RunningServer extends AsyncDisposable {
  readonly origin: string
}

/** Starts a server with a receiver behind `/notifications`. */
export type StartServer = (receiver: DeliveryReceiver, tls: KeyAndCertificate) => Promise<RunningServer>

/** Starts a server for a listener of Node.js. */
export async function secure(tls: KeyAndCertificate, listener: RequestListener): Promise<RunningServer> {
  const server = await serving(createServer(tls, listener))
  return { ...server, origin: `https://${server.host}` }
}

export interface Subscribed extends AsyncDisposable {
  readonly emulator: Emulator
  readonly origin: string
  readonly subscriptionId: number
  /** Makes later callbacks carry another token. */
  sendToken(token: string): Promise<void>
}

/** Starts both, and subscribes to what happens to alice, with the token as a parameter. */
export async function subscribe(
  startServer: (tls: KeyAndCertificate) => Promise<RunningServer>,
  path = '/notifications',
): Promise<Subscribed> {
  const emulator = await startEmulator()
  const server = await startServer(emulator.tls)
  const client = new NotificationClient(emulator.clientOptions)
  const { subscriptionId } = await client.createSubscription({
    notificationTypes: ['behavioral'],
    usernames: ['alice'],
    callbackUrl: server.origin + path,
    parameters: { token: callbackToken },
  })
  return {
    emulator,
    origin: server.origin,
    subscriptionId,
    sendToken: (token) => client.updateSubscriptionParameters(subscriptionId, { parameters: { token } }),
    async [Symbol.asyncDispose]() {
      await client.close()
      // The sender first: its connections would keep a server waiting.
      await emulator.close()
      await server[Symbol.asyncDispose]()
    },
  }
}
