/** What one more operation costs when there are many subscriptions. */
import { startEmulator } from '../../../dist/emulator/index.js'
import { DeliveryReceiver } from '../../../dist/webhooks/index.js'
import { deliveryOf } from '../deliveries.js'
import { type Cost, callFor, callTimes, costOf } from '../measure.js'
import { serve } from '../processes.js'

const emulator = await startEmulator()
const url = `${emulator.baseUrl}/api/subscriptions`
const credentials = Buffer.from(`${emulator.username}:${emulator.password}`).toString('base64')
const headers = {
  authorization: `Basic ${credentials}`,
  'content-type': 'application/x-www-form-urlencoded',
}
let users = 0

async function subscribe(): Promise<number> {
  const body = new URLSearchParams({
    notification_type: 'behavioral',
    username: `user-${++users}`,
    callback_url: 'https://app.example.com/notifications',
  })
  const answer = await emulator.fetch(new Request(url, { method: 'POST', headers, body }))
  if (answer.status !== 201) throw new Error(`create was answered ${answer.status}`)
  const { subscription_id } = (await answer.json()) as { subscription_id: number }
  return subscription_id
}

async function subscribeAndEnd(): Promise<void> {
  const id = await subscribe()
  const answer = await emulator.fetch(new Request(`${url}/${id}`, { method: 'DELETE', headers }))
  if (answer.status !== 204) throw new Error(`unsubscribe was answered ${answer.status}`)
}

// Until it is compiled.
await callTimes(2_000, 1, subscribeAndEnd)

const receiver = new DeliveryReceiver({ allowUnauthenticated: true }).onAny(async () => {})

const functions = {
  /** Makes the emulator hold that many subscriptions. */
  hold: (count: number) => callTimes(count - emulator.subscriptions.length, 1, subscribe),
  /** Creates a subscription on the emulator, and ends it. */
  subscribeAndEnd: (runMs: number): Promise<Cost> => costOf(() => callFor(runMs, 1, subscribeAndEnd)),
  /** Delivers to a receiver, for one subscription after the other. */
  receive: ({ ids, runMs }: { ids: number; runMs: number }): Promise<Cost> => {
    let deliveries = 0
    return costOf(() =>
      callFor(runMs, 1, () =>
        receiver.handle({ method: 'POST', headers: {}, body: deliveryOf(deliveries++ % ids) }),
      ),
    )
  },
}
export type GrowthFunctions = typeof functions
serve(functions)
