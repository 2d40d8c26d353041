/** What happens to keepers on one Redis: everything that a process can be interrupted by, at moments that hurt. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Emulator } from 'notification-subscriber/emulator'
import { expect, vi } from 'vitest'
import type { Random } from '../../support/random.js'
import { fastMs } from './fast-time.js'
import type { KeeperProcesses } from './keeper-processes.js'
import type { Scene } from './keeper-scene.js'

const configurationReadMs = fastMs(30_000)
const claimStaleMs = fastMs(120_000)

/** How often each of them happens. */
export const plan = {
  /** A process dies, and another takes its place. */
  killed: 38,
  /** A process dies with a create on its way, which takes effect later. */
  late: 5,
  /** All processes die. */
  allKilled: 3,
  /** A process stands still for longer than two minutes, and goes on with all that it was about to do. */
  stopped: 3,
  /** Redis is away for one process only. */
  cutOff: 3,
  /** One process is replaced by one with other parameters. */
  deployed: 2,
} as const

export type Disturbance = keyof typeof plan

export class Disturbances implements Readonly<Record<Disturbance, () => Promise<void>>> {
  readonly #scene: Scene
  readonly #emulator: Emulator
  readonly #keepers: KeeperProcesses
  readonly #random: Random

  constructor(scene: Scene, random: Random) {
    this.#scene = scene
    this.#emulator = scene.emulator
    this.#keepers = scene.keepers
    this.#random = random
  }

  async killed(): Promise<void> {
    const index = this.#anyPlace()
    await this.#atMoment(() => this.#keepers.kill(index))
    await this.#keepers.restart(index)
  }

  async late(): Promise<void> {
    this.#emulator.clearFaults()
    // Less than the two minutes after which a claim is taken over.
    const delayMs = this.#random.upTo(claimStaleMs * 0.8)
    this.#emulator.injectFault('create', { delayMs }, { times: 3 })
    this.#scene.endSome(3)
    let username: string | undefined
    for (let tries = 0; tries < 200 && username === undefined; tries++) {
      await pause(10)
      username = this.#usernameInFlight()
    }
    for (let index = 0; index < this.#keepers.count; index++) await this.#keepers.restart(index)
    if (username !== undefined && this.#random.chance(0.5)) await this.#scene.remove(username)
  }

  async allKilled(): Promise<void> {
    const places = [...Array(this.#keepers.count).keys()]
    await this.#atMoment(() => {
      for (const index of places) this.#keepers.kill(index)
    })
    await pause(this.#random.upTo(500))
    for (const index of places) await this.#keepers.restart(index)
  }

  async stopped(): Promise<void> {
    let stopped: { resume(): void } | undefined
    const index = this.#anyPlace()
    await this.#atMoment(() => {
      stopped = this.#keepers.stop(index)
    })
    await this.#scene.change()
    await pause(claimStaleMs + this.#random.upTo(claimStaleMs / 2))
    stopped?.resume()
    await pause(this.#random.upTo(300))
  }

  async cutOff(): Promise<void> {
    const link = this.#keepers.cutOff(this.#anyPlace(), this.#random.chance(0.5) ? 'cut' : 'hold')
    await this.#scene.change()
    await pause(this.#random.upTo(claimStaleMs))
    await this.#scene.change()
    link.mend()
    await pause(this.#random.upTo(500))
  }

  async deployed(): Promise<void> {
    const keepers = this.#keepers
    // A process that comes to the store only afterwards would announce its own configuration as the newest.
    for (let index = 0; index < keepers.count; index++) await this.#hasBegun(index)
    keepers.configuration++
    const index = this.#anyPlace()
    await keepers.restart(index)
    await this.#hasBegun(index)
  }

  /** The process has swept, and so has announced its configuration, or found it in the store. */
  async #hasBegun(index: number): Promise<void> {
    await vi.waitFor(
      async () => {
        const { hasSwept } = await this.#keepers.known(index)
        expect(hasSwept, this.#keepers.output.slice(-40).join('\n')).toBe(true)
      },
      { timeout: 30_000, interval: 20 },
    )
  }

  /** One with earlier parameters lives on for a while: it must send nothing. */
  async superseded(): Promise<void> {
    await this.deployed()
    await pause(configurationReadMs + 3_000)
  }

  #anyPlace(): number {
    return Math.floor(this.#random.upTo(this.#keepers.count))
  }

  /** Who is about to be subscribed. */
  #usernameInFlight(): string | undefined {
    const subscribed = new Set(this.#emulator.subscriptions.map(({ usernames }) => usernames.join()))
    const inFlight = this.#emulator.requests.filter(({ durationMs }) => durationMs === undefined)
    const usernames = inFlight.map(({ body }) => new URLSearchParams(body).get('username'))
    return usernames.find((each) => each !== null && !subscribed.has(each)) ?? undefined
  }

  /** At any moment, or just when a subscription begins or ends, before the keeper can know. */
  async #atMoment(happen: () => void): Promise<void> {
    const event = this.#random.oneOf(['created', 'ended', 'request', undefined] as const)
    let hasHappened = false
    const once = () => {
      if (hasHappened) return
      hasHappened = true
      happen()
    }
    const stop = event === undefined ? () => {} : this.#emulator.on(event, once)
    await pause(this.#random.upTo(400))
    stop()
    once()
  }
}
