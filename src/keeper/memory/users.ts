/** The state of the users in this process: their last known records, and proofs. */
import { createHash } from 'node:crypto'
import { absorb, type Delivery, type UserRecord } from '../rules/record.js'
import { deliveryLagMs, never, now, restoreWaitMs } from '../timing.js'

/** More frequent deliveries are ignored, which keeps each below 100 ns. */
const aMomentMs = 1_000

interface MutableUser {
  readonly username: string
  /** Of the record in the store. */
  readonly key: string
  isWanted: boolean
  /** Whether the index has the name. */
  isIndexed: boolean

  /** The last known text in the store, and since when; monotonic. */
  text: string | undefined
  textSince: number
  record: UserRecord | undefined
  /** When the record was last read or written. */
  readSince: number

  /** When any process sent the last proof, and when the next is due; monotonic. */
  provenSince: number
  proofDueFrom: number
  /** The id that this process has proven, and the number of later proofs. */
  metId: number | undefined
  proofs: number

  /** When any process found a conflict, and when the next attempt is due. */
  conflictSince: number
  conflictDueFrom: number
  /** From when the subscription may be restored again. */
  restorableFrom: number
  /** When this process restored the subscription, until a delivery arrives. */
  restoredSince: number | undefined
  /** The last delivery to this process. */
  delivery: Delivery | undefined
}

/** One user. Only this file changes it. */
export type User = Readonly<MutableUser>

export class Users {
  readonly #sweepIntervalMs: number
  readonly #all = new Map<string, User>()
  readonly #byId = new Map<number, User>()
  /** Ids of the past, and since when; monotonic. */
  readonly #formerIds = new Map<number, number>()

  constructor(sweepIntervalMs: number) {
    this.#sweepIntervalMs = sweepIntervalMs
  }

  get size(): number {
    return this.#all.size
  }

  all(): IterableIterator<User> {
    return this.#all.values()
  }

  get(username: string): User | undefined {
    return this.#all.get(username)
  }

  withId(id: number): User | undefined {
    return this.#byId.get(id)
  }

  isFormerId(id: number): boolean {
    return this.#formerIds.has(id)
  }

  add(username: string, isWanted: boolean): User {
    const user: User = {
      username,
      key: `user:${createHash('sha256').update(username).digest('base64url').slice(0, 24)}`,
      isWanted,
      isIndexed: false,
      text: undefined,
      textSince: never,
      record: undefined,
      readSince: never,
      provenSince: never,
      proofDueFrom: never,
      metId: undefined,
      proofs: 0,
      conflictSince: never,
      conflictDueFrom: never,
      restorableFrom: never,
      restoredSince: undefined,
      delivery: undefined,
    }
    this.#all.set(username, user)
    return user
  }

  remove(user: User): void {
    this.#track(user, undefined)
    this.#all.delete(user.username)
  }

  setWanted(user: MutableUser, isWanted: boolean): void {
    user.isWanted = isWanted
    user.conflictSince = never
  }

  setIndexed(user: MutableUser, isIndexed: boolean): void {
    user.isIndexed = isIndexed
  }

  /** The store has this text; `record` is its content, or the remembered record instead. */
  setRead(user: MutableUser, text: string | undefined, record: UserRecord | undefined): void {
    if (text !== user.text) user.textSince = now()
    user.text = text
    if (record !== user.record) this.#takeIn(user, record)
    user.readSince = now()
  }

  /** This process has written the record. */
  setWritten(user: MutableUser, text: string | undefined, record: UserRecord | undefined): void {
    const restores = user.record?.restores ?? 0
    this.#track(user, record)
    user.text = text
    user.textSince = user.readSince = now()
    if (record?.conflictAt === undefined) user.conflictSince = never
    if (record !== undefined && record.restores > restores) {
      user.restoredSince = now()
      user.restorableFrom = now() + restoreWaitMs(record.restores)
      user.proofDueFrom = Math.min(user.proofDueFrom, user.restorableFrom)
    }
  }

  /** Records the proof of a call that was sent then. */
  noteProof(user: MutableUser, sentSince: number, id: number | undefined): void {
    this.#noteProof(user, sentSince, -1)
    user.proofs = id === undefined ? user.proofs + 1 : 1
    if (id !== undefined) user.metId = id
  }

  noteConflict(user: MutableUser): void {
    this.#noteConflict(user, now(), -1)
  }

  /** Makes a proof of the id due. */
  forgetMeeting(user: MutableUser): void {
    user.metId = undefined
  }

  /** @returns whether the delivery is new, and not a moment after the last one */
  noteDelivery(user: MutableUser, id: number): boolean {
    const at = Date.now()
    if (user.delivery?.id === id && Math.abs(at - user.delivery.at) < aMomentMs) return false
    user.delivery = { id, at }
    user.restoredSince = undefined
    user.restorableFrom = never
    this.#noteProof(user, now() - deliveryLagMs, 0)
    return true
  }

  /** The record with the proof of the last delivery. */
  withDelivery({ delivery }: User, record: UserRecord): UserRecord {
    return absorb(record, delivery, deliveryLagMs)
  }

  forgetFormerIds(olderThan: number): void {
    for (const [id, since] of this.#formerIds) if (since < olderThan) this.#formerIds.delete(id)
  }

  /** Takes over another process' record. Its age comes from the wall clock, but is not before the last look. */
  #takeIn(user: MutableUser, record: UserRecord | undefined): void {
    const known = user.record
    this.#track(user, record)
    const { conflictAt, provenAt, restoredAt, restores = 0 } = record ?? {}
    const sinceOf = (at: number) => {
      const ageMs = Date.now() - at
      const estimatedSince = ageMs >= 0 ? now() - ageMs : never
      return known === undefined ? estimatedSince : Math.max(user.readSince, estimatedSince)
    }
    if (provenAt !== undefined && provenAt !== known?.provenAt) this.#noteProof(user, sinceOf(provenAt), 1)
    if (conflictAt === undefined) user.conflictSince = never
    else if (conflictAt !== known?.conflictAt) this.#noteConflict(user, sinceOf(conflictAt), 1)
    if (restoredAt !== known?.restoredAt || restores !== known?.restores) {
      const waitMs = restoreWaitMs(restores)
      const leftMs = restoredAt === undefined ? 0 : restoredAt + waitMs - Date.now()
      user.restorableFrom = now() + Math.min(waitMs, Math.max(0, leftMs))
    }
  }

  /** @param later - 1: another process proved the user, and is to be the first to do so again */
  #noteProof(user: MutableUser, since: number, later: -1 | 0 | 1): void {
    if (since <= user.provenSince) return
    user.provenSince = since
    user.proofDueFrom = this.#oneIntervalAfter(since, later)
  }

  #noteConflict(user: MutableUser, since: number, later: -1 | 1): void {
    user.conflictSince = since
    user.conflictDueFrom = this.#oneIntervalAfter(since, later)
  }

  #oneIntervalAfter(since: number, later: number): number {
    return since + this.#sweepIntervalMs * (1 + (later * Math.random()) / 15)
  }

  #track(user: MutableUser, record: UserRecord | undefined): void {
    const before = user.record?.id
    user.record = record
    if (before !== record?.id && before !== undefined) {
      if (this.#byId.get(before) === user) this.#byId.delete(before)
      this.#formerIds.set(before, now())
    }
    if (record?.id !== undefined) this.#byId.set(record.id, user)
  }
}
