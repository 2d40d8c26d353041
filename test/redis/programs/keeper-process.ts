/** Run as a process that a test kills: a keeper on Redis, whose roster is a file. */
import './fast-clock.js'
import { appendFileSync, readFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { NotificationClient, SubscriptionKeeper } from 'notification-subscriber'
import { redisStore } from 'notification-subscriber/redis'
import type { KeeperReport } from '../keeper-processes.js'

const { CALLBACK_URL = '', REDIS_URL = '', ROSTER_FILE = '', REPORT_FILE = '' } = process.env

/** Written before anything else happens: what was told survives a kill. */
function report(what: KeeperReport): void {
  appendFileSync(REPORT_FILE, `${JSON.stringify(what)}\n`)
}

function log(fields: object, message: string): void {
  console.log(message, JSON.stringify(fields))
  if ('standing' in fields) report({ kind: 'standing', pid: process.pid, standing: String(fields.standing) })
}

const redis = new Redis(REDIS_URL)
const keeper = new SubscriptionKeeper({
  client: NotificationClient.fromEnv(),
  name: 'kept',
  store: redisStore(redis),
  usernames: () => JSON.parse(readFileSync(ROSTER_FILE, 'utf8')),
  notificationTypes: ['behavioral', 'call-score'],
  callbackUrl: CALLBACK_URL,
  parameters: { token: 'sesame' },
  sweepIntervalMs: 60_000,
  // Until a keeper lives long enough to read it, the roster may have changed altogether.
  maxRemovedShare: 1,
  onGap: (gap) => report({ kind: 'gap', gap }),
  onProblem: ({ code, resolved }) => report({ kind: 'problem', code, resolved }),
  logger: { debug: () => {}, info: log, warn: log, error: log },
})
keeper.start()
