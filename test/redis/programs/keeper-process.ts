/** Run as a process that a test kills: a keeper on Redis, whose roster is a file. */
import './fast-clock.js'
import { readFile } from 'node:fs/promises'
import { Redis } from 'ioredis'
import { NotificationClient, SubscriptionKeeper } from 'notification-subscriber'
import { redisStore } from 'notification-subscriber/redis'

const { CALLBACK_URL = '', REDIS_URL = '', ROSTER_FILE = '' } = process.env

const redis = new Redis(REDIS_URL)
const keeper = new SubscriptionKeeper({
  client: NotificationClient.fromEnv(),
  name: 'kept',
  store: redisStore(redis),
  usernames: async () => JSON.parse(await readFile(ROSTER_FILE, 'utf8')),
  notificationTypes: ['behavioral', 'call-score'],
  callbackUrl: CALLBACK_URL,
  parameters: { token: 'sesame' },
  sweepIntervalMs: 60_000,
  // Until a keeper lives long enough to read it, the roster may have changed altogether.
  maxRemovedShare: 1,
  onGap: () => {},
  onProblem: (problem) =>
    console.log(`${problem.resolved ? 'over' : 'begun'}: ${problem.code} ${problem.message}`),
})
keeper.start()
