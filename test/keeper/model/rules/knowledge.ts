/** What the store and the living processes know of the users, and what the last of them has taken along. */
import { isKept, type ModelSubscription } from '../service.js'
import { hasUnknownOutcome, parameterNamesIn } from '../stored-records.js'
import type { VirtualProcess } from '../virtual-process.js'
import type { Node, World } from '../world.js'

export class Knowledge {
  readonly #world: World
  /** When the last trace of a user was lost: no store and no living process knew any more of a subscription. */
  readonly lost: { readonly atMs: number; readonly username: string }[] = []
  /** The ids that no store and no living process knew any more, though a process may know of one before. */
  readonly lostIds = new Set<number>()
  /**
   * The ids without parameters that the store has lost, and that some process does not know: it may have proven the
   * subscription before by a 409, and what it wrote then is newer than what the others know.
   */
  readonly unprovableIds = new Set<number>()
  /** The subscriptions with a parameter of which no store and no living process knew any more. */
  readonly #lostNames = new Set<string>()
  /** The users of whom a process, when it started or the store lost all, neither knew nor found anything. */
  readonly #unmet = new Map<VirtualProcess, Set<string>>()

  constructor(world: World) {
    this.#world = world
  }

  /**
   * After a death, a start, a new configuration, or a loss of the store. Without a loss of the store all that a process
   * knows outlives it; a process with an older configuration is superseded and writes nothing back.
   */
  noteLost(): void {
    const { service, store, time } = this.#world
    if (!store.hasLost) return
    const nodes = currentNodes(this.#world)
    const kept = service.subscriptions.filter(isKept)
    for (const each of kept) if (each.end === undefined) this.#noteLostNames(each, nodes)
    for (const { id, end, parameters, usernames } of kept) {
      const isSuspected = usernames.some((username) => {
        const record = store.record(username)
        return record !== undefined && hasUnknownOutcome(record)
      })
      if (end !== undefined || isSuspected || store.holdsId(id)) continue
      if (!this.isIdKnown(id)) this.lostIds.add(id)
      const hasParameters = Object.keys(parameters).length > 0
      if (!hasParameters && nodes.some((node) => !this.#knowsId(node, id))) this.unprovableIds.add(id)
    }
    for (const username of new Set(kept.flatMap(({ usernames }) => usernames))) {
      // A record is found by the name among the members, or because the roster has the name.
      const isFound = store.hasMember(username) || this.#world.wanted.has(username)
      if (store.record(username) !== undefined && isFound) continue
      const unknowing = nodes.filter(({ process }) => !this.knows(process, username))
      if (unknowing.length === nodes.length) this.lost.push({ atMs: time.nowMs, username })
      for (const { process } of unknowing) {
        const unmet = this.#unmet.get(process) ?? new Set()
        this.#unmet.set(process, unmet.add(username))
      }
    }
  }

  /** Whether no store and no living process knew any more, for a moment, that a subscription has a parameter. */
  isNameLost({ id }: ModelSubscription, name: string): boolean {
    return this.#lostNames.has(`${id} ${name}`)
  }

  #noteLostNames({ id, parameters, usernames }: ModelSubscription, nodes: readonly Node[]): void {
    const { store } = this.#world
    const [username = ''] = usernames
    const record = store.record(username)
    const stored = record === undefined ? [] : parameterNamesIn(record)
    for (const name of Object.keys(parameters)) {
      const isKnown = nodes.some(({ process }) => store.hasShownName(process, username, name))
      if (!stored.includes(name) && !isKnown) this.#lostNames.add(`${id} ${name}`)
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

  /**
   * Whether a process has read of a user, or had asked the service for a subscription before a time. A process lets go
   * of what it knew of a user who was removed.
   */
  knows(process: VirtualProcess, username: string, beforeMs = Number.POSITIVE_INFINITY): boolean {
    const { requests, store } = this.#world
    const afterMs = store.letGoMs(process, username)
    return (
      store.hasShown(process, username) ||
      requests
        .filter(({ atMs }) => atMs > afterMs && atMs < beforeMs)
        .some((each) => each.process === process && each.username === username)
    )
  }

  /** Whether a living process has made a subscription, or read its id. */
  isIdKnown(id: number): boolean {
    return currentNodes(this.#world).some((node) => this.#knowsId(node, id))
  }

  #knowsId({ process }: Node, id: number): boolean {
    const { requests, store } = this.#world
    if (store.hasShownId(process, id)) return true
    return requests.some((each) => each.process === process && each.created === id)
  }
}

/** The processes that run the configuration that is wanted. */
export function currentNodes(world: World): Node[] {
  return world.nodes.filter(({ configuration }) => configuration === world.configuration)
}
