/** Opens a spool, keeps one delivery, and stays: a process or a thread to be killed. Says `open`, or why not. */
import { DeliverySpool } from 'notification-subscriber/spool'

const [path = ''] = process.argv.slice(2)
try {
  const spool = await DeliverySpool.open({ path, deliver: () => new Promise(() => {}) })
  const notification = { id: 'nheld', time: 1, ver: '1.0', type: 'cxScoreUpdated', payload: {} }
  if (spool.size === 0) await spool.keep(notification, { delivery: { subscriptionId: 1, notification } })
  console.log('open')
} catch (error) {
  console.log(error instanceof Error ? error.message : error)
}
