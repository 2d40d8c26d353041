/**
 * One of many processes that share their tokens through Redis: asks for its token again and again for some seconds, and
 * prints how many token requests it sent itself and how many of its calls failed.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { NotificationClient } from 'notification-subscriber'
import { redisStore } from 'notification-subscriber/redis'
import { Agent } from 'undici'

const { AUTH_URL = '', CA, CLIENT_ID = '', CLIENT_SECRET = '', REALM = '', REDIS_URL = '' } = process.env
const runMs = 13_000

const redis = new Redis(REDIS_URL)
redis.on('error', (error) => console.error(error.message))
let requests = 0
let failures = 0
const client = new NotificationClient({
  baseUrl: 'https://notifications.example.com',
  auth: {
    authUrl: AUTH_URL,
    domain: REALM,
    clientId: CLIENT_ID,
    clientSecret: CLIENT_SECRET,
    tokenCache: redisStore(redis),
  },
  dispatcher: new Agent({ connect: { ca: CA } }),
  logger: {
    debug: (fields) => {
      if ('url' in fields) requests += 1
    },
    info: () => {},
    warn: () => {},
    error: () => {},
  },
})
for (const until = Date.now() + runMs; Date.now() < until; await sleep(20)) {
  await client.getAccessToken().catch(() => {
    failures += 1
  })
}
console.log(JSON.stringify({ requests, failures }))
process.exit()
