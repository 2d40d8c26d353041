/** Keepers in processes of their own, that are killed, stopped, cut off and started again, and what they reported. */
import { type ChildProcess, spawn } from 'node:child_process'
import { on, once } from 'node:events'
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import type { Emulator } from 'notification-subscriber/emulator'
import type { KeeperGap, KeeperProblemCode, KeptSubscription } from 'notification-subscriber/keeper'
import type { RedisServer } from '../../support/redis-server.js'
import { bundleProgram } from './bundle-program.js'
import { Relay } from './relay.js'

/** A line that a keeper's process writes. */
export type KeeperReport =
  | { readonly kind: 'gap'; readonly process: string; readonly gap: KeeperGap }
  | {
      readonly kind: 'problem'
      readonly process: string
      readonly code: KeeperProblemCode
      readonly resolved: boolean
      /** All of the problem, as text. */
      readonly text: string
    }

/** A time in milliseconds since 1970; infinite as long as it lasts. */
export interface Span {
  readonly from: number
  to: number
}

/** What a keeper is asked to do: the answer is its report, or what it knows. */
export type KeeperCommand = 'known' | 'sweep' | { readonly rotateTo: number }

export interface Known {
  /** Whether its first sweep has ended. */
  readonly hasSwept: boolean
  readonly subscriptions: readonly ({ readonly username: string } & KeptSubscription)[]
}

/** One of the processes that took each other's places. */
export interface ProcessLife {
  readonly name: string
  /** The number of its configuration, from 1 on. */
  configuration: number
  diedAt: number
}

export interface KeeperProcessesOptions {
  readonly count: number
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
  /** What they wrote on their standard streams, each line with the name of its process. */
  readonly output: string[] = []
  readonly lives: ProcessLife[] = []
  /** The configuration that processes are started with from now on. */
  configuration = 1
  kills = 0
  #questions = 0
  readonly #folder: string
  readonly #program: string
  readonly #env: NodeJS.ProcessEnv
  readonly #places: Place[] = []

  private constructor(folder: string, program: string, env: NodeJS.ProcessEnv) {
    this.clockStartedAt = Number(env.CLOCK_STARTED_AT)
    this.#folder = folder
    this.#program = program
    this.#env = env
  }

  static async start({
    count,
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
    const program = await bundleProgram('keeper-process', folder)
    const keepers = new KeeperProcesses(folder, program, env)
    await keepers.setRoster(roster)
    const servicePort = Number(new URL(emulator.baseUrl).port)
    for (let index = 0; index < count; index++) await keepers.#open(index, redis.port, servicePort)
    return keepers
  }

  async setRoster(roster: ReadonlySet<string>): Promise<void> {
    const file = join(this.#folder, 'roster.json')
    await writeFile(`${file}.next`, JSON.stringify([...roster]))
    await rename(`${file}.next`, file)
  }

  /** Everything that was reported, also by processes that were killed. */
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

  lifeOf(index: number): ProcessLife {
    return this.#place(index).life
  }

  get count(): number {
    return this.#places.length
  }

  /** The places of processes that were started with the newest configuration, or have rotated to it. */
  get upToDate(): number[] {
    return [...this.#places.keys()].filter(
      (index) => this.#place(index).life.configuration === this.configuration,
    )
  }

  /** What a keeper knows. @throws if it dies meanwhile */
  async known(index: number): Promise<Known> {
    return (await this.ask(index, 'known')) as Known
  }

  /** Asks a keeper something. @throws if it dies meanwhile */
  async ask(index: number, command: KeeperCommand): Promise<unknown> {
    const { child, life } = this.#place(index)
    if (typeof command === 'object') life.configuration = command.rotateTo
    const id = ++this.#questions
    const until = new AbortController()
    const { signal } = until
    try {
      child.send({
        id,
        command: typeof command === 'object' ? { token: this.tokenOf(command.rotateTo) } : command,
      })
      for await (const [message] of on(child, 'message', { signal, close: ['exit'] })) {
        if (message.id === id) return message.answer
      }
      throw new Error(`${life.name} died before it answered:\n${this.output.slice(-20).join('\n')}`)
    } finally {
      until.abort()
    }
  }

  /** Another Redis is the store from now on: what is on its way to the one before is lost. */
  pointTo(redisPort: number): void {
    for (const { store } of this.#places) {
      store.target = redisPort
      store.cut()
      store.mend()
    }
  }

  /** Takes its Redis away from one process: connections are refused, or nothing comes through any more. */
  cutOff(index: number, how: 'cut' | 'hold'): { mend(): void } {
    const { store } = this.#place(index)
    store[how]()
    return store
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
    Object.assign(place, this.#start(place))
  }

  /** It stands still, with everything that it knows and is about to do. */
  stop(index: number): { resume(): void } {
    const { child } = this.#place(index)
    child.kill('SIGSTOP')
    return { resume: () => void child.kill('SIGCONT') }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const [index, { child, store, service }] of this.#places.entries()) {
      this.kill(index)
      await exited(child)
      await store[Symbol.asyncDispose]()
      await service[Symbol.asyncDispose]()
    }
    await rm(this.#folder, { recursive: true })
  }

  #place(index: number): Place {
    const place = this.#places[index]
    if (place === undefined) throw new RangeError(`There is no place ${index}.`)
    return place
  }

  async #open(index: number, redisPort: number, servicePort: number): Promise<void> {
    const store = await Relay.start({ port: redisPort })
    const service = await Relay.start({ port: servicePort, answerDelayMs })
    const links = { store, service }
    this.#places[index] = { ...links, ...this.#start(links) }
  }

  #start({ store, service }: Pick<Place, 'store' | 'service'>): Pick<Place, 'child' | 'life'> {
    const life: ProcessLife = {
      name: `process-${this.lives.length + 1}`,
      configuration: this.configuration,
      diedAt: Number.POSITIVE_INFINITY,
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
    const child = spawn(process.execPath, [this.#program], { env, stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
    for (const input of [child.stdout, child.stderr]) {
      if (input === null) continue
      createInterface(input).on('line', (line) => this.output.push(`${life.name}: ${line}`))
    }
    return { child, life }
  }
}

async function exited(child: ChildProcess): Promise<void> {
  if (child.exitCode === null && child.signalCode === null) await once(child, 'exit')
}
