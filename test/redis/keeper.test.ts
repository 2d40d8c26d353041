/**
 * Two keepers on one Redis, which are killed at random moments while the roster changes and the service ends
 * subscriptions. Their clocks run faster than ours: see `programs/fast-clock.ts`.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { NotificationClient } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { expect, test, vi } from 'vitest'
import { RedisServer } from '../support/redis-server.js'

const callbackUrl = 'https://app.example.com/notifications'
const program = fileURLToPath(new URL('programs/keeper-process.ts', import.meta.url))
const kills = 50

test(`two keepers, killed ${kills} times: exactly one subscription per user, as the store says`, async () => {
  const seed = Number(process.env.SEED ?? Date.now() % 100_000)
  console.log(`SEED=${seed} repeats these moments`)
  const random = randomOf(seed)
  await using redis = await RedisServer.start({ appendOnly: true })
  await using emulator = await startEmulator()
  await using client = new NotificationClient(emulator.clientOptions)
  const roster = new Set(Array.from({ length: 12 }, (_, index) => `agent-${index}`))
  await using keepers = await Keepers.start(emulator, redis, roster)
  const foreign = await client.createSubscription({
    notificationTypes: ['behavioral'],
    usernames: ['somebody-else'],
    callbackUrl,
  })
  let newcomers = 0
  let created = 0
  emulator.on('created', () => {
    created += 1
  })

  for (let kill = 0; kill < kills; kill++) {
    await pause(random() * 3_000)
    // Creates take a while, so that kills fall between a request and its answer.
    emulator.injectFault('create', { delayMs: 400 }, { times: 3 })
    if (random() < 0.7) {
      // As a rule the one who came last: a create for them may be under way just now.
      const leaver = [...roster].at(random() < 0.7 ? -1 : 0)
      if (leaver !== undefined) roster.delete(leaver)
      roster.add(`newcomer-${++newcomers}`)
      await keepers.setRoster(roster)
    }
    const ended = emulator.subscriptions[Math.floor(random() * emulator.subscriptions.length)]
    if (random() < 0.5 && ended !== undefined && ended.subscriptionId !== foreign.subscriptionId) {
      emulator.endSubscription(ended.subscriptionId)
    }
    await keepers.kill(random() < 0.5 ? 0 : 1)
  }

  // The kills have met keepers at work, and not only such as wait for their lease.
  expect(created, keepers.output).toBeGreaterThan(12)
  const reader = new Redis(redis.url)
  try {
    await vi.waitFor(
      async () => {
        const others = emulator.subscriptions.filter((each) => each.subscriptionId !== foreign.subscriptionId)
        const users = others.map(({ usernames }) => usernames.join()).sort()
        expect(users, keepers.output).toEqual([...roster].sort())
        for (const { notificationTypes, parameters, callbackUrl: url } of others) {
          expect({ types: [...notificationTypes].sort(), parameters, url }).toEqual({
            types: ['behavioral', 'call-score'],
            parameters: { token: 'sesame' },
            url: callbackUrl,
          })
        }
        const ids = Object.fromEntries(others.map((each) => [each.usernames.join(), each.subscriptionId]))
        expect(await storedIds(reader), keepers.output).toEqual(ids)
      },
      { timeout: 120_000, interval: 500 },
    )
  } finally {
    reader.disconnect()
  }
  expect(emulator.subscriptions).toContainEqual(expect.objectContaining(foreign))
  expect(keepers.output).not.toMatch(/CONFLICT|ROSTER|SUPERSEDED|sesame/)
})

/** What the store says of users who are kept. */
async function storedIds(redis: Redis): Promise<Record<string, number>> {
  const { chunks } = JSON.parse((await redis.get('kept:head')) ?? '{"chunks":0}')
  const ids: Record<string, number> = {}
  for (let index = 0; index < chunks; index++) {
    const { records } = JSON.parse((await redis.get(`kept:chunk:${index}`)) ?? '{"records":[]}')
    for (const { u: username, s: slots } of records) for (const { i: id } of slots) ids[username] = id
  }
  return ids
}

/** Two processes that are started again as soon as they are killed. */
class Keepers implements AsyncDisposable {
  output = ''
  readonly #folder: string
  readonly #env: NodeJS.ProcessEnv
  readonly #children: ChildProcess[] = []

  private constructor(folder: string, env: NodeJS.ProcessEnv) {
    this.#folder = folder
    this.#env = env
  }

  static async start(emulator: Emulator, redis: RedisServer, roster: ReadonlySet<string>): Promise<Keepers> {
    const folder = await mkdtemp(join(tmpdir(), 'keepers-'))
    await writeFile(join(folder, 'ca.pem'), emulator.ca)
    const keepers = new Keepers(folder, {
      ...process.env,
      NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem'),
      NOTIFICATION_BASE_URL: emulator.baseUrl,
      NOTIFICATION_AUTH_URL: emulator.authUrl,
      NOTIFICATION_DOMAIN: emulator.domain,
      NOTIFICATION_CLIENT_ID: emulator.clientId,
      NOTIFICATION_CLIENT_SECRET: emulator.clientSecret,
      NO_PROXY: '127.0.0.1',
      no_proxy: '127.0.0.1',
      CALLBACK_URL: callbackUrl,
      REDIS_URL: redis.url,
      ROSTER_FILE: join(folder, 'roster.json'),
    })
    await keepers.setRoster(roster)
    keepers.#start(0)
    keepers.#start(1)
    return keepers
  }

  async setRoster(roster: ReadonlySet<string>): Promise<void> {
    const file = join(this.#folder, 'roster.json')
    await writeFile(`${file}.next`, JSON.stringify([...roster]))
    await rename(`${file}.next`, file)
  }

  /** Without a chance to write or to say anything. */
  async kill(index: 0 | 1): Promise<void> {
    await end(this.#children[index])
    this.#start(index)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) await end(child)
    await rm(this.#folder, { recursive: true })
  }

  #start(index: 0 | 1): void {
    const child = spawn(process.execPath, ['--import', 'tsx', program], {
      env: this.#env,
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (data) => {
        this.output += `${index}: ${data}`
      })
    }
    this.#children[index] = child
  }
}

async function end(child: ChildProcess | undefined): Promise<void> {
  if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill('SIGKILL')
  await exited
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

/** Mulberry32: the same numbers for the same seed. */
function randomOf(seed: number): () => number {
  let state = seed
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
}
