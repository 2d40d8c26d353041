/**
 * The users of this process: their records in the store, and their deliveries, which prove subscriptions. Only this file
 * changes a user, or writes a record.
 */

import { goneMark, hashOf, type IndexOfNames, type KeeperStore, lossMessage } from './keeper-store.js'
import type { ResolvedOptions } from './options.js'
import type { Processes } from './processes.js'
import type { Problems } from './reporter.js'
import { type LastDelivery, nextCount, recordSchema, type UserRecord } from './rules/record.js'
import { day, deliveryLagMs, jitter, longAgo, minute, now, restoreWaitMs, withPauses } from './timing.js'

/** Another process has written the record first. */
export class Collision extends Error {}

/** How long further deliveries are ignored after one: each of them then takes less than 100 ns. */
const ignoredForMs = 1_000
/** An unknown subscription is forgotten after this time without a delivery. */
const unknownMemoryMs = 60 * minute
/** The most unknown ids that are remembered: more could only be forged. */
const maxUnknown = 1_000

class KnownUser {
  readonly key: string
  isIndexed = false

  /** The last known text in the store, and since when it has not changed. */
  text: string | undefined
  unchangedSince = longAgo
  record: UserRecord | undefined
  /** The last record before another process removed it: the user continues with it, if the roster still has the name. */
  removed: UserRecord | undefined
  /** When the record was last read or written. */
  readSince = longAgo

  /** When any process last proved the subscription or met a conflict, and when the next proof is due. */
  proofSince = longAgo
  proofDueFrom = longAgo
  /** The id that this process has proven, and the number of proofs since, that one included. */
  provenId: number | undefined
  proofs = 0

  delivery: LastDelivery | undefined

  /** When the next reconciliation is due: by the schedule, or at once for a sweep, a delivery, or a change elsewhere. */
  dueFrom = longAgo
  isInFlight = false
  /** Failures in a row, and how many of the last ones in a row were refusals of the service. */
  failures = 0
  refusals = 0

  constructor(
    readonly username: string,
    public isWanted: boolean,
  ) {
    this.key = keyOf(username)
  }
}

const keyOf = (username: string) => `user:${hashOf(username).slice(0, 24)}`

/** What this process knows of one user. */
export type User = Readonly<KnownUser>

export class Users {
  readonly #all = new Map<string, User>()
  /** `undefined`: several users have this id, so it identifies none of them. */
  readonly #byId = new Map<number, User | undefined>()
  readonly all: ReadonlyMap<string, User> = this.#all
  readonly byId: ReadonlyMap<number, User | undefined> = this.#byId
  /** Deliveries of unknown subscriptions. */
  readonly #unknown = new Map<number, { firstSince: number; lastSince: number }>()

  /** A proof since this time is enough for every user. */
  provenSince = longAgo
  /** Whether another process has removed a user, or records were lost: the roster is to be read soon. */
  isRosterOld = false

  constructor(
    private readonly store: KeeperStore,
    private readonly index: IndexOfNames,
    private readonly processes: Processes,
    private readonly problems: Problems,
    private readonly options: Pick<ResolvedOptions, 'reportStrays' | 'sweepIntervalMs'>,
  ) {}

  add(username: string, isWanted: boolean): void {
    this.#all.set(username, new KnownUser(username, isWanted))
  }

  markDue(user: KnownUser): void {
    user.dueFrom = Math.min(user.dueFrom, now())
  }

  /** @param provenSince - users without a proof since this time are proven again */
  markAllDue(provenSince = longAgo): void {
    this.provenSince = Math.max(this.provenSince, provenSince)
    for (const user of this.#all.values()) this.markDue(user)
  }

  begin(user: KnownUser): void {
    // A change during the reconciliation may come too late for it: then the user is due again at once.
    Object.assign(user, { isInFlight: true, dueFrom: Number.POSITIVE_INFINITY })
  }

  end(user: KnownUser, againMs: number, failures = user.failures, refusals = user.refusals): void {
    const dueFrom = Math.min(user.dueFrom, now() + againMs)
    Object.assign(user, { isInFlight: false, dueFrom, failures, refusals })
  }

  forget(user: User): void {
    this.#track(user, undefined)
    this.#all.delete(user.username)
  }

  /** What roster and index say. */
  setListed(user: KnownUser, isWanted: boolean, isIndexed: boolean): void {
    if (user.isWanted !== isWanted) this.markDue(user)
    Object.assign(user, { isWanted, isIndexed })
  }

  /** @throws StoreFailure */
  async addToIndex(users: readonly KnownUser[]): Promise<void> {
    await this.index.add(users.map(({ username }) => username))
    for await (const user of withPauses(users)) user.isIndexed = true
  }

  /** Whether a user has a record that can be read. @throws StoreFailure */
  async hasRecord(username: string): Promise<boolean> {
    return (await this.#get(username)).value !== undefined
  }

  /** The record of another user counts as unreadable. */
  #get(username: string) {
    return this.store.read(keyOf(username), recordSchema, (record) => record.username === username)
  }

  /** Reads the record; writes it back if the store has lost it. What was removed stays removed. @throws StoreFailure, Collision */
  async read(user: KnownUser): Promise<UserRecord | undefined> {
    const known = user.record
    const { text, value } = await this.#get(user.username)
    const isNew = text !== user.text
    if (isNew) Object.assign(user, { text, unchangedSince: now() })
    if (value !== undefined) {
      // An older copy is used, but the subscription may have another id now.
      const isOlder = isNew && known !== undefined && value.version < known.version
      if (isOlder) this.problems.reportOnce('STORE', lossMessage, 'loss')
      if (isNew) this.#takeIn(user, isOlder ? { ...value, idUnsure: true } : value)
    } else if (known === undefined || text === goneMark || !user.isWanted) {
      // There was no record, or a process has removed it and its name, perhaps after this process has read the index.
      if (text === goneMark) user.isIndexed = false
      if (known !== undefined) {
        user.removed = { ...known, id: undefined, idUnsure: undefined, claim: undefined, endedByUs: true }
        this.#takeIn(user, undefined)
        if (user.isWanted) this.isRosterOld = true
      }
    } else {
      // The store has lost the record.
      user.provenId = undefined
      await this.write(user, known)
      if (text !== undefined) return user.record
      this.problems.reportOnce('STORE', lossMessage, 'loss')
      // Other records may be missing, too.
      this.isRosterOld = true
      this.markAllDue()
    }
    user.readSince = now()
    return user.record
  }

  /** @returns the record with its new version @throws StoreFailure, Collision */
  async write(user: KnownUser, record: UserRecord): Promise<UserRecord> {
    if (!user.isIndexed) await this.addToIndex([user])
    const { conflictAt, restores = 0, version = 0 } = user.record ?? {}
    const next = { ...record, version: nextCount(Math.max(record.version, version)) }
    await this.#replace(user, JSON.stringify(next), next)
    if (next.conflictAt !== undefined && next.conflictAt !== conflictAt) this.#noteProofTime(user, now())
    // A restored subscription may end again, and is proven when it may be restored again.
    if (next.restores > restores) {
      user.proofDueFrom = Math.min(user.proofDueFrom, now() + restoreWaitMs(next.restores))
    }
    return next
  }

  /** Removes record and name. @throws StoreFailure, Collision */
  async remove(user: KnownUser): Promise<void> {
    // The name last: if the process stops in between, another one finds the rest.
    if (user.record !== undefined) await this.#replace(user, goneMark, undefined)
    await this.index.remove(user.username)
    user.isIndexed = false
    // Another process may have claimed the user meanwhile.
    const { value } = await this.#get(user.username)
    if (value !== undefined) await this.index.add([user.username])
  }

  async #replace(user: KnownUser, text: string, record: UserRecord | undefined): Promise<void> {
    const ttlMs = record === undefined ? day : undefined
    if (!(await this.store.write(user.key, user.text, text, ttlMs))) throw new Collision()
    this.#track(user, record)
    Object.assign(user, { text, removed: undefined })
    user.unchangedSince = user.readSince = now()
  }

  /** Takes over the record of another process. A new proof counts as later than the last look at it, whatever its time. */
  #takeIn(user: KnownUser, record: UserRecord | undefined): void {
    const known = user.record
    this.#track(user, record)
    for (const name of ['provenAt', 'conflictAt'] as const) {
      const at = record?.[name]
      if (at === undefined || at === known?.[name]) continue
      const ageMs = Date.now() - at
      const since = ageMs >= 0 ? now() - ageMs : longAgo
      this.#noteProofTime(user, known === undefined ? since : Math.max(user.readSince, since))
    }
  }

  #track(user: KnownUser, record: UserRecord | undefined): void {
    const before = user.record?.id
    user.record = record
    const id = record?.id
    if (before !== id && before !== undefined && this.#byId.get(before) === user) this.#byId.delete(before)
    if (id === undefined) return
    const other = this.#byId.get(id)
    if (!this.#byId.has(id) || other === user) this.#byId.set(id, user)
    else {
      // A service that was reset gives its ids anew: the id belongs to the user who got it last.
      const owner = [user, other].find((each) => each?.provenId === id)
      this.#byId.set(id, owner)
      for (const each of [user, other]) if (each) this.markDue(each)
    }
  }

  /** Records the proof by a request. @param sentSince - when the request was sent */
  noteProof(user: KnownUser, sentSince: number, id: number | undefined): void {
    this.#noteProofTime(user, sentSince)
    user.proofs = id === undefined ? user.proofs + 1 : 1
    if (id !== undefined) user.provenId = id
  }

  /** Records a delivery at almost no cost: the queue does the rest. */
  observe(id: number, isWatching: boolean): void {
    const user: KnownUser | undefined = this.#byId.get(id)
    if (user === undefined) {
      // The command line's `check` delivers with the id 0, which no subscription has.
      const mayBeStray = Number.isSafeInteger(id) && id !== 0 && !this.#byId.has(id)
      if (!isWatching || !this.options.reportStrays || !mayBeStray) return
      const unknown = this.#unknown.get(id) ?? { firstSince: now(), lastSince: now() }
      unknown.lastSince = now()
      if (this.#unknown.size < maxUnknown) this.#unknown.set(id, unknown)
      return
    }
    const at = Date.now()
    if (user.delivery?.id === id && Math.abs(at - user.delivery.at) < ignoredForMs) return
    user.delivery = { id, at }
    this.#noteProofTime(user, now() - deliveryLagMs, 0)
    this.problems.removeUser(user.username, ['RECEIVER_SUSPECTED'])
    const { provenAt = 0, restores = 0 } = user.record ?? {}
    // Other processes must learn of a proof before their own proof is due.
    const isOld = at - deliveryLagMs - provenAt >= this.options.sweepIntervalMs / 2
    if (restores > 0 || isOld) this.markDue(user)
  }

  /** Reports unknown subscriptions. @param areRecordsRead - while they are not, every new subscription is unknown */
  reportStrays(areRecordsRead: boolean): void {
    // In this time every record is read, also that of a subscription which another process made. Late deliveries of a
    // replaced subscription end sooner.
    const patienceMs = this.options.sweepIntervalMs * (1 + jitter)
    for (const [id, unknown] of this.#unknown) {
      if (!areRecordsRead) unknown.firstSince = now()
      if (this.#byId.has(id) || now() - unknown.lastSince > unknownMemoryMs) {
        this.#unknown.delete(id)
        this.problems.resolve('STRAY', id)
      } else if (unknown.lastSince - unknown.firstSince >= patienceMs) {
        this.problems.begin('STRAY', strayMessage(id), { about: id, subscriptionId: id })
      }
    }
  }

  /**
   * Notes a later proof, and when the next one is due: earlier in the process that is first for the user, later in the others.
   *
   * @param spread - 0: due at the same time in all processes
   */
  #noteProofTime(user: KnownUser, since: number, spread = jitter): void {
    if (since <= user.proofSince) return
    const shift = spread && (this.processes.isFirstFor(user.username) ? -spread : spread) * Math.random()
    user.proofSince = since
    user.proofDueFrom = since + this.options.sweepIntervalMs * (1 + shift)
  }
}

const strayMessage = (id: number) =>
  `Deliveries arrive of subscription ${id}, which this keeper does not know: an answer or the data of the store may be lost. ` +
  `If no other program needs the subscription, call \`client.unsubscribe(${id})\` and then \`sweep()\`. ` +
  'If several keepers share this receiver, set `reportStrays: false`.'
