/** Reconciles one user: reads the record, and makes one call after the other until nothing is left to do now. */
import { type Answer, type Applied, apply } from './apply.js'
import { type CallResult, type Failure, sendCall } from './call.js'
import { type Call, decide, type Facts, type Learnt, nothingLearnt, type Step } from './decide.js'
import type { Incidents } from './deliveries.js'
import { KeyFailure, StoreUnavailable } from './keeper-store.js'
import type { CircuitBreaker, Limiter } from './limiter.js'
import type { Members } from './members.js'
import {
  differsNotably,
  newRecord,
  probesPerIdProof,
  stateOf,
  type UserRecord,
  withDelivery,
  withIntent,
  withLost,
  withoutState,
  withoutUnsent,
  withUnknownGeneration,
  withUnknownOutcome,
} from './record.js'
import { type News, RecordChanged, type Records, type RecordsParts } from './records.js'
import type { Roster } from './roster.js'
import {
  claimFreshMs,
  claimLookMs,
  claimStaleMs,
  deliveryLagMs,
  hasPassed,
  type Instant,
  presentInstant,
  replacePauseMs,
  restoreWaitMs,
} from './timing.js'
import type { KeeperClient } from './types.js'
import type { Achieved, User } from './users.js'

/**
 * Why a user is reconciled. `due`: the next proof is due, unless another process has made it. `look`: no proof is due, but
 * others are to know what a delivery proves, or may have done something. `sweep`: a proof that was sent since then is
 * enough. `test`: is the service back?
 */
export type Purpose =
  | { readonly kind: 'due' | 'look' | 'test' }
  | { readonly kind: 'sweep'; readonly provenSince: number }

/**
 * How a reconciliation ends.
 *
 * - `settled`: all is as it should be. `removed`: nothing of the user is left, as it should be.
 * - `conflict`: another subscription is in the way.
 * - `waiting`: the next restore has to wait.
 * - `claimed`: another process is at it, or an earlier call was not answered.
 * - `tried`: another process has just tried, and that ended in a conflict or a failure.
 * - `held`: an outage, or a store that fails, holds all calls back. `superseded`: a newer configuration does.
 * - `failed`: a call did, or the user's key in the store, or the keeper itself.
 */
export type End =
  | { readonly kind: 'settled' | 'removed' | 'conflict' | 'tried' | 'superseded' }
  | { readonly kind: 'waiting' | 'claimed'; readonly dueFrom: number }
  | { readonly kind: 'held'; readonly error: unknown }
  /** `notBeforeFrom`: until then the call may take effect; monotonic. */
  | { readonly kind: 'failed'; readonly failure: Failure; readonly notBeforeFrom?: number }

export interface ReconciliationParts extends RecordsParts {
  readonly client: KeeperClient
  readonly existing: 'replace' | 'report'
  readonly sweepIntervalMs: number
  readonly members: Members
  readonly roster: Roster
  readonly records: Records
  readonly circuit: CircuitBreaker
  readonly limiter: Limiter
  readonly incidents: Incidents
}

/** One reconciliation of one user. */
export class Reconciliation {
  readonly achieved: Achieved = { isCreated: false, isRestored: false }
  readonly #parts: ReconciliationParts
  readonly #user: User
  readonly #purpose: Purpose
  /** The record as it is to be settled. */
  #record: UserRecord
  #learnt: Learnt = nothingLearnt
  #wantsProof = false
  /** Whether others were found ended since this user was proven. */
  #suspectsEnd = false
  /** Whether a call of this process, under a claim that it renews for a test, may still take effect. */
  #isUnsettled = false
  #hasClaimed = false
  /** Whether an answer has told something that no record says yet. */
  #hasUnwritten = false

  constructor(parts: ReconciliationParts, user: User, purpose: Purpose) {
    this.#parts = parts
    this.#user = user
    this.#purpose = purpose
    this.#record = user.record ?? newRecord(user.username)
  }

  /** Never rejects. */
  async run(): Promise<End> {
    try {
      return (await this.#prepare()) ?? (await this.#makeCalls())
    } catch (error) {
      // What was not written is forgotten; but if the store has lost the claim, others do not know of the call.
      if (error instanceof RecordChanged && this.#hasUnwritten) this.#user.remember(this.#record)
      this.#parts.users.trackIds(this.#user, this.#record, this.#user.record)
      return endAfter(error)
    }
  }

  /** Reads the record and what it means now. @returns how the reconciliation ends, if nothing is to be called */
  async #prepare(): Promise<End | undefined> {
    const { incidents, members, newest, records, roster, store } = this.#parts
    const user = this.#user
    const { seenSince, username } = user
    const news = await records.read(user)
    const isAhead = () => (user.record?.generation ?? 0) > newest.generation
    // Another process writes the configuration before any record.
    if (isAhead()) await newest.refresh()
    if (newest.isSuperseded) return { kind: 'superseded' }

    const { record: stored } = user
    const claim = stored?.claim
    const isLeft = claim !== undefined && !records.isUnsent(user, claim)
    const isStale = performance.now() - user.textSince >= claimStaleMs
    // A test under a claim of one's own leaves no second outcome unknown.
    const mayRenew = this.#purpose.kind === 'test' && claim?.by === records.by && claim.call === 'create'
    if (isLeft && !isStale && !mayRenew) return claimed(user)
    this.#isUnsettled = isLeft && !isStale
    let record = stored && withoutUnsent(isLeft ? withUnknownOutcome(stored) : stored)
    // The process that left the claim may have taken the name out.
    if (isLeft && claim.call === 'forget') user.isMember = false
    if (stored?.isRemoved) {
      user.isMember = await members.has(username)
      // Another process has taken out a name that the roster had: only a roster that was asked after that counts.
      if (user.isWanted && !user.isMember && roster.heardSince <= user.textSince) {
        await roster.readAgain()
        return { kind: 'claimed', dueFrom: performance.now() + claimLookMs }
      }
    }
    if (record !== undefined && isAhead()) {
      store.reportLoss(seenSince)
      record = withUnknownGeneration(record)
    }
    // An older copy came back.
    if (record !== undefined && record.version <= (user.beforeLoss?.version ?? 0)) {
      record = withUnknownGeneration(record)
    }
    const recalled = record && this.#withLost(record)
    const knowsMore = recalled !== record
    record = recalled
    if (record?.isRemoved && !user.isWanted) {
      // The process that left the tombstone may have died before it could take the name out.
      return user.isMember ? this.#forget(record) : { kind: 'removed' }
    }
    if (record === undefined || record.isRemoved) record = newRecord(username, record)
    // A process that knows more than the one that tried tries it all the same.
    if (this.#purpose.kind === 'due' && news.isTried && !knowsMore) return { kind: 'tried' }
    const delivery = user.proofByDelivery
    if (delivery !== undefined) {
      const stamps = { provenAt: delivery.at - deliveryLagMs, deliveryAt: delivery.at }
      record = withDelivery(record, newest.own.key, stamps)
    }
    this.#record = record
    this.#wantsProof = this.#isProofDue(news)
    this.#suspectsEnd = user.provenSince < incidents.lastEndSince
    return undefined
  }

  /** With what a lost store knew. Nothing proves an id where there are no parameters: then it can only be ended. */
  #withLost(record: UserRecord): UserRecord {
    const { beforeLoss, isWanted } = this.#user
    if (beforeLoss === undefined) return record
    const { key, names } = this.#parts.newest.own
    const isProvable = names.length > 0 || !isWanted
    return withLost(record, isProvable ? beforeLoss : withoutState(beforeLoss, key))
  }

  #isProofDue({ isProven }: News): boolean {
    const { sweepIntervalMs } = this.#parts
    const { dueFrom, provenSince } = this.#user
    switch (this.#purpose.kind) {
      case 'test':
        return true
      case 'look':
        return false
      case 'sweep':
        return provenSince < this.#purpose.provenSince
      default: {
        const now = performance.now()
        const isProvenByOther = isProven && provenSince + sweepIntervalMs > now
        return dueFrom <= now && !isProvenByOther
      }
    }
  }

  async #makeCalls(): Promise<End> {
    for (;;) {
      this.#record = this.#withLost(this.#record)
      const facts = this.#facts()
      const step = decide(this.#record, this.#learnt, facts)
      if (step.kind !== 'call') return this.#finish(step)
      const end = await this.#call(step.call, facts)
      if (end !== undefined) return end
    }
  }

  #facts(): Facts {
    const { existing, newest } = this.#parts
    const { spec, key, names } = newest.own
    const { isWanted, provenId, restorableFrom } = this.#user
    const record = this.#record
    const isTest = this.#purpose.kind === 'test'
    const replacedMs = Date.now() - (record.replacedAt ?? Number.NEGATIVE_INFINITY)
    const isIdProbe = record.probes % probesPerIdProof === probesPerIdProof - 1
    const isNew = stateOf(record, key)?.id !== provenId
    return {
      now: performance.now(),
      isWanted,
      spec,
      key,
      generation: newest.generation,
      names,
      restorableFrom,
      replacesExisting: existing === 'replace',
      mayReplace: replacedMs < 0 || replacedMs > replacePauseMs,
      wantsProof: this.#wantsProof,
      // A test leaves no outcome unknown if it goes by id. What has probably ended is restored by a create, in one call.
      wantsProofById: isTest || (!this.#suspectsEnd && (isIdProbe || isNew)),
    }
  }

  /** No call is left to be made now. */
  async #finish(step: Exclude<Step, { kind: 'call' }>): Promise<End> {
    const { newest, sweepIntervalMs } = this.#parts
    const user = this.#user
    if (this.#isUnsettled) return this.#leaveClaimed()
    if (!user.isWanted && step.kind === 'done') return this.#forget(this.#record)
    if (step.kind === 'done' && this.#learnt.isProven && !this.#suspectsEnd) {
      this.#record = { ...this.#record, probes: this.#record.probes + 1 }
    }
    if (differsNotably(this.#record, user.record, { key: newest.own.key, provenMs: sweepIntervalMs / 2 })) {
      await this.#settle(step.kind === 'conflict' ? 0 : undefined)
    }
    if (step.kind === 'wait') return { kind: 'waiting', dueFrom: step.untilFrom }
    return { kind: step.kind === 'done' ? 'settled' : 'conflict' }
  }

  /**
   * Waits for the limiter, then claims the record, then sends at once: so a claim that others see is never much older
   * than its call.
   *
   * @returns how the reconciliation ends, if this call is its last
   */
  async #call(call: Call, facts: Facts): Promise<End | undefined> {
    const { circuit, limiter } = this.#parts
    // An earlier create may still take effect: another create does no harm, nor does an update.
    if (this.#isUnsettled && call.kind !== 'create' && call.kind !== 'update') return this.#leaveClaimed()
    if (!(await limiter.enter(this.#user.username))) {
      if (this.#hasClaimed) await this.#settle()
      return { kind: 'held', error: circuit.error }
    }
    try {
      return await this.#claimAndSend(call, facts)
    } finally {
      limiter.leave()
    }
  }

  async #claimAndSend(call: Call, facts: Facts): Promise<End | undefined> {
    const { client, members, newest, records } = this.#parts
    const user = this.#user
    const isFirst = (user.record?.subscriptions.length ?? 0) === 0
    // Before the claim: the record of a name that is not among the members is read by nobody. A process that takes the
    // name out meanwhile has written its own claim, and then this one fails.
    if (user.isMember === false || (isFirst && user.isMember === undefined)) {
      await members.enter(user.username)
      user.isMember = true
    }
    const claimedAt = presentInstant()
    const claim = await records.claim(user, withIntent(this.#record, call, newest.own), call)
    this.#hasClaimed = true
    this.#hasUnwritten = false
    const isUnrecorded = stateOf(this.#record, call.key)?.id === undefined
    if (call.kind === 'recreate' || isUnrecorded) await newest.refresh()
    if (newest.isSuperseded) {
      await this.#settle()
      return { kind: 'superseded' }
    }
    // Meanwhile the roster, or a rotation, may have changed what is to be done.
    const isAsDecided = user.isWanted === facts.isWanted && newest.generation === facts.generation
    if (!isAsDecided || hasPassed(claimFreshMs, claimedAt)) return undefined

    records.useClaim(user, claim)
    const sent = presentInstant()
    const { spec, values } = newest.own
    const target = { username: user.username, spec: stateOf(this.#record, call.key) ?? spec, values }
    const result = await sendCall(client, call, target)
    if (result.kind === 'answered') return this.#takeAnswer(call, result.answer, { facts, sent })
    return this.#takeFailure(result)
  }

  async #takeAnswer(
    call: Call,
    answer: Answer,
    { facts, sent }: { facts: Facts; sent: Instant },
  ): Promise<End | undefined> {
    // A 404 may come from a gateway: it says nothing about the service.
    if (answer.kind !== 'not-found') this.#parts.circuit.succeeded()
    const times = { sentAt: sent.at, answeredAt: Date.now() }
    const applied = apply(this.#record, call, answer, { facts, learnt: this.#learnt, times })
    this.#noteAnswer(call, answer, applied)
    if (applied.isProof) this.#user.provenSince = sent.since
    this.#record = applied.record
    this.#learnt = applied.learnt
    this.#hasUnwritten = true
    return this.#isUnsettled && answer.kind !== 'not-found' ? this.#leaveClaimed() : undefined
  }

  /** What this process alone knows, and what is to be reported. */
  #noteAnswer(call: Call, answer: Answer, { record, report }: Applied): void {
    const { incidents, newest, reporter, users } = this.#parts
    const user = this.#user
    const now = performance.now()
    // At once: the first delivery of a new subscription may come before the record is written.
    users.trackIds(user, this.#record, record)
    const { key } = newest.own
    const state = stateOf(record, key)
    // A 409 to a plain create may come from another subscription: only these answers prove the id.
    if (call.key === key && (answer.kind === 'created' || answer.kind === 'ok')) user.provenId = state?.id
    if (state?.isGone && !stateOf(this.#record, key)?.isGone) user.goneSince = now
    if (record.restoredAt !== this.#record.restoredAt) {
      user.restorableFrom = now + restoreWaitMs(record.restoresSinceDelivery)
    }
    if (report.isCreated) {
      this.achieved.isCreated = true
      const fields = { username: user.username, subscriptionId: state?.id }
      reporter.log('debug', { event: 'subscription.created', ...fields }, 'A user was subscribed')
    }
    if (report.isRestored) this.achieved.isRestored = true
    if (report.gap !== undefined) {
      // The gap of a lost store is the same one.
      user.beforeLoss = undefined
      reporter.reportGap(report.gap)
    }
    if (report.end !== undefined) incidents.foundEnd(user.username, report.end === 'first')
  }

  async #takeFailure({ kind, failure }: Exclude<CallResult, { kind: 'answered' }>): Promise<End> {
    const user = this.#user
    this.#parts.circuit.failed(user.username, failure)
    if (kind === 'refused' && !this.#isUnsettled) {
      await this.#settle(user.failures + 1)
      return { kind: 'failed', failure }
    }
    // The claim is left standing: nothing else is sent for this user until the call can no longer take effect.
    user.textSince = performance.now()
    return { kind: 'failed', failure, notBeforeFrom: user.textSince + claimStaleMs }
  }

  /** Others learn what was learnt, and still send nothing: an earlier create may take effect after all. */
  async #leaveClaimed(): Promise<End> {
    if (this.#hasClaimed) await this.#parts.records.keepClaim(this.#user, this.#record)
    return claimed(this.#user)
  }

  /**
   * Takes the claim away, and leaves what was learnt.
   *
   * @param failures - with 0, the user is in conflict; none: nothing is wrong
   */
  async #settle(failures?: number): Promise<void> {
    const { records } = this.#parts
    if (this.#isUnsettled) return records.keepClaim(this.#user, this.#record)
    const { triedAt: _, failures: __, ...others } = this.#record
    const tried = failures === undefined ? {} : { triedAt: Date.now(), ...(failures > 0 && { failures }) }
    await records.settle(this.#user, { ...others, ...tried })
  }

  /** Nothing of this user can exist any more. */
  async #forget(record: UserRecord): Promise<End> {
    const { members, records } = this.#parts
    const user = this.#user
    const claimedAt = presentInstant()
    await records.claim(user, record, { kind: 'forget', key: '' })
    if (user.isWanted || hasPassed(claimFreshMs, claimedAt)) {
      return { kind: 'claimed', dueFrom: performance.now() }
    }
    await members.remove(user.username)
    await records.bury(user)
    return { kind: 'removed' }
  }
}

function claimed({ textSince }: User): End {
  return { kind: 'claimed', dueFrom: Math.min(performance.now() + claimLookMs, textSince + claimStaleMs) }
}

function endAfter(error: unknown): End {
  if (error instanceof RecordChanged) return { kind: 'claimed', dueFrom: performance.now() + 1_000 }
  if (error instanceof StoreUnavailable) return { kind: 'held', error }
  return { kind: 'failed', failure: { kind: error instanceof KeyFailure ? 'STORE' : 'BUG', error } }
}
