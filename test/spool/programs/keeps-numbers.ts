/** Keeps deliveries as fast as it can, and says the id of each that is kept, with a full stop: a process to be killed. */
import { DeliverySpool } from 'notification-subscriber/spool'

const [path = '', start = '0'] = process.argv.slice(2)
const spool = await DeliverySpool.open({ path, deliver: () => new Promise(() => {}), maxBytes: 2 ** 40 })
let id = Number(start)
async function keepForEver(): Promise<void> {
  for (;;) {
    const number = id++
    const notification = { id: `n${number}`, time: 1, ver: '1.0', type: 'cxScoreUpdated', payload: {} }
    await spool.keep(notification, { delivery: { subscriptionId: 1, notification } })
    // Not writeSync, which fails when the reader is slow.
    process.stdout.write(`${notification.id}.\n`)
  }
}
await Promise.all(Array.from({ length: 32 }, keepForEver))
