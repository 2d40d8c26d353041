/** Reconciles one user: reads the record, and makes one call after the other until nothing is left to do now. */
import { type Answer, type Applied, apply } from './apply.js'
import type { CallResult, Failure } from './call.js'
import { sendCall } from './call.js'
import type { Conclusions } from './conclude.js'
import type { NewestConfiguration } from './configuration.js'
import { type Call, decide, type Facts, type Learnt, nothingLearnt, type Step } from './decide.js'
import type { Incidents } from './incidents.js'
import { type KeeperStore, KeyFailure, StoreUnavailable } from './keeper-store.js'
import type { CircuitBreaker, Limiter } from './limiter.js'
import type { Members } from './members.js'
import {
  newRecord,
  stateOf,
  type UserRecord,
  withDelivery,
  withIntent,
  withoutState,
  withUnknownGeneration,
  withUnknownOutcome,
} from './record.js'
import { type News, RecordChanged, type Records } from './records.js'
import type { Reporter } from './reporter.js'
import type { Roster } from './roster.js'
import {
  claimFreshMs,
  claimLookMs,
  claimStaleMs,
  deliveryLagMs,
  hasPassed,
  type Instant,
  presentInstant,
  probesPerIdProof,
  replacePauseMs,
  restoreWaitMs,
} from './timing.js'
import type { KeeperClient } from './types.js'
import type { User, Users } from './users.js'

/**
 * Why a user is reconciled. `due`: the next proof is due, unless another process has made it. `delivery`: others are to
 * know what a delivery proves. `sweep`: a proof that was sent since then is enough. `test`: is the service back?
 */
export type Purpose =
  | { readonly kind: 'due' | 'delivery' | 'test' }
  | { readonly kind: 'sweep'; readonly provenSince: number }

/**
 * How a reconciliation ends.
 *
 * - `settled`: all is as it should be. `removed`: nothing of the user is left, as it should be.
 * - `conflict`: another subscription is in the way.
 * - `waiting`: the next restore has to wait.
 * - `claimed`: another process is at it, or an earlier call was not answered.
 * - `tried`: another process has just tried, and that ended in a conflict or a failure.
 * - `held`: an outage holds all calls back. `store-failing`: the store does. `superseded`: a newer configuration does.
 * - `failed`: a call did, or the user's key in the store.
 * - `broken`: the keeper itself has thrown.
 */
export type End =
  | { readonly kind: 'settled' | 'removed' | 'conflict' | 'superseded' }
  | { readonly kind: 'waiting'; readonly dueFrom: number }
  | { readonly kind: 'claimed' | 'tried'; readonly dueFrom: number }
  | { readonly kind: 'held' | 'store-failing' | 'broken'; readonly error: unknown }
  /** `notBeforeFrom`: until then the call may take effect; monotonic. */
  | { readonly kind: 'failed'; readonly failure: Failure; readonly notBeforeFrom?: number }

export interface Outcome {
  readonly end: End
  readonly isCreated: boolean
  readonly isRestored: boolean
}

export interface ReconcilerParts {
  readonly client: KeeperClient
  readonly existing: 'replace' | 'report'
  readonly sweepIntervalMs: number
  readonly store: KeeperStore
  readonly users: Users
  readonly newest: NewestConfiguration
  readonly members: Members
  readonly roster: Roster
  readonly records: Records
  readonly circuit: CircuitBreaker
  readonly limiter: Limiter
  readonly incidents: Incidents
  readonly reporter: Reporter
  readonly conclusions: Conclusions
}

/** One reconciliation in progress. */
interface Work {
  readonly user: User
  /** The record as it is to be settled. */
  record: UserRecord
  learnt: Learnt
  readonly wantsProof: boolean
  /** Whether others were found ended since this user was proven. */
  readonly suspectsEnd: boolean
  readonly isTest: boolean
  /** Whether a call of this process, under a claim that it has renewed, may still take effect. */
  isUnsettled: boolean
  /** Whether this reconciliation has written a claim. */
  isClaimed: boolean
  /** Whether there is something to write besides. */
  isChanged: boolean
  /** What it has brought about. */
  readonly done: { isCreated: boolean; isRestored: boolean }
}

export class Reconciler {
  readonly #parts: ReconcilerParts

  constructor(parts: ReconcilerParts) {
    this.#parts = parts
  }

  /** Reconciles a user that is not being reconciled. Never rejects. */
  reconcile(user: User, purpose: Purpose): Promise<Outcome> {
    const done = { isCreated: false, isRestored: false }
    const reconciling = this.#reconcile(user, purpose, done)
      .catch((error: unknown) => endAfter(error))
      .then((end) => {
        this.#parts.conclusions.conclude(user, end)
        return { end, ...done }
      })
      .finally(() => {
        user.reconciling = undefined
      })
    user.reconciling = reconciling
    return reconciling
  }

  async #reconcile(
    user: User,
    purpose: Purpose,
    done: { isCreated: boolean; isRestored: boolean },
  ): Promise<End> {
    const { conclusions, newest, records, store } = this.#parts
    const news = await records.read(user)
    if (news.isProven) conclusions.recover(user)
    const isAhead = () => (user.record?.generation ?? 0) > newest.generation
    // Another process writes the configuration before any record.
    if (isAhead()) await newest.refresh()
    if (newest.isSuperseded) return { kind: 'superseded' }

    const { record: stored } = user
    const claim = stored?.claim
    const isLeft = claim !== undefined && !records.isUnsent(user, claim)
    const isStale = performance.now() - user.textSince >= claimStaleMs
    // A test under a claim of one's own leaves no second outcome unknown.
    const mayRenew = purpose.kind === 'test' && claim?.by === records.by && claim.call === 'create'
    if (isLeft && !isStale && !mayRenew) return claimed(user)
    let record = stored && isLeft ? withUnknownOutcome(stored) : stored
    // The process that left the claim may have taken the name out.
    if (isLeft && claim.call === 'forget') user.isMember = false
    if (record !== undefined && isAhead()) {
      store.reportLoss()
      record = withUnknownGeneration(record)
    }
    if (record === undefined || record.isRemoved) {
      const end = await this.#endOfRemoved(user, record)
      if (end !== undefined) return end
      record = newRecord(user.username, record)
    }
    if (purpose.kind === 'due' && news.isTried) return conclusions.adoptTrial(user, record)
    const delivery = user.proofByDelivery
    if (delivery !== undefined) {
      const stamps = { provenAt: delivery.at - deliveryLagMs, deliveryAt: delivery.at }
      record = withDelivery(record, newest.own.key, stamps)
    }
    const work: Work = {
      user,
      record,
      learnt: nothingLearnt,
      wantsProof: this.#wantsProof(user, purpose, news),
      suspectsEnd: user.provenSince < this.#parts.incidents.lastEndSince,
      isTest: purpose.kind === 'test',
      isUnsettled: isLeft && !isStale,
      isClaimed: false,
      isChanged: false,
      done,
    }
    try {
      return await this.#run(work)
    } catch (error) {
      // What was not written is forgotten.
      this.#parts.users.trackIds(user, work.record, user.record)
      throw error
    }
  }

  /** Of a user who has no record, or a tombstone: how the reconciliation ends, unless the user is to be met anew. */
  async #endOfRemoved(user: User, tombstone: UserRecord | undefined): Promise<End | undefined> {
    const { members, roster } = this.#parts
    if (tombstone === undefined) return undefined
    if (!user.isWanted) {
      // The process that left the tombstone may have died before it could take the name out.
      return (await members.has(user.username)) ? this.#forget(user, tombstone) : { kind: 'removed' }
    }
    // Another process has removed the user meanwhile: only a roster that was asked after that counts.
    if (user.wasMember && roster.readSince < user.textSince) {
      await roster.readAgain()
      return { kind: 'claimed', dueFrom: performance.now() + claimLookMs }
    }
    if (user.isMember) user.isMember = false
    return undefined
  }

  #wantsProof(user: User, purpose: Purpose, { isProven }: News): boolean {
    if (purpose.kind === 'test') return true
    if (purpose.kind === 'delivery') return false
    if (purpose.kind === 'sweep') return user.provenSince < purpose.provenSince
    const { newest, sweepIntervalMs } = this.#parts
    const now = performance.now()
    const id = user.present?.id
    // A store that is older than reality is found out by the first proof of each record, by id.
    const isUnmet = newest.own.names.length > 0 && id !== undefined && id !== user.provenId
    const isProvenByOther = isProven && user.provenSince + sweepIntervalMs > now
    return user.dueFrom <= now && (isUnmet || !isProvenByOther)
  }

  async #run(work: Work): Promise<End> {
    for (;;) {
      const facts = this.#facts(work)
      const step = decide(work.record, work.learnt, facts)
      if (step.kind === 'drop') {
        work.record = withoutState(work.record, step.key)
        work.isChanged = true
      } else if (step.kind === 'call') {
        const end = await this.#call(work, step.call, facts)
        if (end !== undefined) return end
      } else return this.#finish(work, step)
    }
  }

  #facts({ record, user, wantsProof, suspectsEnd, isTest }: Work): Facts {
    const { existing, newest } = this.#parts
    const { spec, key, names } = newest.own
    const replacedMs = Date.now() - (record.replacedAt ?? Number.NEGATIVE_INFINITY)
    return {
      now: performance.now(),
      isWanted: user.isWanted,
      spec,
      key,
      generation: newest.generation,
      names,
      restorableFrom: user.restorableFrom,
      replacesExisting: existing === 'replace',
      mayReplace: replacedMs < 0 || replacedMs > replacePauseMs,
      wantsProof,
      wantsProofById:
        isTest ||
        record.probes % probesPerIdProof === probesPerIdProof - 1 ||
        stateOf(record, key)?.id !== user.provenId,
      // A test leaves no outcome unknown if it goes by id.
      suspectsEnd: suspectsEnd && !isTest,
    }
  }

  /** No call is left to be made now. */
  async #finish(work: Work, step: Exclude<Step, { kind: 'call' | 'drop' }>): Promise<End> {
    const { user, learnt } = work
    if (work.isUnsettled) return this.#leaveClaimed(work)
    if (!user.isWanted && step.kind === 'done') return this.#forget(user, work.record)
    const isProbe = step.kind === 'done' && learnt.isProven && !work.suspectsEnd
    const record = isProbe ? { ...work.record, probes: work.record.probes + 1 } : work.record
    if (work.isClaimed || work.isChanged || this.#hasNews(user, record)) {
      await this.#settle(work, record, step.kind === 'conflict' ? 0 : undefined)
    }
    if (step.kind === 'wait') return { kind: 'waiting', dueFrom: step.untilFrom }
    return { kind: step.kind === 'done' ? 'settled' : 'conflict' }
  }

  /** Whether other processes should know more than how late the last proof was. */
  #hasNews({ record: stored }: User, record: UserRecord): boolean {
    const { newest, sweepIntervalMs } = this.#parts
    if (stored === undefined || stored.isRemoved) return record.subscriptions.length > 0
    const before = stateOf(stored, newest.own.key)
    const present = stateOf(record, newest.own.key)
    return (
      stored.claim !== undefined ||
      stored.restoresSinceDelivery !== record.restoresSinceDelivery ||
      stored.subscriptions.length !== record.subscriptions.length ||
      before?.isGone !== present?.isGone ||
      (present?.provenAt ?? 0) - (before?.provenAt ?? 0) >= sweepIntervalMs / 2
    )
  }

  /**
   * Waits for the limiter, then claims the record, then sends at once: so a claim that others see is never much older
   * than its call.
   *
   * @returns how the reconciliation ends, if this call is its last
   */
  async #call(work: Work, call: Call, facts: Facts): Promise<End | undefined> {
    const { circuit, limiter } = this.#parts
    // An earlier create may still take effect: another create does no harm, nor does an update.
    if (work.isUnsettled && call.kind !== 'create' && call.kind !== 'update') return this.#leaveClaimed(work)
    if (!(await limiter.enter(work.user.username))) {
      if (work.isClaimed) await this.#settle(work, work.record)
      return { kind: 'held', error: circuit.error }
    }
    try {
      return await this.#claimAndSend(work, call, facts)
    } finally {
      limiter.leave()
    }
  }

  async #claimAndSend(work: Work, call: Call, facts: Facts): Promise<End | undefined> {
    const { client, members, newest, records } = this.#parts
    const { user } = work
    const isFirst = (user.record?.subscriptions.length ?? 0) === 0
    // Before the claim: the record of a name that is not among the members is read by nobody. A process that takes the
    // name out meanwhile has written its own claim, and then this one fails.
    if (user.isMember === false || (isFirst && user.isMember === undefined)) {
      await members.enter(user.username)
      user.isMember = true
    }
    const claimedAt = presentInstant()
    const claim = await records.claim(user, withIntent(work.record, call, newest.own), call)
    work.isClaimed = true
    // If the record is a tombstone next time, another process has removed the user since.
    user.wasMember = true
    const isAnew = call.kind === 'recreate' || (call.kind === 'create' && !isRecorded(work.record, call))
    if (isAnew) await newest.refresh()
    if (newest.isSuperseded) {
      await this.#settle(work, work.record)
      return { kind: 'superseded' }
    }
    // Meanwhile the roster, or a rotation, may have changed what is to be done.
    const step = decide(work.record, work.learnt, { ...facts, isWanted: user.isWanted })
    const isStill = isSameCall(step, call) && newest.generation === facts.generation
    if (!isStill || hasPassed(claimFreshMs, claimedAt)) return undefined

    records.useClaim(user, claim)
    const sent = presentInstant()
    const { spec, values } = newest.own
    const target = { username: user.username, spec: stateOf(work.record, call.key) ?? spec, values }
    const result = await sendCall(client, call, target)
    if (result.kind === 'answered') return this.#applyAnswer(work, call, result.answer, { facts, sent })
    return this.#noteFailure(work, result)
  }

  async #applyAnswer(
    work: Work,
    call: Call,
    answer: Answer,
    { facts, sent }: { facts: Facts; sent: Instant },
  ): Promise<End | undefined> {
    const { circuit } = this.#parts
    // A 404 may come from a gateway: it says nothing about the service.
    if (answer.kind !== 'not-found') circuit.succeeded()
    if (work.isUnsettled && answer.kind === 'conflict') return this.#leaveClaimed(work)
    const times = { sentAt: sent.at, answeredAt: Date.now() }
    const applied = apply(work.record, call, answer, { facts, learnt: work.learnt, times })
    this.#noteAnswer(work, { call, answer, sent }, applied)
    work.record = applied.record
    work.learnt = applied.learnt
    return work.isUnsettled && answer.kind !== 'not-found' ? this.#leaveClaimed(work) : undefined
  }

  /** Others learn what was learnt, and still send nothing: an earlier create may take effect after all. */
  async #leaveClaimed({ user, record, isClaimed }: Work): Promise<End> {
    if (isClaimed) await this.#parts.records.keepClaim(user, record)
    return claimed(user)
  }

  /** What this process alone knows, and what is to be reported. */
  #noteAnswer(
    work: Work,
    { call, answer, sent }: { call: Call; answer: Answer; sent: Instant },
    { record, report, isProof }: Applied,
  ): void {
    const { incidents, newest, reporter, users } = this.#parts
    const { user } = work
    const now = performance.now()
    // At once: the first delivery of a new subscription may come before the record is written.
    users.trackIds(user, work.record, record)
    if (isProof) user.provenSince = sent.since
    const { key } = newest.own
    const state = stateOf(record, key)
    // A 409 to a plain create may come from another subscription: only these answers prove the id.
    if (call.key === key && (answer.kind === 'created' || answer.kind === 'ok')) user.provenId = state?.id
    if (state?.isGone && !stateOf(work.record, key)?.isGone) user.goneSince = now
    if (record.restoredAt !== work.record.restoredAt) {
      user.restorableFrom = now + restoreWaitMs(record.restoresSinceDelivery)
    }
    if (report.isCreated) {
      work.done.isCreated = true
      const fields = { username: user.username, subscriptionId: state?.id }
      reporter.log('debug', { event: 'subscription.created', ...fields }, 'A user was subscribed')
    }
    if (report.isRestored) work.done.isRestored = true
    if (report.gap !== undefined) reporter.reportGap(report.gap)
    if (report.end !== undefined) incidents.foundEnd(user.username, report.end === 'first')
  }

  async #noteFailure(work: Work, { kind, failure }: Exclude<CallResult, { kind: 'answered' }>): Promise<End> {
    const { user } = work
    this.#parts.circuit.failed(user.username, failure)
    if (kind === 'refused' && !work.isUnsettled) {
      await this.#settle(work, work.record, user.failures + 1)
      return { kind: 'failed', failure }
    }
    // The claim is left standing: nothing else is sent for this user until the call can no longer take effect.
    user.textSince = performance.now()
    return { kind: 'failed', failure, notBeforeFrom: user.textSince + claimStaleMs }
  }

  /**
   * Takes the claim away, and leaves what was learnt.
   *
   * @param failures - with 0, the user is in conflict; none: nothing is wrong
   */
  async #settle({ user, isUnsettled }: Work, record: UserRecord, failures?: number): Promise<void> {
    const { records } = this.#parts
    if (isUnsettled) return records.keepClaim(user, record)
    const { triedAt: _, failures: __, ...others } = record
    const tried = failures === undefined ? {} : { triedAt: Date.now(), ...(failures > 0 && { failures }) }
    await records.settle(user, { ...others, ...tried })
  }

  /** Nothing of this user can exist any more. */
  async #forget(user: User, record: UserRecord): Promise<End> {
    const { members, records } = this.#parts
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

function isRecorded(record: UserRecord, { key }: Call): boolean {
  return stateOf(record, key)?.id !== undefined
}

function isSameCall(step: Step, call: Call): boolean {
  if (step.kind !== 'call' || step.call.kind !== call.kind || step.call.key !== call.key) return false
  return !('id' in step.call) || !('id' in call) || step.call.id === call.id
}

function endAfter(error: unknown): End {
  if (error instanceof RecordChanged) return { kind: 'claimed', dueFrom: performance.now() + 1_000 }
  if (error instanceof KeyFailure) return { kind: 'failed', failure: { kind: 'STORE', error } }
  if (error instanceof StoreUnavailable) return { kind: 'store-failing', error }
  return { kind: 'broken', error }
}
