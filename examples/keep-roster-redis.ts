/**
 * One roster, two processes, one Redis: one process works, the other takes over when it stops. Run it with
 * `REDIS_URL=redis://127.0.0.1:6379 npx tsx examples/keep-roster-redis.ts`.
 *
 * Called with `keeper` it is one of the two processes; without, it starts both, and the service that they talk to.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { NotificationClient, SubscriptionKeeper } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { redisStore } from 'notification-subscriber/redis'

const { REDIS_URL } = process.env
if (!REDIS_URL)
  throw new Error('REDIS_URL is missing: set it to the address of your Redis, redis://host:port')

if (process.argv[2] === 'keeper') await keepRoster(REDIS_URL)
else await demonstrate()

/** To copy: what each process of the app does. */
async function keepRoster(redisUrl: string): Promise<void> {
  const { CALLBACK_TOKEN = '', KEEPER_NAME = 'coaching' } = process.env
  const redis = new Redis(redisUrl)
  redis.on('error', ({ message }) => console.error(`Redis: ${message}`))
  const client = NotificationClient.fromEnv()
  const keeper = new SubscriptionKeeper({
    client,
    // The same in all processes that keep this roster.
    name: KEEPER_NAME,
    store: redisStore(redis),
    usernames: () => ['alice', 'bob', 'carol'],
    notificationTypes: ['behavioral'],
    callbackUrl: 'https://app.example.com/notifications',
    parameters: { token: CALLBACK_TOKEN },
    onProblem: ({ code, message }) => console.error(code, message),
  })
  keeper.start()
  process.once('SIGTERM', async () => {
    // Gives up the lease, so that another process takes over at once.
    await keeper.stop()
    await client.close()
    redis.disconnect()
  })
}

/** Two processes, of which the one at work is stopped. */
async function demonstrate(): Promise<void> {
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
    CALLBACK_TOKEN: 'of your configuration',
    KEEPER_NAME: `demonstration-${process.pid}`,
  }
  const created = new Set<string>()
  emulator.on('created', ({ usernames }) => {
    for (const username of usernames) created.add(username)
  })

  const first = start(env)
  await until(() => created.size === 3)
  console.log(`The first process has subscribed ${[...created].sort().join(', ')}`)

  const second = start(env)
  await stop(first)
  console.log(`It has stopped, and ${emulator.subscriptions.length} subscriptions stay`)

  // The service tells nobody that a subscription has ended; the second process, which is at work now, finds out.
  const bob = emulator.subscriptions.find(({ usernames }) => usernames.includes('bob'))
  created.clear()
  emulator.endSubscription(bob?.subscriptionId ?? 0)
  await until(() => created.has('bob'))
  console.log('The second process has restored bob')

  await stop(second)
  await rm(folder, { recursive: true })
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
