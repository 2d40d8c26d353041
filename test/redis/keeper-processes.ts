/** Two keepers in processes of their own, that are killed and started again, and what they told. */
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

/** A line that a keeper's process writes. */
export type KeeperReport =
  | { readonly kind: 'gap'; readonly gap: KeeperGap }
  | { readonly kind: 'problem'; readonly code: KeeperProblemCode; readonly resolved: boolean }
  | { readonly kind: 'standing'; readonly pid: number; readonly standing: string }

export interface KeeperProcessesOptions {
  readonly emulator: Emulator
  readonly redis: RedisServer
  readonly callbackUrl: string
  readonly roster: ReadonlySet<string>
}

export class KeeperProcesses implements AsyncDisposable {
  /** When the clocks of the keepers showed the same time as ours, in milliseconds since 1970. */
  readonly clockStartedAt: number
  /** What they wrote on their standard streams. */
  output = ''
  readonly #folder: string
  readonly #program: string
  readonly #env: NodeJS.ProcessEnv
  readonly #children: ChildProcess[] = []

  private constructor(folder: string, program: string, env: NodeJS.ProcessEnv) {
    this.clockStartedAt = Number(env.CLOCK_STARTED_AT)
    this.#folder = folder
    this.#program = program
    this.#env = env
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
    const keepers = new KeeperProcesses(folder, await bundleProgram('keeper-process', folder), {
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
      REPORT_FILE: join(folder, 'reports'),
      CLOCK_STARTED_AT: String(Date.now()),
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

  /** Everything that was told, also by processes that were killed. */
  async reports(): Promise<KeeperReport[]> {
    const text = await readFile(join(this.#folder, 'reports'), 'utf8')
    return text
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line))
  }

  /** Which of the two keeps the roster: after a kill that takes as long as a lease lasts. */
  async indexAtWork(): Promise<number> {
    return vi.waitFor(
      async () => {
        const standings = (await this.reports()).filter((each) => each.kind === 'standing')
        const index = this.#children.findIndex(({ pid }) => {
          return standings.findLast((each) => each.pid === pid)?.standing === 'at-work'
        })
        expect(index, `nobody is at work:\n${this.output}`).toBeGreaterThanOrEqual(0)
        return index
      },
      { timeout: 60_000, interval: 20 },
    )
  }

  /** Ends it at this very moment, without a chance to write or to say anything. */
  kill(index: number): void {
    this.#children[index]?.kill('SIGKILL')
  }

  /** Starts another in the place of one that was killed. */
  async restart(index: number): Promise<void> {
    await end(this.#children[index])
    this.#start(index)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const child of this.#children) await end(child)
    await rm(this.#folder, { recursive: true })
  }

  #start(index: number): void {
    const child = spawn(process.execPath, [this.#program], {
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
