/**
 * Loses no notification that was answered, on one machine: each is on the disk before its callback is answered, and
 * leaves it when the work is done. Run it with `npx tsx examples/spool-and-work.ts`; it needs the package `lmdb`.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DeliverySpool } from 'notification-subscriber/spool'
import { type Delivery, DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'
import { callbackToken, demonstrate, listen } from './support/demonstrate.js'

// In an app: a path on a local disk that outlives the process, such as /var/lib/my-app/spool.
const folder = await mkdtemp(join(tmpdir(), 'spool-and-work-'))

let attempts = 0

/** The work. It may come twice for the same notification: `notification.id` tells. */
async function coach({ subscriptionId, notification }: Delivery): Promise<void> {
  attempts += 1
  // Whatever throws is repeated: after one second, then two, then four, up to a minute.
  if (attempts === 1) throw new Error('the database is away')
  if (notification.type === 'lowEnergyAgentOpened') {
    const { username, callId } = notification.payload
    console.log(`Subscription ${subscriptionId}: ${username} sounds tired on ${callId}, attempt ${attempts}`)
  }
}

const spool = await DeliverySpool.open({
  path: join(folder, 'spool'),
  deliver: coach,
  logger: false, // the failure above is on purpose; in an app leave this out, or give your logger
})
const receiver = new DeliveryReceiver({
  secrets: { token: callbackToken },
  onInvalid: spool.keepInvalid,
}).onAny(spool.keep)

await demonstrate(receiver, (tls) => listen(createServer(tls, toNodeHandler(receiver))))

// An app that stops leaves what waits to its next start. This one has no next start.
while (spool.size > 0) await new Promise((resolve) => setTimeout(resolve, 100))
await spool.close()
await rm(folder, { recursive: true })
