/** Run as a process that a test kills: a keeper on Redis. */
import './fast-clock.js'
import { appendFileSync } from 'node:fs'
import { Redis } from 'ioredis'
import { NotificationClient } from 'notification-subscriber'
import { SubscriptionKeeper } from 'notification-subscriber/keeper'
import { redisStore } from 'notification-subscriber/redis'

const { CALLBACK_URL = '', GAPS_FILE = '', REDIS_URL = '', TOKEN = '', USERNAMES = '' } = process.env

const log = (fields: object, message: string) => console.log(message, JSON.stringify(fields))

const redis = new Redis(REDIS_URL)
redis.on('error', () => {})
const keeper = new SubscriptionKeeper({
  client: NotificationClient.fromEnv(),
  name: 'kept',
  store: redisStore(redis),
  usernames: USERNAMES.split(','),
  notificationTypes: ['behavioral', 'call-score'],
  callbackUrl: CALLBACK_URL,
  parameters: { token: TOKEN },
  sweepIntervalMs: 60_000,
  maxRequestsPerSecond: 1,
  concurrency: 3,
  // Written before anything else happens: what was reported survives a kill.
  onGap: (gap) => appendFileSync(GAPS_FILE, `${JSON.stringify(gap)}\n`),
  logger: { debug: log, info: log, warn: log, error: log },
})
keeper.start()

// A test run that is interrupted leaves no keeper behind.
process.on('disconnect', () => process.exit())

process.on('message', async ({ id, command }: { id: number; command: 'known' | 'sweep' }) => {
  const answer = command === 'sweep' ? await keeper.sweep() : [...keeper.subscriptions()]
  process.send?.({ id, answer })
})
