/** Two keepers in processes of their own, that are killed, stopped, cut off and started again, and what they told. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KeeperGap, KeeperProblemCode } from 'notification-subscriber'
import type { Emulator } from 'notification-subscriber/emulator'
import { expect, vi } from 'vitest'
import type { RedisServer } from '../support/redis-server.js'
import { bundleProgram } from './bundle-program.js'
import { Relay } from './relay.js'
import { StoreHistory } from './store-history.js'

/** A line that a keeper's process writes. */
export type KeeperReport =
  | KeeperCall
  | { readonly kind: 'gap'; readonly process: string; readonly gap: KeeperGap }
  | {
      readonly kind: 'problem'
      readonly process: string
      readonly code: KeeperProblemCode
      readonly resolved: boolean
      readonly sinceAt: number
      /** All of the problem, as text. */
      readonly text: string
    }

/** A call of the client that a keeper made. */
export interface KeeperCall {
  readonly kind: 'call'
  readonly process: string
  readonly call: 'create' | 'recreate' | 'update' | 'unsubscribe'
  /** The username, or the id. */
  readonly subject: string
  /** By our clock, in milliseconds since 1970. */
  readonly at: number
}

/** A time in milliseconds since 1970; infinite as long as it lasts. */
export interface Span {
  readonly from: number
  to: number
}

/** One of the processes that took each other's places. */
export interface ProcessLife {
  readonly name: string
  /** The number of the configuration it was started with, from 1 on. */
  readonly configuration: number
  diedAt: number
  /** While it could not reach Redis. */
  readonly cuts: Span[]
  /** While it stood still. */
  readonly stops: Span[]
}

export interface KeeperProcessesOptions {
  readonly emulator: Emulator
  readonly redis: RedisServer
  readonly callbackUrl: string
  readonly roster: ReadonlySet<string>
}

interface Place {
  readonly store: Relay
  readonly service: Relay
  child: ChildProcess
  life: ProcessLife
}

/** So much later the answers of the service arrive, that much may happen between the two. */
const answerDelayMs = 60

export class KeeperProcesses implements AsyncDisposable {
  /** When the clocks of the keepers showed the same time as ours, in milliseconds since 1970. */
  readonly clockStartedAt: number
  /** What they wrote on their standard streams. */
  output = ''
  /** All that ever ran. */
  readonly lives: ProcessLife[] = []
  readonly store: StoreHistory
  /** The configuration that processes are started with from now on. */
  configuration = 1
  kills = 0
  readonly #folder: string
  readonly #program: string
  readonly #env: NodeJS.ProcessEnv
  readonly #places: Place[] = []
  /** By their addresses at Redis. */
  readonly #processes: Map<string, string>

  private constructor(
    folder: string,
    { program, store, env }: { program: string; store: StoreHistory; env: NodeJS.ProcessEnv },
    processes: Map<string, string>,
  ) {
    this.clockStartedAt = Number(env.CLOCK_STARTED_AT)
    this.store = store
    this.#folder = folder
    this.#program = program
    this.#env = env
    this.#processes = processes
  }

  static async start({
    emulator,
    redis,
    callbackUrl,
    roster,
  }: KeeperProcessesOptions): Promise<KeeperProcesses> {
    const folder = await mkdtemp(join(tmpdir(), 'keepers-'))
    await writeFile(join(folder, 'ca.pem'), emulator.ca)
    await writeFile(join(folder, 'reports'), '')
    const env = {
      ...process.env,
      NODE_EXTRA_CA_CERTS: join(folder, 'ca.pem'),
      NOTIFICATION_AUTH_URL: emulator.authUrl,
      NOTIFICATION_DOMAIN: emulator.domain,
      NOTIFICATION_CLIENT_ID: emulator.clientId,
      NOTIFICATION_CLIENT_SECRET: emulator.clientSecret,
      NO_PROXY: '127.0.0.1',
      no_proxy: '127.0.0.1',
      CALLBACK_URL: callbackUrl,
      ROSTER_FILE: join(folder, 'roster.json'),
      REPORT_FILE: join(folder, 'reports'),
      CLOCK_STARTED_AT: String(Date.now()),
    }
    const processes = new Map<string, string>()
    const store = await StoreHistory.start(redis.url, (source) => processes.get(source))
    const program = await bundleProgram('keeper-process', folder)
    const keepers = new KeeperProcesses(folder, { program, store, env }, processes)
    await keepers.setRoster(roster)
    for (const index of [0, 1]) await keepers.#open(index, redis.port, Number(new URL(emulator.baseUrl).port))
    return keepers
  }

  async setRoster(roster: ReadonlySet<string>): Promise<void> {
    const file = join(this.#folder, 'roster.json')
    await writeFile(`${file}.next`, JSON.stringify([...roster]))
    await rename(`${file}.next`, file)
  }

  /** Everything that was told, also by processes that were killed. */
  async reports(): Promise<KeeperReport[]> {
    const text = await readFile(join(this.#folder, 'reports'), 'utf8')
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  }

  /** The associated value of subscriptions that a process with this configuration wants: a secret. */
  tokenOf(configuration: number): string {
    return `sesame-${configuration}`
  }

  /** The place of the one whose turn it is, if it is alive. */
  get indexAtWork(): number | undefined {
    const turn = this.store.writesOf('kept:lease').at(-1)
    const index = this.#places.findIndex(({ life }) => life.name === turn?.process)
    const isAlive = this.#places[index]?.life.diedAt === Number.POSITIVE_INFINITY
    return isAlive && turn?.value !== 'free' ? index : undefined
  }

  /** Waits until one has the turn: after a kill that takes as long as a lease lasts. */
  async atWork({ except }: { except?: number } = {}): Promise<number> {
    return vi.waitFor(
      () => {
        const index = this.indexAtWork
        expect(index !== undefined && index !== except, `nobody is at work:\n${this.output}`).toBe(true)
        return index as number
      },
      { timeout: 60_000, interval: 10 },
    )
  }

  /** Whether the process there was started with the newest configuration. */
  isUpToDate(index: number): boolean {
    return this.#place(index).life.configuration === this.configuration
  }

  /** Takes its Redis away from one process: connections are refused, or nothing comes through any more. */
  cutOff(index: number, how: 'cut' | 'hold'): { mend(): void } {
    const { store, life } = this.#place(index)
    const span = { from: Date.now(), to: Number.POSITIVE_INFINITY }
    life.cuts.push(span)
    store[how]()
    return {
      mend() {
        span.to = Date.now()
        store.mend()
      },
    }
  }

  /** Ends it at this very moment, without a chance to write or to say anything. */
  kill(index: number): void {
    const { child, life } = this.#place(index)
    if (life.diedAt < Number.POSITIVE_INFINITY) return
    life.diedAt = Date.now()
    this.kills++
    child.kill('SIGKILL')
  }

  /** Starts another in the place of one that was killed. */
  async restart(index: number): Promise<void> {
    const place = this.#place(index)
    this.kill(index)
    await exited(place.child)
    Object.assign(place, this.#start(index, place))
  }

  /** It stands still, with everything that it knows and is about to do. */
  stop(index: number): { resume(): void } {
    const { child, life } = this.#place(index)
    const span = { from: Date.now(), to: Number.POSITIVE_INFINITY }
    life.stops.push(span)
    child.kill('SIGSTOP')
    return {
      resume() {
        span.to = Date.now()
        child.kill('SIGCONT')
      },
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const [index, { child, store, service }] of this.#places.entries()) {
      this.kill(index)
      await exited(child)
      await store[Symbol.asyncDispose]()
      await service[Symbol.asyncDispose]()
    }
    this.store[Symbol.dispose]()
    await rm(this.#folder, { recursive: true })
  }

  #place(index: number): Place {
    const place = this.#places[index]
    if (place === undefined) throw new RangeError(`There is no place ${index}.`)
    return place
  }

  async #open(index: number, redisPort: number, servicePort: number): Promise<void> {
    const store = await Relay.start({
      port: redisPort,
      onConnected: (source) => this.#processes.set(source, this.#place(index).life.name),
    })
    const service = await Relay.start({ port: servicePort, answerDelayMs })
    const links = { store, service }
    this.#places[index] = { ...links, ...this.#start(index, links) }
  }

  #start(index: number, { store, service }: Pick<Place, 'store' | 'service'>): Pick<Place, 'child' | 'life'> {
    const life: ProcessLife = {
      name: `process-${this.lives.length + 1}`,
      configuration: this.configuration,
      diedAt: Number.POSITIVE_INFINITY,
      cuts: [],
      stops: [],
    }
    this.lives.push(life)
    const env = {
      ...this.#env,
      PROCESS_NAME: life.name,
      // Stands in its access tokens, so that the emulator's record of requests says who sent them.
      NOTIFICATION_SCOPE: life.name,
      NOTIFICATION_BASE_URL: `https://127.0.0.1:${service.port}`,
      REDIS_URL: `redis://127.0.0.1:${store.port}`,
      TOKEN: this.tokenOf(life.configuration),
    }
    const child = spawn(process.execPath, [this.#program], { env, stdio: ['ignore', 'pipe', 'pipe'] })
    for (const stream of [child.stdout, child.stderr]) {
      stream.on('data', (data) => {
        this.output += `${index} ${life.name}: ${data}`
      })
    }
    return { child, life }
  }
}

async function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}
