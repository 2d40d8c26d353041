/** Run as a process that a test kills: a keeper on Redis, whose roster is a file. */
import './fast-clock.js'
import { appendFileSync, readFileSync } from 'node:fs'
import { inspect } from 'node:util'
import { Redis } from 'ioredis'
import { NotificationClient, SubscriptionKeeper } from 'notification-subscriber'
import { redisStore } from 'notification-subscriber/redis'
import { slowTime } from '../fast-time.js'
import { keeperLimits } from '../keeper-limits.js'
import type { KeeperReport } from '../keeper-processes.js'

const { CALLBACK_URL = '', REDIS_URL = '', ROSTER_FILE = '', REPORT_FILE = '', TOKEN = '' } = process.env
const { PROCESS_NAME = '' } = process.env
const clockStartedAt = Number(process.env.CLOCK_STARTED_AT)

/** Written before anything else happens: what was told survives a kill. */
function report(what: KeeperReport): void {
  appendFileSync(REPORT_FILE, `${JSON.stringify(what)}\n`)
}

/** Everything that is in it, also of errors. */
function shown(what: unknown): string {
  return inspect(what, { depth: 8, breakLength: Number.POSITIVE_INFINITY })
}

function log(fields: object, message: string): void {
  console.log(message, shown(fields))
}

/** A request may wait for its connection: what counts is when the keeper decided on it. */
function reportCall(call: 'create' | 'recreate' | 'update' | 'unsubscribe', subject: string): void {
  const at = slowTime(clockStartedAt, Date.now())
  report({ kind: 'call', process: PROCESS_NAME, call, subject, at })
}

const client = NotificationClient.fromEnv()
const redis = new Redis(REDIS_URL)
redis.on('error', () => {})
const keeper = new SubscriptionKeeper({
  client: {
    tryCreateSubscription(input, options) {
      reportCall(input.recreateIfExists ? 'recreate' : 'create', input.usernames.join())
      return client.tryCreateSubscription(input, options)
    },
    updateSubscriptionParameters(id, input, options) {
      reportCall('update', String(id))
      return client.updateSubscriptionParameters(id, input, options)
    },
    unsubscribe(id, options) {
      reportCall('unsubscribe', String(id))
      return client.unsubscribe(id, options)
    },
  },
  name: 'kept',
  store: redisStore(redis),
  usernames: () => JSON.parse(readFileSync(ROSTER_FILE, 'utf8')),
  notificationTypes: ['behavioral', 'call-score'],
  callbackUrl: CALLBACK_URL,
  parameters: { token: TOKEN },
  sweepIntervalMs: 60_000,
  // Until a keeper lives long enough to read it, the roster may have changed altogether.
  maxRemovedShare: 1,
  ...keeperLimits,
  onGap: (gap) => report({ kind: 'gap', process: PROCESS_NAME, gap }),
  onProblem: (problem) => {
    const { code, resolved, sinceAt } = problem
    report({ kind: 'problem', process: PROCESS_NAME, code, resolved, sinceAt, text: shown(problem) })
  },
  logger: { debug: log, info: log, warn: log, error: log },
})
keeper.start()
