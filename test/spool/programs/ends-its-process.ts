/**
 * Delivers what is in a spool; some deliveries end the process: by `process.exit`, by a heap overflow, or by a loop without
 * end, for which a watchdog kills it; or in the schema of its payload. One also ends it in `onStuck`. Prints `begun ID`, `done ID`, `kept ID`, `stuck ID`, and at the end `empty`.
 */
import { spawn } from 'node:child_process'
import { writeSync } from 'node:fs'
import { DeliverySpool } from 'notification-subscriber/spool'
import * as z from 'zod'

const [path = ''] = process.argv.slice(2)
const say = (text: string) => writeSync(1, `${text}\n`)

const endings: Record<string, () => unknown> = {
  exit: () => setImmediate(() => process.exit(70)),
  heap: () => {
    for (const hoard: unknown[] = []; ; ) hoard.push(new Array(1_000).fill(hoard))
  },
  loop: () => {
    // The watchdog of an orchestrator, which sees that the process answers no more.
    const kill = `setTimeout(() => process.kill(${process.pid}, 'SIGKILL'), 300)`
    spawn(process.execPath, ['-e', kill], { stdio: 'ignore' })
    for (;;) {}
  },
}

const payload = z.looseObject({}).transform((given) => {
  if (given.ending === 'schema') process.exit(71)
  return given
})

const spool = await DeliverySpool.open({
  path,
  logger: false,
  payloads: { cxScoreUpdated: payload },
  onStuck: ({ delivery: { notification } }) => {
    say(`stuck ${notification.id}`)
    if (Object(notification.payload).ending === 'exit') process.exit(72)
  },
  deliver: async ({ notification }) => {
    say(`begun ${notification.id}`)
    await endings[String(Object(notification.payload).ending)]?.()
    await new Promise((resolve) => setTimeout(resolve, 20))
    say(`done ${notification.id}`)
  },
})
const notification = { id: 'nmeanwhile', time: 1, ver: '1.0', type: 'cxScoreUpdated', payload: {} }
await spool.keep(notification, { delivery: { subscriptionId: 1, notification } })
say('kept nmeanwhile')
while (spool.size > 0) await new Promise((resolve) => setTimeout(resolve, 5))
await spool.close()
say('empty')
