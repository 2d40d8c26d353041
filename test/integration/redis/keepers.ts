/** Keepers in processes of their own on one Redis and one emulator, and what is so whenever they have settled. */
import { type ChildProcess, spawn } from 'node:child_process'
import { on, once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { inspect, isDeepStrictEqual } from 'node:util'
import { build } from 'esbuild'
import { Redis } from 'ioredis'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import type { KeeperGap, KeptSubscription } from 'notification-subscriber/keeper'
import { expect, vi } from 'vitest'
import { environmentOf } from '../../support/emulator-environment.js'
import { Random } from '../../support/random.js'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { fastMs, fastTime, timesFaster } from './fast-time.js'
import { Relay } from './relay.js'

/** The keepers' `sweepIntervalMs`: most of what a process does, it has done once in this time. */
export const intervalMs = fastMs(60_000)
/** Clocks of processes show whole milliseconds, which count for more where time passes faster. */
const clockErrorMs = 10 * timesFaster
/** So much later the answers of the service arrive, that much may happen between the two. */
const answerDelayMs = 60

const usernames = Array.from({ length: 12 }, (_, index) => `agent-${index}`)
const token = 'sesame-of-the-callbacks'

/** When a subscription really existed, by our clock, in milliseconds since 1970. */
interface Lifetime {
  readonly subscriptionId: number
  readonly username: string
  readonly createdAt: number
  endedAt?: number
}

interface Place {
  readonly name: string
  /** Its own way to Redis. */
  readonly store: Relay
  child: ChildProcess
}

/** Starts a process. */
type Start = (name: string, redisPort: number) => ChildProcess

export class Keepers implements AsyncDisposable {
  readonly emulator: Emulator
  readonly random = Random.seeded()
  /** All subscriptions that there were. */
  readonly lifetimes: Lifetime[] = []
  kills = 0
  /** Ends in reverse order. */
  readonly #resources: AsyncDisposable[]
  readonly #clockStartedAt: number
  readonly #gapsFile: string
  readonly #start: Start
  readonly #places: Place[] = []
  /** What the processes wrote, each line with the name of its process. */
  readonly #output: string[] = []
  #questions = 0

  private constructor(
    resources: AsyncDisposable[],
    emulator: Emulator,
    env: Record<string, string>,
    start: Start,
  ) {
    this.#resources = resources
    this.emulator = emulator
    this.#clockStartedAt = Number(env.CLOCK_STARTED_AT)
    this.#gapsFile = env.GAPS_FILE ?? ''
    this.#start = start
    emulator.on('created', ({ subscriptionId, usernames: [username = ''] }) => {
      this.lifetimes.push({ subscriptionId, username, createdAt: Date.now() })
    })
    emulator.on('ended', ({ subscriptionId }) => {
      const lifetime = this.lifetimes.find((each) => each.subscriptionId === subscriptionId)
      if (lifetime !== undefined) lifetime.endedAt = Date.now()
    })
  }

  static async start(redisPort: number, count: number): Promise<Keepers> {
    const folder = await temporaryFolder()
    const { path } = folder
    // A token belongs to a process: it must outlive the process.
    const emulator = await startEmulator({ tokenLifetimeSeconds: 86_400 })
    const { port } = new URL(emulator.baseUrl)
    const service = await Relay.start({ port: Number(port), answerDelayMs })
    const resources: AsyncDisposable[] = [folder, emulator, service]
    const env = {
      ...(await environmentOf(emulator, path)),
      NOTIFICATION_BASE_URL: `https://127.0.0.1:${service.port}`,
      CALLBACK_URL: 'https://app.example.com/notifications',
      CLOCK_STARTED_AT: String(Date.now()),
      GAPS_FILE: join(path, 'gaps'),
      TOKEN: token,
      USERNAMES: usernames.join(),
    }
    await writeFile(env.GAPS_FILE, '')
    const program = await bundledProgram(path)
    const keepers: Keepers = new Keepers(resources, emulator, env, (name, port) => {
      const variables = { ...process.env, ...env, REDIS_URL: `redis://127.0.0.1:${port}` }
      const child = spawn(process.execPath, [program], {
        env: variables,
        stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
      })
      for (const input of [child.stdout, child.stderr]) {
        if (input !== null)
          createInterface(input).on('line', (line) => keepers.#output.push(`${name}: ${line}`))
      }
      return child
    })
    for (let index = 0; index < count; index++) {
      const name = `process ${index}`
      const store = await Relay.start({ port: redisPort })
      resources.push(store)
      keepers.#places.push({ name, store, child: keepers.#start(name, store.port) })
    }
    return keepers
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const [index, { child }] of this.#places.entries()) {
      this.kill(index)
      await exited(child)
    }
    for (const each of this.#resources.toReversed()) await each[Symbol.asyncDispose]()
  }

  // What happens to them.

  get places(): number[] {
    return [...this.#places.keys()]
  }

  /** Ends it at this very moment, without a chance to write or to say anything. */
  kill(index: number): void {
    const { child } = this.#place(index)
    if (child.killed) return
    this.kills++
    child.kill('SIGKILL')
  }

  /** Starts another in the place of one that was killed. */
  async restart(index: number): Promise<void> {
    const place = this.#place(index)
    this.kill(index)
    await exited(place.child)
    place.child = this.#start(place.name, place.store.port)
  }

  /** It stands still, with everything that it knows and is about to do. */
  stop(index: number): { resume(): void } {
    // Of `child.kill` the child would count as killed.
    const { pid = Number.NaN } = this.#place(index).child
    process.kill(pid, 'SIGSTOP')
    return { resume: () => void process.kill(pid, 'SIGCONT') }
  }

  /** Takes its Redis away from one process: connections are refused, or nothing comes through any more. */
  cutOff(index: number, how: 'cut' | 'hold'): { mend(): void } {
    const { store } = this.#place(index)
    store[how]()
    return store
  }

  /** Another Redis is the store from now on: what is on its way to the one before is lost. */
  pointTo(redisPort: number): void {
    for (const { store } of this.#places) {
      store.target = redisPort
      store.cut()
      store.mend()
    }
  }

  /** The service ends subscriptions without a word. */
  endSome(count: number): void {
    for (const { subscriptionId } of this.random.shuffled(this.emulator.subscriptions).slice(0, count)) {
      this.emulator.endSubscription(subscriptionId)
    }
  }

  /** Asks a keeper for its report of a sweep, or for what it knows. @throws if it dies meanwhile */
  async ask(index: number, command: 'known' | 'sweep'): Promise<unknown> {
    const { child, name } = this.#place(index)
    const id = ++this.#questions
    const until = new AbortController()
    try {
      child.send({ id, command })
      for await (const [message] of on(child, 'message', { signal: until.signal, close: ['exit'] })) {
        if (message.id === id) return message.answer
      }
      throw new Error(`${name} died before it answered:\n${this.#output.slice(-20).join('\n')}`)
    } finally {
      until.abort()
    }
  }

  // What must be so.

  /** Each user has one subscription, whose id the store and every process know; and it stays so. @param redisUrl - of the present store */
  async expectSettled(redisUrl: string): Promise<void> {
    const settled = async () => {
      expect(await this.#unsettled(redisUrl)).toEqual([])
      const [before, gaps, sent] = [this.lifetimes.length, await this.#gaps(), this.#proofs]
      await pause(2 * intervalMs)
      expect([this.lifetimes.length, await this.#gaps()]).toEqual([before, gaps])
      expect(this.#proofs - sent).toBeGreaterThan(usernames.length)
    }
    try {
      await vi.waitFor(settled, { timeout: 150_000, interval: 500 })
    } catch (cause) {
      const found = { unsettled: await this.#unsettled(redisUrl), lifetimes: this.lifetimes.slice(-40) }
      throw new Error(this.#page('The keepers did not settle.', found), { cause })
    }
  }

  /** Every time in which a user had no subscription lies in a gap that was reported. */
  async expectGapsReported(): Promise<void> {
    const gaps = await this.#gaps()
    const missing = usernames.flatMap((username) => {
      const all = this.lifetimes.filter((each) => each.username === username)
      const ofUser = gaps.filter((gap) => gap.username === username)
      return all.filter(({ createdAt }, index) => {
        const { endedAt } = all[index - 1] ?? {}
        const isReported = ({ lastProvenAt = 0, restoredAt }: KeeperGap) =>
          lastProvenAt <= this.#fast(endedAt ?? 0) + clockErrorMs &&
          restoredAt >= this.#fast(createdAt) - clockErrorMs
        return endedAt !== undefined && !ofUser.some(isReported)
      })
    })
    expect(gaps.length).toBeGreaterThan(0)
    if (missing.length > 0) throw new Error(this.#page('A gap is missing.', { missing, gaps }))
  }

  /** Nowhere in what is stored, or was ever logged; and no user's name in a key. */
  async expectNoSecret(redisUrl: string): Promise<void> {
    const stored = await storedIn(redisUrl)
    expect([...stored.keys()].join()).not.toContain('agent')
    const shown = [...stored.values(), ...this.#output].join('\n')
    for (const secret of [token, this.emulator.clientSecret, 'eyJ'])
      expect(shown.includes(secret)).toBe(false)
  }

  /** The users of whom it is not so, and what is. */
  async #unsettled(redisUrl: string): Promise<object[]> {
    const stored = [...(await storedIn(redisUrl))]
    const valuesOf = (kind: string) =>
      stored.flatMap(([key, text]) => (key.includes(kind) ? [JSON.parse(text)] : []))
    const records: { username: string; id?: number }[] = valuesOf(':user:')
    const members = new Set(valuesOf(':members:').flat())
    const known = (await Promise.all(this.places.map((index) => this.ask(index, 'known')))) as ({
      username: string
    } & KeptSubscription)[][]
    const standings = usernames.map((username) => {
      const isUser = (each: { username: string }) => each.username === username
      const subscriptions = this.emulator.subscriptions
        .filter((each) => each.usernames.includes(username))
        .map(({ subscriptionId: id, parameters }) => ({ id, parameters }))
      const ids = [records.find(isUser)?.id, ...known.map((each) => each.find(isUser)?.subscriptionId)]
      return { username, subscriptions, ids, isMember: members.has(username) }
    })
    return standings.filter(({ subscriptions, ids: [id, ...others], isMember }) => {
      const isRight = isDeepStrictEqual(subscriptions, [{ id, parameters: { token } }])
      return !isRight || !isMember || others.some((other) => other !== id)
    })
  }

  async #gaps(): Promise<KeeperGap[]> {
    const lines = (await readFile(this.#gapsFile, 'utf8')).trim().split('\n')
    return lines.filter((line) => line !== '').map((line) => JSON.parse(line))
  }

  /** How many requests have asked for a proof that a subscription exists. */
  get #proofs(): number {
    const { create, update } = this.emulator.requestCounts
    return create + update
  }

  #place(index: number): Place {
    return this.#places[index] ?? expect.unreachable(`there is no place ${index}`)
  }

  #fast(at: number): number {
    return fastTime(this.#clockStartedAt, at)
  }

  /** What a person needs who looks for the reason. */
  #page(text: string, found: object): string {
    return [
      `${text} RANDOM_SEED=${this.random.seed} repeats these moments.`,
      `Clocks of processes started at ${this.#clockStartedAt}, and are ${timesFaster} times as fast.`,
      inspect(found, { depth: 9, breakLength: 200, compact: 9 }),
      ...this.#output.slice(-60),
    ].join('\n')
  }
}

/** The program in one file, because many compilers at once would take longer than the test. @returns its path */
async function bundledProgram(folder: string): Promise<string> {
  const outfile = join(folder, 'keeper-process.mjs')
  await build({
    entryPoints: [fileURLToPath(new URL('programs/keeper-process.ts', import.meta.url))],
    outfile,
    tsconfig: fileURLToPath(new URL('../../../tsconfig.json', import.meta.url)),
    bundle: true,
    platform: 'node',
    format: 'esm',
    // The package says that its modules have no side effects. Those of the programs have.
    ignoreAnnotations: true,
    // What is bundled of CommonJS packages needs it.
    banner: {
      js: "import { createRequire } from 'node:module'; const require = createRequire(import.meta.url);",
    },
    logLevel: 'error',
  })
  return outfile
}

async function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}

/** Every key of a Redis with its text. */
export function storedIn(url: string): Promise<Map<string, string>> {
  return command(url, async (redis) => {
    const keys = await redis.keys('kept:*')
    const texts = keys.length === 0 ? [] : await redis.mget(keys)
    return new Map(keys.map((key, index) => [key, texts[index] ?? '']))
  })
}

/** Does something on a connection of its own. */
export async function command<Result>(url: string, run: (client: Redis) => Promise<Result>): Promise<Result> {
  const client = new Redis(url)
  try {
    return await run(client)
  } finally {
    client.disconnect()
  }
}
