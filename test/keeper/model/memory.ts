/** What the store and the living processes know of the users, and what the last of them has taken along. */
import { isKept, type ModelSubscription } from './service.js'
import type { VirtualProcess } from './virtual-process.js'
import type { World } from './world.js'

export class Memory {
  readonly #world: World
  /** When the last trace of a user was lost: no store and no living process knew any more of a subscription. */
  readonly lost: { readonly atMs: number; readonly username: string }[] = []
  /** The ids that no store and no living process knew any more, though a process may know of one before. */
  readonly lostIds = new Set<number>()
  /** The users of whom a process, when it started or the store lost all, neither knew nor found anything. */
  readonly #unmet = new Map<VirtualProcess, Set<string>>()

  constructor(world: World) {
    this.#world = world
  }

  /** After a death, a start, or a loss of the store. Without a loss of the store all that a process knows outlives it. */
  noteLost(): void {
    const { nodes, service, store, time } = this.#world
    if (!store.hasForgotten) return
    const kept = service.subscriptions.filter(isKept)
    for (const { id, end, usernames } of kept) {
      const isSuspected = usernames.some((username) => store.holdsDoubt(username))
      if (end === undefined && !isSuspected && !store.holdsId(id) && !this.isIdKnown(id)) this.lostIds.add(id)
    }
    for (const username of new Set(kept.flatMap(({ usernames }) => usernames))) {
      if (store.holds(username)) continue
      const unknowing = nodes.filter(({ process }) => !this.knows(process, username))
      if (unknowing.length === nodes.length) this.lost.push({ atMs: time.nowMs, username })
      for (const { process } of unknowing) {
        const unmet = this.#unmet.get(process) ?? new Set()
        this.#unmet.set(process, unmet.add(username))
      }
    }
  }

  /** Whether nobody has known a subscription's user for a moment since it was made. */
  isLost({ createdAtMs, usernames }: ModelSubscription): boolean {
    return this.lost.some(({ atMs, username }) => atMs >= createdAtMs && usernames.includes(username))
  }

  /** Whether an id was never in the store, because that failed, and the process that made it is dead. */
  isOrphan(id: number): boolean {
    const { nodes, requests, store } = this.#world
    const maker = requests.find(({ created }) => created === id)?.process
    return store.hasMissed(id) && !nodes.some(({ process }) => process === maker)
  }

  /** Whether a process, when it started or the store lost all, neither knew nor found anything of a user. */
  hasNeverMet(process: VirtualProcess, username: string): boolean {
    return this.#unmet.get(process)?.has(username) === true
  }

  /** Whether a process has read of a user, or had asked the service for a subscription before a time. */
  knows(process: VirtualProcess, username: string, beforeMs = Number.POSITIVE_INFINITY): boolean {
    const { requests, store } = this.#world
    return (
      store.hasShown(process, username) ||
      requests.some((each) => each.process === process && each.username === username && each.atMs < beforeMs)
    )
  }

  /** Whether a living process has made a subscription, or read its id. */
  isIdKnown(id: number): boolean {
    const { nodes, requests, store } = this.#world
    return nodes.some(
      ({ process }) =>
        store.hasShownId(process, id) ||
        requests.some((each) => each.process === process && each.created === id),
    )
  }
}
