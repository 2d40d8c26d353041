/** What the examples share, and an app of yours does not need: the service is emulated, and sends a callback. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import type { Server } from 'node:net'
import { NotificationClient } from 'notification-subscriber'
import { type KeyAndCertificate, startEmulator } from 'notification-subscriber/emulator'
import type { DeliveryReceiver } from 'notification-subscriber/webhooks'

/** In an app the token comes from the configuration, like any other secret. */
export const callbackToken = randomBytes(24).toString('base64url')

export interface RunningServer {
  /** `https://127.0.0.1:<port>` */
  readonly origin: string
  /** Takes no more requests, and resolves when the last one is answered. */
  close(): Promise<unknown>
}

/**
 * Plays the life of an app that receives callbacks: its server starts, a subscription is created, a
 * notification arrives at `/notifications`, the server shuts down and loses nothing.
 *
 * @param startServer - gets a key and a certificate that the emulated service trusts
 */
export async function demonstrate(
  receiver: Pick<DeliveryReceiver, 'drain'>,
  startServer: (tls: KeyAndCertificate) => Promise<RunningServer>,
): Promise<void> {
  await using emulator = await startEmulator()
  await using client = new NotificationClient(emulator.clientOptions)
  const server = await startServer(emulator.tls)

  await client.createSubscription({
    notificationTypes: ['behavioral'],
    usernames: ['alice'],
    callbackUrl: `${server.origin}/notifications`,
    parameters: { token: callbackToken },
  })
  const [callback] = await emulator.notify({
    type: 'lowEnergyAgentOpened',
    category: 'behavioral',
    username: 'alice',
    payload: { callId: 'call-1', username: 'alice', bTime: 21648, nTime: 35912, idx: 0 },
  })
  console.log(`The service was answered with ${callback?.status ?? callback?.error}`)

  // A clean shutdown: no new callbacks, then the handlers that still run.
  await server.close()
  await receiver.drain()
}

/** Starts a server of Node.js on a free port of loopback. */
export async function listen(server: Server): Promise<RunningServer> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('The server has no TCP port')
  return {
    origin: `https://127.0.0.1:${address.port}`,
    close: () => new Promise((resolve) => server.close(resolve)),
  }
}
