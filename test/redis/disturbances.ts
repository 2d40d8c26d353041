/** What happens to two keepers: everything that a process can be interrupted by, at moments that hurt. */
import { setTimeout as pause } from 'node:timers/promises'
import type { Emulator } from 'notification-subscriber/emulator'
import { expect, vi } from 'vitest'
import { fastMs } from './fast-time.js'
import type { KeeperProcesses } from './keeper-processes.js'
import type { Random } from './random.js'

const leaseMs = fastMs(60_000)
const heartbeatMs = fastMs(30_000)
const settlingMs = fastMs(120_000)

/** How often each of them happens; most cost the time that a lease lasts. */
export const plan = {
  /** The one that stands by dies. */
  idle: 35,
  /** The one at work dies. */
  worker: 6,
  /** The one at work dies with a create on its way, which takes effect later. */
  late: 4,
  /** The one at work dies, and its heir as soon as it has the turn. */
  both: 2,
  /** The one at work stands still until the other has the turn, and comes back with all that it was about to do. */
  stopped: 2,
  /** Redis is away for the one at work only. */
  cutOff: 2,
  /** The one that stands by is replaced by one with other parameters. */
  deployed: 2,
} as const

export type Disturbance = keyof typeof plan

/** What happens around the keepers. */
export interface World {
  /** A little of everything. */
  change(): Promise<void>
  /** The service ends some subscriptions. */
  endSome(count: number): void
  /** The roster does without somebody. */
  remove(username: string): Promise<void>
}

export class Disturbances implements Readonly<Record<Disturbance, () => Promise<void>>> {
  readonly #emulator: Emulator
  readonly #keepers: KeeperProcesses
  readonly #random: Random
  readonly #world: World

  constructor(
    { emulator, keepers, random }: { emulator: Emulator; keepers: KeeperProcesses; random: Random },
    world: World,
  ) {
    this.#emulator = emulator
    this.#keepers = keepers
    this.#random = random
    this.#world = world
  }

  async idle(): Promise<void> {
    // As often while nobody has the turn as it comes.
    const atWork = this.#keepers.indexAtWork ?? 0
    await pause(this.#random.upTo(400))
    await this.#keepers.restart(1 - atWork)
  }

  async worker(): Promise<void> {
    const atWork = await this.#keepers.atWork()
    await this.#atMoment(() => this.#keepers.kill(atWork))
    await this.#keepers.restart(atWork)
  }

  async late(): Promise<void> {
    const atWork = await this.#keepers.atWork()
    this.#emulator.clearFaults()
    // Up to a little less than the two minutes in which a create without an answer may take effect.
    const delayMs = this.#random.upTo(settlingMs * 0.9)
    this.#emulator.injectFault('create', { delayMs }, { times: 3 })
    this.#world.endSome(3)
    let username: string | undefined
    for (let tries = 0; tries < 200 && username === undefined; tries++) {
      await pause(10)
      username = this.#usernameInFlight()
    }
    await this.#keepers.restart(atWork)
    if (username !== undefined && this.#random.chance(0.5)) await this.#world.remove(username)
  }

  async both(): Promise<void> {
    const atWork = await this.#workerWithHeir()
    await this.#atMoment(() => this.#keepers.kill(atWork))
    const heir = await this.#keepers.atWork({ except: atWork })
    await pause(this.#random.upTo(150))
    this.#keepers.kill(heir)
    await this.#keepers.restart(atWork)
    await this.#keepers.restart(heir)
  }

  async stopped(): Promise<void> {
    const atWork = await this.#workerWithHeir()
    let stopped: { resume(): void } | undefined
    await this.#atMoment(() => {
      stopped = this.#keepers.stop(atWork)
    })
    await this.#world.change()
    const heir = await this.#keepers.atWork({ except: atWork })
    await pause(this.#random.upTo(leaseMs / 2))
    stopped?.resume()
    await pause(this.#random.upTo(300))
    // Then it is the one that comes back who has to work again.
    if (this.#random.chance(0.6)) await this.#keepers.restart(heir)
  }

  async cutOff(): Promise<void> {
    const atWork = await this.#workerWithHeir()
    const link = this.#keepers.cutOff(atWork, this.#random.chance(0.5) ? 'cut' : 'hold')
    await this.#world.change()
    if (this.#random.chance(0.7)) await this.#keepers.atWork({ except: atWork })
    await this.#world.change()
    await pause(this.#random.upTo(1_000))
    link.mend()
    // What it alone knows has to come to the store before it may die.
    await pause(2 * heartbeatMs)
  }

  async deployed(): Promise<void> {
    const keepers = this.#keepers
    const atWork = await keepers.atWork()
    keepers.configuration++
    await keepers.restart(1 - atWork)
    await vi.waitFor(
      () =>
        expect(JSON.parse(keepers.store.values.get('kept:head') ?? '').generation).toBe(
          keepers.configuration,
        ),
      { timeout: 30_000, interval: 10 },
    )
  }

  /** Who is about to be subscribed. */
  #usernameInFlight(): string | undefined {
    const subscribed = new Set(this.#emulator.subscriptions.map(({ usernames }) => usernames.join()))
    const inFlight = this.#emulator.requests.filter(({ durationMs }) => durationMs === undefined)
    const usernames = inFlight.map(({ body }) => new URLSearchParams(body).get('username'))
    return usernames.find((each) => each !== null && !subscribed.has(each)) ?? undefined
  }

  /** One with earlier parameters lives on for a while: it must stay aside. */
  async superseded(): Promise<void> {
    await this.deployed()
    await pause(heartbeatMs + 3_000)
  }

  /** The one at work and its heir, who knows everybody by now, find the same ends, and do not know of each other. */
  async cutOffForLong(): Promise<void> {
    const atWork = await this.#workerWithHeir()
    // A pass.
    await pause(heartbeatMs)
    const link = this.#keepers.cutOff(atWork, 'cut')
    await this.#keepers.atWork({ except: atWork })
    await pause(heartbeatMs)
    this.#world.endSome(4)
    await pause(2 * heartbeatMs)
    link.mend()
    await pause(2 * heartbeatMs)
  }

  /** The place of the one at work, after the other has the newest configuration, too: else it would never take over. */
  async #workerWithHeir(): Promise<number> {
    for (;;) {
      const atWork = await this.#keepers.atWork()
      if (this.#keepers.isUpToDate(1 - atWork)) return atWork
      await this.#keepers.restart(1 - atWork)
    }
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
