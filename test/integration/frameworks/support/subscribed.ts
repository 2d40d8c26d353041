/** The emulator as the sender, with one subscription that calls back the server under test. */
import { NotificationClient } from 'notification-subscriber'
import { type Emulator, type KeyAndCertificate, startEmulator } from 'notification-subscriber/emulator'
import type { RunningServer } from './running-server.js'

export const callbackToken = 'token-of-the-subscription'

export interface Subscribed extends AsyncDisposable {
  readonly emulator: Emulator
  readonly server: RunningServer
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
    server,
    subscriptionId,
    sendToken: (token) => client.updateSubscriptionParameters(subscriptionId, { parameters: { token } }),
    async [Symbol.asyncDispose]() {
      await client.close()
      // The sender first: its connections would keep a server waiting.
      await emulator.close()
      await server.close()
    },
  }
}
