/** Whom a keeper has called confirmed after a rotation: the old secret can go, and no callback may carry it any more. */
import type { VirtualProcess } from '../virtual-process.js'
import { type Configuration, seconds, type World } from '../world.js'

interface Confirmed {
  readonly atMs: number
  readonly process: VirtualProcess
  readonly parameters: Readonly<Record<string, string>>
}

export class Confirmations {
  readonly #world: World
  readonly #confirmed = new Map<string, Confirmed>()

  constructor(world: World) {
    this.#world = world
  }

  /** A keeper says that the callbacks of these users carry the parameters of a configuration. */
  add(process: VirtualProcess, usernames: readonly string[], configuration: Configuration): void {
    const { parameters } = configuration
    if (process.isDead || parameters === undefined || configuration !== this.#world.configuration) return
    for (const username of usernames) {
      this.#confirmed.set(username, { atMs: this.#world.time.nowMs, process, parameters })
      this.check(username)
    }
  }

  /** Another configuration is wanted. */
  forget(): void {
    this.#confirmed.clear()
  }

  /**
   * Whether a process cannot have been told of a subscription that another one made: one that began with an empty store,
   * or is at work while the other, which lost sight of the store, goes on with an older configuration.
   */
  #isUnheardOf(process: VirtualProcess, username: string, id: number): boolean {
    const { knowledge, requests, store } = this.#world
    const isMaker = requests.some((each) => each.process === process && each.created === id)
    if (isMaker || store.hasShownId(process, id)) return false
    return knowledge.hasNeverMet(process, username) || knowledge.lostIds.has(id) || store.hasMissed(id)
  }

  /** Something about a user's subscriptions has changed. */
  check(username: string): void {
    const confirmed = this.#confirmed.get(username)
    if (confirmed === undefined) return
    const { atMs, process } = confirmed
    for (const { id, createdBy, parameters } of this.#world.service.activeFor(username)) {
      if (createdBy !== 'keeper' || this.#isUnheardOf(process, username, id)) continue
      for (const [name, value] of Object.entries(confirmed.parameters)) {
        if (parameters[name] === value) continue
        const said = `${process.name} confirmed ${name}=${value} for ${username} at ${seconds(atMs)}`
        const now = seconds(this.#world.time.nowMs)
        this.#world.violations.push(`${now} ${said}: ${id} has ${parameters[name]}`)
      }
    }
  }
}
