/** The users of this process, and their records in the store. Only this file changes a user, or writes a record. */
import type { Basics } from '../basics.js'
import type { UserSchedule } from '../loop/schedule.js'
import { type LastDelivery, nextCount, recordSchema, type UserRecord } from '../rules/record.js'
import { day, deliveryLagMs, jitter, longAgo, now, restoreWaitMs } from '../timing.js'
import type { Configuration } from './configuration.js'
import { goneMark, hashOf, KeyFailure, lossMessage, unlessKeyFails } from './keeper-store.js'

/** Another process has written the record first. */
export class Collision extends Error {}

/** More frequent deliveries are ignored, which keeps each below 100 ns. */
const aMomentMs = 1_000

class KnownUser {
  /** Of the record in the store. */
  readonly key: string
  /** Whether the index has the name. */
  isIndexed = false

  /** The last known text in the store, and since when it has not changed; monotonic. */
  text: string | undefined
  unchangedSince = longAgo
  /** A text that may be in the store, because its write got no answer: if it has a claim, nothing was sent. */
  unanswered: string | undefined
  record: UserRecord | undefined
  /** What the user continues with whose record another process has removed. */
  removed: UserRecord | undefined
  /** When the record was last read or written. */
  readSince = longAgo

  /** When any process last proved the subscription or met a conflict, and when the next call is due; monotonic. */
  checkedSince = longAgo
  checkDueFrom = longAgo
  /** The id that this process has proven, and the number of proofs since, that one included. */
  provenId: number | undefined
  proofs = 0

  /** The last delivery to this process. */
  delivery: LastDelivery | undefined

  constructor(
    readonly username: string,
    public isWanted: boolean,
    readonly schedule: UserSchedule,
  ) {
    this.key = keyOf(username)
  }
}

const keyOf = (username: string) => `user:${hashOf(username).slice(0, 24)}`

/** What this process knows of one user. */
export type User = Readonly<KnownUser>

/** What a keeper consists of. */
export interface Parts extends Basics {
  readonly configuration: Configuration
  readonly users: Users
}

export class Users {
  readonly #parts: Basics
  readonly #all = new Map<string, User>()
  /** `undefined`: several users have this id, so it is nobody's. */
  readonly #byId = new Map<number, User | undefined>()
  readonly all: ReadonlyMap<string, User> = this.#all
  readonly byId: ReadonlyMap<number, User | undefined> = this.#byId

  constructor(parts: Basics) {
    this.#parts = parts
  }

  add(username: string, isWanted: boolean): void {
    this.#all.set(username, new KnownUser(username, isWanted, this.#parts.schedule.newUser()))
  }

  forget(user: User): void {
    this.#track(user, undefined)
    this.#all.delete(user.username)
  }

  set(user: KnownUser, changes: Partial<Pick<User, 'isWanted' | 'isIndexed'>>): void {
    Object.assign(user, changes)
  }

  /** Whether a user has a record that can be read. @throws StoreFailure */
  async hasRecord(username: string): Promise<boolean> {
    return (await unlessKeyFails(this.#get(username)))?.value !== undefined
  }

  /** The record of another user counts as unreadable. */
  #get(username: string) {
    return this.#parts.store.read(keyOf(username), recordSchema, (record) => record.username === username)
  }

  /** Reads the record; writes it back if the store has lost it, and not on purpose. @throws StoreFailure, KeyFailure, Collision */
  async read(user: KnownUser): Promise<UserRecord | undefined> {
    const { problems, schedule } = this.#parts
    const known = user.record
    const { text, value: stored } = await this.#get(user.username)
    const wasWritten = text !== undefined && text === user.unanswered
    if (wasWritten) problems.resolve('STORE', `write ${user.key}`)
    const value = stored && wasWritten ? { ...stored, claim: undefined } : stored
    const isNew = text !== user.text
    if (isNew) Object.assign(user, { text, unchangedSince: now() })
    if (value !== undefined) {
      // An older copy is used, but the subscription may have another id now.
      const isOlder = isNew && known !== undefined && value.version < known.version
      if (isOlder) problems.reportOnce('STORE', lossMessage, 'loss')
      if (isNew) this.#takeIn(user, isOlder ? { ...value, idUnsure: true } : value)
    } else if (known === undefined || text === goneMark || !user.isWanted) {
      // The name goes with the record, perhaps after this process has read the index.
      if (text === goneMark) user.isIndexed = false
      if (known !== undefined) {
        user.removed = { ...known, id: undefined, idUnsure: undefined, claim: undefined, endedByUs: true }
        this.#takeIn(user, undefined)
      }
    } else {
      user.provenId = undefined
      await this.write(user, known)
      if (text !== undefined) return user.record
      problems.reportOnce('STORE', lossMessage, 'loss')
      // Others may be missing, too.
      schedule.markRosterDue()
      schedule.markAllDue()
    }
    user.readSince = now()
    return user.record
  }

  /** @returns the record with its new version @throws StoreFailure, KeyFailure, Collision */
  async write(user: KnownUser, record: UserRecord): Promise<UserRecord> {
    if (!user.isIndexed) {
      const failed = await this.#parts.index.add([user.username])
      if (failed.length > 0) throw new KeyFailure(unlistedMessage)
      user.isIndexed = true
    }
    const { conflictAt, restores = 0, version = 0 } = user.record ?? {}
    const next = { ...record, version: nextCount(Math.max(record.version, version)) }
    await this.#replace(user, JSON.stringify(next), next)
    if (next.conflictAt !== undefined && next.conflictAt !== conflictAt) this.#noteCheck(user, now())
    // A restored subscription may end again, and is checked when it may be restored again.
    if (next.restores > restores) {
      user.checkDueFrom = Math.min(user.checkDueFrom, now() + restoreWaitMs(next.restores))
    }
    return next
  }

  /** Removes record and name. @throws StoreFailure, KeyFailure, Collision */
  async remove(user: KnownUser): Promise<void> {
    const { index } = this.#parts
    // The name last: if the process stops in between, another one finds the rest.
    if (user.record !== undefined) await this.#replace(user, goneMark, undefined)
    await index.remove(user.username)
    user.isIndexed = false
    // Another process may have claimed the user meanwhile.
    const { value } = await this.#get(user.username)
    if (value !== undefined) await index.add([user.username])
  }

  async #replace(user: KnownUser, text: string, record: UserRecord | undefined): Promise<void> {
    const ttlMs = record === undefined ? day : undefined
    user.unanswered = text
    if (!(await this.#parts.store.compareAndSet(user.key, user.text, text, ttlMs)))
      throw new Collision(collisionMessage)
    this.#track(user, record)
    Object.assign(user, { text, removed: undefined, unanswered: undefined })
    user.unchangedSince = user.readSince = now()
  }

  /** Takes over another process' record. Its age comes from the wall clock, but is not before the last look. */
  #takeIn(user: KnownUser, record: UserRecord | undefined): void {
    const known = user.record
    this.#track(user, record)
    const { conflictAt, provenAt } = record ?? {}
    const sinceOf = (at: number) => {
      const ageMs = Date.now() - at
      const estimatedSince = ageMs >= 0 ? now() - ageMs : longAgo
      return known === undefined ? estimatedSince : Math.max(user.readSince, estimatedSince)
    }
    if (provenAt !== undefined && provenAt !== known?.provenAt) this.#noteCheck(user, sinceOf(provenAt))
    if (conflictAt !== undefined && conflictAt !== known?.conflictAt)
      this.#noteCheck(user, sinceOf(conflictAt))
  }

  #track(user: KnownUser, record: UserRecord | undefined): void {
    const { schedule } = this.#parts
    const before = user.record?.id
    user.record = record
    const id = record?.id
    if (before !== id && before !== undefined && this.#byId.get(before) === user) this.#byId.delete(before)
    if (id === undefined) return
    const other = this.#byId.get(id)
    if (!this.#byId.has(id) || other === user) this.#byId.set(id, user)
    else {
      // A service that was reset gives its ids anew: the id is of the user who got it last.
      const owner = [user, other].find((each) => each?.provenId === id)
      this.#byId.set(id, owner)
      for (const each of [user, other]) if (each) schedule.markDue(each.schedule)
    }
  }

  /** Records the proof of a call that was sent then. */
  noteProof(user: KnownUser, sentSince: number, id: number | undefined): void {
    this.#noteCheck(user, sentSince)
    user.proofs = id === undefined ? user.proofs + 1 : 1
    if (id !== undefined) user.provenId = id
  }

  /** @returns whether the delivery is new, and not a moment after the last one */
  noteDelivery(user: KnownUser, id: number): boolean {
    const at = Date.now()
    if (user.delivery?.id === id && Math.abs(at - user.delivery.at) < aMomentMs) return false
    user.delivery = { id, at }
    this.#noteCheck(user, now() - deliveryLagMs, 0)
    return true
  }

  /** The user is due again earlier in the process that is to be the first to check the user, and later in the others. */
  #noteCheck(user: KnownUser, since: number, spread = jitter): void {
    if (since <= user.checkedSince) return
    const { processes, sweepIntervalMs } = this.#parts
    const later = spread && (processes.isFirstFor(user.username) ? -spread : spread) * Math.random()
    user.checkedSince = since
    user.checkDueFrom = since + sweepIntervalMs * (1 + later)
  }
}

const collisionMessage = 'Another process is working on this user. Sweep again in two minutes.'
const unlistedMessage = 'The name cannot be entered in the index in the store: nothing is sent for this user.'
