/**
 * Reading and claiming the record of a user. `user.record` is always what the store held when it was last read or
 * written; nothing is written but by `compareAndSet` against that.
 */
import { randomUUID } from 'node:crypto'
import type { NewestConfiguration } from './configuration.js'
import type { Call } from './decide.js'
import type { KeeperStore } from './keeper-store.js'
import {
  type Claim,
  continued,
  follows,
  isThere,
  lineagesOf,
  newRecord,
  parseRecord,
  pastStamp,
  rivalOf,
  type SubscriptionState,
  type UserRecord,
} from './record.js'
import type { Reporter } from './reporter.js'
import { restoreWaitMs, tombstoneMs } from './timing.js'
import type { User, Users } from './users.js'

/** Another process has written the record since this one read it. */
export class RecordChanged extends Error {}

export interface RecordsParts {
  readonly store: KeeperStore
  readonly users: Users
  readonly newest: NewestConfiguration
  readonly reporter: Reporter
}

/** What another process has done for a user since the record was read last. */
export interface News {
  readonly isProven: boolean
  readonly isTried: boolean
}

const noNews: News = { isProven: false, isTried: false }

export class Records {
  /** Names this process in claims. */
  readonly by = randomUUID().slice(0, 8)
  readonly #parts: RecordsParts
  #claims = 0

  constructor(parts: RecordsParts) {
    this.#parts = parts
  }

  /**
   * Reads the record. What the store has lost is written back: nobody deletes a record that is no tombstone.
   *
   * @throws StoreUnavailable, KeyFailure, RecordChanged
   */
  async read(user: User): Promise<News> {
    const known = user.record?.isRemoved ? undefined : user.record
    const { text: knownText } = user
    const { store } = this.#parts
    const reading = { copy: known, isExpected: known !== undefined }
    const { text, value, isDamaged } = await store.read(user.key, (text) => recordOf(user, text), reading)
    // A reading or a writing that began later has overtaken this one.
    if (user.text !== knownText) return noNews
    if (text !== undefined && text === user.text) {
      user.seenSince = performance.now()
      return noNews
    }
    if (known === undefined) return this.#take(user, text, value)
    if (isDamaged || value === undefined) return this.#putBack(user, known, text)
    if (!follows(value, known)) {
      // A claim of another process in an older copy may be of a call that is in flight now.
      const mayPutBack = (value.claim?.by ?? this.by) === this.by
      if (mayPutBack && follows(known, value)) return this.#putBack(user, known, text)
      store.reportLoss(user.seenSince)
      user.remember(known)
    }
    return this.#take(user, text, value)
  }

  /**
   * Writes a claim: from now on only this process sends anything for the user. The claim counts as one under which
   * nothing was sent, until {@link Records.useClaim}.
   *
   * @throws StoreUnavailable, KeyFailure, RecordChanged
   */
  async claim(user: User, record: UserRecord, call: Call | { kind: 'forget'; key: '' }): Promise<Claim> {
    const replacesAt = call.kind === 'recreate' && !call.isOwn ? Date.now() : undefined
    const nonce = `${this.by}-${this.#claims++}`
    const claim = { by: this.by, nonce, call: call.kind, spec: call.key, replacesAt }
    user.unsentClaims ??= new Set()
    user.unsentClaims.add(claim.nonce)
    const isFirst = user.record === undefined || user.record.subscriptions.length === 0
    // Nothing of a user who is forgotten exists: if the process dies now, nobody may ever read the record again.
    const ttlMs = call.kind === 'forget' ? tombstoneMs : undefined
    await this.#write(user, { ...record, claim }, user.text, ttlMs)
    // A store that confirms and forgets holds no claims.
    if (isFirst) await this.#parts.store.verify(user.key)
    return claim
  }

  /** The call under the claim is sent now. */
  useClaim(user: User, { nonce }: Claim): void {
    user.unsentClaims?.delete(nonce)
  }

  /**
   * Writes what was learnt, and leaves the claim standing: an earlier call may still take effect.
   *
   * @throws StoreUnavailable, KeyFailure, RecordChanged
   */
  async keepClaim(user: User, record: UserRecord): Promise<void> {
    const claim = user.record?.claim
    if (claim === undefined) return
    this.useClaim(user, claim)
    await this.#write(user, { ...record, claim }, user.text)
  }

  /** Whether the claim is of this process, and nothing was sent under it. */
  isUnsent(user: User, { nonce }: Claim): boolean {
    return user.unsentClaims?.has(nonce) === true
  }

  /**
   * Writes what was learnt, without a claim.
   *
   * @throws StoreUnavailable, KeyFailure, RecordChanged
   */
  async settle(user: User, record: UserRecord): Promise<void> {
    const { claim: _, ...unclaimed } = { ...record, provenBy: this.by }
    await this.#write(user, unclaimed, user.text)
    user.unsentClaims = undefined
  }

  /** Leaves a tombstone, under a claim. @throws StoreUnavailable, KeyFailure, RecordChanged */
  async bury(user: User): Promise<void> {
    if (this.#parts.store.isForOneProcess) return this.#parts.store.delete(user.key)
    const tombstone = { ...newRecord(user.username, user.record), isRemoved: true as const }
    await this.#write(user, tombstone, user.text, tombstoneMs)
  }

  /** @param expected - what must stand there */
  async #write(user: User, record: UserRecord, expected: string | undefined, ttlMs?: number): Promise<void> {
    const { newest, store, users } = this.#parts
    // A time, so that what is written after a loss is newer than what any process remembers of the time before.
    const version = Math.max((user.record?.version ?? record.version) + 1, Date.now())
    const generation = Math.max(record.generation, newest.generation)
    const next = { ...record, version, generation }
    const text = JSON.stringify(next)
    if (!(await store.compareAndSet(user.key, expected, text, ttlMs))) throw new RecordChanged()
    users.trackIds(user, user.record, next)
    user.setRecord(next, text, newest.own.key)
    this.#compareWithLost(user)
  }

  #take(user: User, text: string | undefined, record: UserRecord | undefined): News {
    const { newest, users } = this.#parts
    const before = user.record
    const now = performance.now()
    users.trackIds(user, before, record)
    const { present, seenSince } = user
    user.setRecord(record, text, newest.own.key)
    this.#compareWithLost(user)
    if (record === undefined) return noNews
    // A delivery saves a proof, and not the look at what becomes of a claim.
    if (record.claim !== undefined) user.isQuiet = false

    const provenAt = user.present?.provenAt
    const isProven = provenAt !== undefined && provenAt !== present?.provenAt
    if (isProven) {
      const ageMs = Date.now() - provenAt
      // Sent since this process looked last. Only the wall clock knows how long ago.
      const bySight =
        before !== undefined && before.claim === undefined ? seenSince : Number.NEGATIVE_INFINITY
      const byClock = ageMs >= 0 ? now - ageMs : Number.NEGATIVE_INFINITY
      user.provenSince = Math.max(user.provenSince, bySight, byClock)
      this.recover(user)
    }
    const { restoredAt, restoresSinceDelivery, triedAt } = record
    if (restoredAt !== before?.restoredAt || restoresSinceDelivery !== before?.restoresSinceDelivery) {
      const waitMs = restoreWaitMs(restoresSinceDelivery)
      const leftMs = restoredAt === undefined ? 0 : restoredAt + waitMs - Date.now()
      user.restorableFrom = now + Math.min(waitMs, Math.max(0, leftMs))
    }
    return { isProven, isTried: triedAt !== undefined && triedAt !== before?.triedAt }
  }

  /** Nothing is wrong with the user any more. */
  recover(user: User): void {
    user.failures = 0
    user.hasConflict = false
    this.#parts.reporter.problems.removeUser(user.username, ['CONFLICT', 'ROSTER'])
    this.#parts.store.resolve(user.key)
  }

  /** What this process knows is no longer there: it is written again. */
  async #putBack(user: User, known: UserRecord, present: string | undefined): Promise<News> {
    const { seenSince } = user
    await this.#write(user, continued(known), present)
    await this.#parts.store.verify(user.key)
    this.#parts.store.reportLoss(seenSince)
    return noNews
  }

  /**
   * Forgets what the lost store said as soon as the new one is certain. Tells the gap, if the process that wrote the
   * record met the user anew: that process cannot know of it.
   */
  #compareWithLost(user: User): void {
    const { beforeLoss, present, record, username } = user
    // An older copy is no news, until a proof is written into it.
    if (beforeLoss === undefined || record === undefined || record.version <= beforeLoss.version) return
    const unmet = beforeLoss.subscriptions.filter((each) => {
      const rival = rivalOf(record, each)
      return rival?.id !== each.id && !isCertain(rival)
    })
    user.beforeLoss = unmet.length > 0 ? { ...beforeLoss, subscriptions: unmet } : undefined
    const before = rivalOf(beforeLoss, this.#parts.newest.own.spec)
    if (before?.id === undefined || !isCertain(present) || before.id === present.id) return
    if (lineagesOf(record).some(({ born }) => born === beforeLoss.born)) return
    const now = Date.now()
    this.#parts.reporter.reportGap({
      username,
      subscriptionId: present.id,
      lastProvenAt: pastStamp(before.provenAt, now),
      restoredAt: Math.max(present.provenAt ?? 0, now),
      cause: 'replaced',
    })
  }
}

function isCertain(
  state: SubscriptionState | undefined,
): state is SubscriptionState & { readonly id: number } {
  return isThere(state) && state.generation > 0
}

/** A record that names another user was not written for this one. */
function recordOf({ username }: User, text: string): UserRecord | undefined {
  const record = parseRecord(text)
  return record?.username === username ? record : undefined
}
