/**
 * What the keeper learns of the receiver. Deliveries are proof of the subscriptions that the keeper knows, and a problem if
 * they are of others. Ends that were found say that the receiver failed, and that others may have ended, too.
 */
import type { NewestConfiguration } from './configuration.js'
import { KeyFailure } from './keeper-store.js'
import type { CircuitBreaker } from './limiter.js'
import { RecordChanged, type Records } from './records.js'
import type { Problems } from './reporter.js'
import type { Roster } from './roster.js'
import { deliveryLagMs, type Instant, minute, presentInstant } from './timing.js'
import type { Delivery, User, Users } from './users.js'

/** A delivery with an unknown id may be of a subscription whose create is in flight. */
const patienceMs = minute
/** How often the store is searched for unknown ids at most. */
const searchPauseMs = minute
/** Without a delivery for so long an unknown subscription is forgotten. */
const memoryMs = 60 * minute
/** So many ids are watched at most: a sender of more makes them up. */
const maxWatched = 1_000
/** So many records are read at the same time. */
const readsAtOnce = 32
/** A user who fails so often in a row may fail for ever. */
const hopelessFailures = 3

/** A subscription that the keeper does not know. */
interface UnknownSubscription {
  readonly firstSince: number
  last: Instant
  isReported: boolean
}

export interface DeliveriesParts {
  readonly reportStrays: boolean
  readonly sweepIntervalMs: number
  readonly users: Users
  readonly newest: NewestConfiguration
  readonly records: Records
  readonly roster: Roster
  readonly circuit: CircuitBreaker
  readonly incidents: Incidents
  readonly problems: Problems
}

export class Deliveries {
  readonly #parts: DeliveriesParts
  readonly #unknown = new Map<number, UnknownSubscription>()
  #searchedSince = Number.NEGATIVE_INFINITY

  constructor(parts: DeliveriesParts) {
    this.#parts = parts
  }

  /** A delivery of this subscription has arrived. Costs next to nothing: what follows is left to the schedule. */
  observe(id: number, { isWatching }: { isWatching: boolean }): void {
    const user = this.#parts.users.withId(id)
    if (user !== undefined) this.#count(user, { id, ...presentInstant() })
    else if (isWatching) this.#observeUnknown(id)
  }

  #count(user: User, delivery: Delivery): void {
    const { incidents, sweepIntervalMs } = this.#parts
    user.lastDelivery = delivery
    const { present, record } = user
    if (present === undefined || record === undefined || user.proofByDelivery === undefined) return

    const provenSince = delivery.since - deliveryLagMs
    user.provenSince = Math.max(user.provenSince, provenSince)
    user.provenId = delivery.id
    if (user.isQuiet) user.dueFrom = Math.max(user.dueFrom, provenSince + sweepIntervalMs)
    if (user.hasConflict || present.isGone) user.makeDue()
    if (record.restoresSinceDelivery > 0) {
      incidents.delivered()
      user.restorableFrom = 0
    }
  }

  /** Reports unknown subscriptions, and those that are known now, or deliver no longer. @throws StoreUnavailable */
  async review(): Promise<void> {
    const { newest, problems, users } = this.#parts
    if (newest.isSuperseded) return
    const now = performance.now()
    const isCandidate = ([id, each]: [number, UnknownSubscription]) =>
      !each.isReported && now - each.firstSince >= patienceMs && !this.#isExplained(id, each)
    // Another process may have created the subscription.
    if ([...this.#unknown].some(isCandidate) && now - this.#searchedSince >= searchPauseMs) {
      this.#searchedSince = now
      await this.#search()
    }
    const isSettling = this.#isSettling()
    for (const [id, each] of this.#unknown) {
      if (this.#isExplained(id, each)) {
        this.#unknown.delete(id)
        // Another process has made the subscription: its deliveries count from now on.
        const user = users.withId(id)
        if (user !== undefined && (user.lastDelivery?.since ?? 0) < each.last.since) {
          this.#count(user, { id, ...each.last })
        }
        problems.resolve('STRAY', id)
      } else if (isCandidate([id, each]) && !isSettling) {
        each.isReported = true
        problems.begin('STRAY', strayMessage(id), { about: id, subscriptionId: id })
      }
    }
  }

  #observeUnknown(id: number): void {
    const { reportStrays, users } = this.#parts
    // The command line's `check` delivers under the id 0, which is no subscription's.
    if (!reportStrays || !Number.isSafeInteger(id) || id <= 0 || users.hasEnded(id)) return
    const last = presentInstant()
    const known = this.#unknown.get(id)
    if (known !== undefined) known.last = last
    else if (this.#unknown.size < maxWatched) {
      this.#unknown.set(id, { firstSince: last.since, last, isReported: false })
    }
  }

  #isExplained(id: number, { isReported, last }: UnknownSubscription): boolean {
    const { users } = this.#parts
    if (users.withId(id) !== undefined || users.hasEnded(id)) return true
    // It is probably what was replaced. Anything else delivers again.
    const wasReplaced = !isReported && last.since <= users.unknownEndedSince
    return wasReplaced || performance.now() - last.since > memoryMs
  }

  async #search(): Promise<void> {
    const { records, roster, users } = this.#parts
    await roster.read()
    const all = [...users].values()
    const work = async () => {
      for (const user of all) if (user.reconciling === undefined) await readIfPossible(records, user)
    }
    await Promise.all(Array.from({ length: readsAtOnce }, work))
  }

  /** Whether the outcome of a call is not known yet: the unknown subscription may be the keeper's own. */
  #isSettling(): boolean {
    const { circuit, users } = this.#parts
    return [...users].some(({ failures, present, reconciling, record }) => {
      if (failures >= hopelessFailures && !circuit.isOpen) return false
      return present?.isOutcomeUnknown || (record?.claim !== undefined && reconciling === undefined)
    })
  }
}

async function readIfPossible(records: Records, user: User): Promise<void> {
  try {
    await records.read(user)
  } catch (error) {
    if (!(error instanceof RecordChanged) && !(error instanceof KeyFailure)) throw error
  }
}

/** Without another end for this time, or an interval if that is longer, the incident is over. */
const quietMs = 15 * minute
/** At most one sweep in this time because of ends that were found. */
const sweepPauseMs = minute

export class Incidents {
  readonly #problems: Problems
  readonly #quietMs: number
  #lastEndSince = Number.NEGATIVE_INFINITY
  #lastSweepSince = Number.NEGATIVE_INFINITY
  #wantsSweep = false
  /** Whether a restored subscription has delivered since the last end. */
  #isReceiverWorking = false

  constructor(problems: Problems, sweepIntervalMs: number) {
    this.#problems = problems
    this.#quietMs = Math.max(quietMs, sweepIntervalMs)
  }

  /** When the last end was found; monotonic. */
  get lastEndSince(): number {
    return this.#lastEndSince
  }

  /** @param isFirst - whether the user has delivered since the last end: one that ends again says nothing of others */
  foundEnd(username: string, isFirst: boolean): void {
    const now = performance.now()
    const isNewIncident = now - this.#lastEndSince >= this.#quietMs
    this.#lastEndSince = now
    this.#isReceiverWorking = false
    if (isFirst || isNewIncident) this.#wantsSweep = true
    this.#problems.addUser('RECEIVER_SUSPECTED', username, incidentMessage)
  }

  /** A subscription that was restored has delivered. */
  delivered(): void {
    this.#isReceiverWorking = true
  }

  /** Whether a sweep is to find what ended with the others; says so once. */
  takeSweep(): boolean {
    const now = performance.now()
    if (!this.#wantsSweep || now - this.#lastSweepSince < sweepPauseMs) return false
    this.#wantsSweep = false
    this.#lastSweepSince = now
    return true
  }

  /** A sweep that begins now finds everything. */
  forgetSweep(): void {
    this.#wantsSweep = false
  }

  review(): void {
    const waitMs = this.#isReceiverWorking ? minute : this.#quietMs
    if (performance.now() - this.#lastEndSince >= waitMs) this.#problems.resolveOfUsers('RECEIVER_SUSPECTED')
  }
}

function strayMessage(id: number): string {
  return (
    `Deliveries arrive of subscription ${id}, which this keeper does not know. The keeper may have made it all the same, ` +
    'and lost the answer, or what was in its store. If nobody else needs the subscription, call ' +
    `\`client.unsubscribe(${id})\` and then \`sweep()\`, which subscribes its user again if the roster has that user. ` +
    'If several keepers share this receiver, set `reportStrays: false`.'
  )
}

function incidentMessage(userCount: number): string {
  const found =
    userCount === 1
      ? 'A subscription was found ended and is'
      : `${userCount} subscriptions were found ended and are`
  return (
    `${found} restored. The service ends a subscription after three failed callbacks in a row: the receiver was probably ` +
    'down, slow or refusing. Look at its log, and at the log of what stands in front of it, since `lastProvenAt` of the ' +
    'gap, which `onGap` gets, or else the line `subscription.restored` in the log.'
  )
}
