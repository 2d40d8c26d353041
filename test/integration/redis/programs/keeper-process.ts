/** Run as a process that a test kills: a keeper on Redis, whose roster is a file. */
import './fast-clock.js'
import { appendFileSync, readFileSync } from 'node:fs'
import { inspect } from 'node:util'
import { Redis } from 'ioredis'
import { NotificationClient } from 'notification-subscriber'
import { SubscriptionKeeper } from 'notification-subscriber/keeper'
import { redisStore } from 'notification-subscriber/redis'
import { slowTime } from '../fast-time.js'
import { keeperLimits } from '../keeper-limits.js'
import type { KeeperReport } from '../keeper-processes.js'

const { CALLBACK_URL = '', REDIS_URL = '', ROSTER_FILE = '', REPORT_FILE = '', TOKEN = '' } = process.env
const { PROCESS_NAME = '' } = process.env
const clockStartedAt = Number(process.env.CLOCK_STARTED_AT)

/** Written before anything else happens: what was reported survives a kill. */
function report(what: KeeperReport): void {
  appendFileSync(REPORT_FILE, `${JSON.stringify(what)}\n`)
}

/** Everything that is in it, also of errors, on one line and without stacks. */
function shown(what: unknown): string {
  const text = inspect(what, { depth: 8, breakLength: Number.POSITIVE_INFINITY })
  return text.replaceAll(/\n +at .*/g, '').replaceAll(/\s*\n\s*/g, ' ')
}

/** Seconds since the clocks started, by the test's clock. */
function seconds(): string {
  return ((slowTime(clockStartedAt, Date.now()) - clockStartedAt) / 1_000).toFixed(2)
}

let hasSwept = false

function log(fields: object, message: string): void {
  if ('event' in fields && fields.event === 'sweep.done') hasSwept = true
  console.log(seconds(), message, shown(fields))
}

const client = NotificationClient.fromEnv()
const redis = new Redis(REDIS_URL)
redis.on('error', () => {})
const keeperWith = (token: string) =>
  new SubscriptionKeeper({
    // Each process has a relay of its own to the service: its address names no service that they share.
    client: {
      tryCreateSubscription: (...call) => client.tryCreateSubscription(...call),
      updateSubscriptionParameters: (...call) => client.updateSubscriptionParameters(...call),
      unsubscribe: (...call) => client.unsubscribe(...call),
    },
    name: 'kept',
    store: redisStore(redis),
    usernames: () => JSON.parse(readFileSync(ROSTER_FILE, 'utf8')),
    notificationTypes: ['behavioral', 'call-score'],
    callbackUrl: CALLBACK_URL,
    parameters: { token },
    sweepIntervalMs: 60_000,
    // Until a keeper lives long enough to read it, the roster may have changed altogether.
    maxRemovedShare: 1,
    ...keeperLimits,
    onGap: (gap) => report({ kind: 'gap', process: PROCESS_NAME, gap }),
    onProblem: (problem) => {
      const { code, resolved } = problem
      report({ kind: 'problem', process: PROCESS_NAME, code, resolved, text: shown(problem) })
    },
    logger: { debug: log, info: log, warn: log, error: log },
  })
let keeper = keeperWith(TOKEN)
keeper.start()

// A test run that is interrupted leaves no keeper behind.
process.on('disconnect', () => process.exit())

process.on(
  'message',
  async ({ id, command }: { id: number; command: 'known' | 'sweep' | { token: string } }) => {
    const answer = await answerTo(command)
    process.send?.({ id, answer })
  },
)

async function answerTo(command: 'known' | 'sweep' | { token: string }): Promise<unknown> {
  if (typeof command === 'object') {
    await keeper.stop()
    keeper = keeperWith(command.token)
    keeper.start()
    return keeper.sweep()
  }
  if (command === 'sweep') return keeper.sweep()
  return { hasSwept, subscriptions: [...keeper.subscriptions()] }
}
