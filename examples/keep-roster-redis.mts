/**
 * One roster, two processes, one Redis: both keep the roster, and either can continue alone.
 *
 *     npm install notification-subscriber ioredis tsx
 *     npx tsx keep-roster-redis.mts
 *
 * Needs Redis, at redis://127.0.0.1:6379 or at REDIS_URL.
 * To copy: `keepRoster`. The rest starts it twice, and plays the service on the emulator.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { SubscriptionKeeper } from 'notification-subscriber/keeper'
import { redisStore } from 'notification-subscriber/redis'

const { REDIS_URL: redisUrl = 'redis://127.0.0.1:6379' } = process.env
if (process.argv[2] === 'keeper') await keepRoster()
else await demonstrate()

/** To copy: what each process of the app does. */
async function keepRoster(): Promise<void> {
  const { CALLBACK_TOKEN: token, KEEPER_NAME = 'coaching', SWEEP_INTERVAL_MS } = process.env
  if (!token) throw new Error('CALLBACK_TOKEN is missing: the secret of the callbacks')
  const redis = new Redis(redisUrl, {
    // A node that falls silent keeps its sockets: without this a client would wait for it for ever.
    socketTimeout: 5_000,
    // After a failover the old node takes no writes: a new connection finds the new one.
    reconnectOnError: ({ message }) => message.startsWith('READONLY'),
  })
  redis.on('error', ({ message }) => console.error(`Redis: ${message}`))
  const client = NotificationClient.fromEnv()
  const keeper = new SubscriptionKeeper({
    client,
    // The same in all processes that keep this roster.
    name: KEEPER_NAME,
    store: redisStore(redis),
    usernames: () => ['alice', 'bob', 'carol'], // the same in all processes
    notificationTypes: ['behavioral'],
    callbackUrl: 'https://app.example.com/notifications',
    parameters: { token },
    ...(SWEEP_INTERVAL_MS && { sweepIntervalMs: Number(SWEEP_INTERVAL_MS) }),
    onProblem: ({ code, message }) => console.error(code, message),
  })
  keeper.start()
  process.on('SIGTERM', async () => {
    // Ten seconds at most for the calls in flight; subscriptions stay.
    await keeper.stop()
    await client.close()
    redis.disconnect()
  })
}

/** Two processes, of which one is stopped. */
async function demonstrate(): Promise<void> {
  await requireRedis()
  await using emulator = await startEmulator()
  const folder = await mkdtemp(join(tmpdir(), 'keep-roster-redis-'))
  const caFile = join(folder, 'ca.pem')
  await writeFile(caFile, emulator.ca)
  const env = {
    ...process.env,
    NODE_EXTRA_CA_CERTS: caFile,
    NOTIFICATION_BASE_URL: emulator.baseUrl,
    NOTIFICATION_AUTH_URL: emulator.authUrl,
    NOTIFICATION_DOMAIN: emulator.domain,
    NOTIFICATION_CLIENT_ID: emulator.clientId,
    NOTIFICATION_CLIENT_SECRET: emulator.clientSecret,
    NO_PROXY: '127.0.0.1',
    no_proxy: '127.0.0.1',
    CALLBACK_TOKEN: randomBytes(24).toString('base64url'),
    KEEPER_NAME: `demonstration-${process.pid}`,
    // Ended subscriptions are found within this time. For the demonstration: the default is 15 minutes.
    SWEEP_INTERVAL_MS: '2000',
  }
  const created = new Set<string>()
  emulator.on('created', ({ usernames }) => {
    for (const username of usernames) created.add(username)
  })

  const first = start(env)
  const second = start(env)
  await until(() => created.size === 3)
  console.log(`Two processes have subscribed ${[...created].sort().join(', ')}, each user once`)

  await stop(first)
  console.log(`One has stopped, and ${emulator.subscriptions.length} subscriptions stay`)

  // The service does not report that a subscription has ended: the other process finds it.
  const bob = emulator.subscriptions.find(({ usernames }) => usernames.includes('bob'))
  created.clear()
  emulator.endSubscription(bob?.subscriptionId ?? 0)
  await until(() => created.has('bob'))
  console.log('The other process has restored bob')

  await stop(second)
  await rm(folder, { recursive: true })
  console.log('Next: copy keepRoster, start your app as often as you like, and read docs/keeper.md.')
}

async function requireRedis(): Promise<void> {
  const redis = new Redis(redisUrl, { maxRetriesPerRequest: 0 }).on('error', () => {})
  const problem = 'start Redis, or set REDIS_URL to the address of yours'
  await redis.ping().catch(() => Promise.reject(new Error(`No Redis answers at ${redisUrl}: ${problem}`)))
  redis.disconnect()
}

function start(env: NodeJS.ProcessEnv): ChildProcess {
  const program = fileURLToPath(import.meta.url)
  const child = spawn(process.execPath, [...process.execArgv, program, 'keeper'], { env, stdio: 'pipe' })
  createInterface(child.stderr).on('line', (line) => console.log(`  ${line}`))
  return child
}

async function stop(child: ChildProcess): Promise<void> {
  const exited = once(child, 'exit')
  child.kill('SIGTERM')
  await exited
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 50))
}
