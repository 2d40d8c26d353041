/** Reconciles one user: reads the record, then decides and calls until nothing is left to do. */
import { randomUUID } from 'node:crypto'
import { InvalidRequestError } from '../../errors.js'
import { messageOf } from '../../shared/text.js'
import { supersededMessage } from '../memory/configuration.js'
import { KeyFailure, StoreFailure } from '../memory/keeper-store.js'
import { Collision, type Parts, type User } from '../memory/users.js'
import { namesOf } from '../options.js'
import { apply, type Reply } from '../rules/apply.js'
import { decide, type Facts, isCall, type Learnt, type PlannedCall } from '../rules/decide.js'
import { absorb, assumeEffect, newRecord, restoreLeftMs, type UserRecord, union } from '../rules/record.js'
import {
  brokenAnswerMs,
  calmAfterEndMs,
  claimFreshMs,
  claimLookMs,
  claimStaleMs,
  lookMs,
  minute,
  now,
} from '../timing.js'
import type { KeeperGap } from '../types.js'
import { type Failure, isFailure, sendCall } from './call.js'
import type { Run } from './outage-and-limits.js'

/** The most calls in one reconciliation: the service contradicts itself if more are needed. */
const maxCalls = 8
/** One proof in this many is an update; the others are creates. */
const proofsPerId = 4

/**
 * How a reconciliation ended.
 *
 * - `done`: the user is in the wanted state. `removed`: nothing of an unwanted user is left.
 * - `conflict`: another subscription is in the way. `waiting`: the next restore must wait.
 * - `claimed`: another process is working on the user, or a call was not answered.
 * - `prevented`: an outage, the store, a newer configuration or an old roster prevents all calls.
 */
export interface Rest {
  readonly kind: 'done' | 'removed' | 'conflict' | 'waiting' | 'claimed' | 'prevented'
  /** When the user is due again. */
  readonly againMs: number
  /** Why the user is not in the wanted state. */
  readonly error?: unknown
}

/** Without `againMs` a backoff decides. */
export type Ending = Rest | (Failure & { readonly againMs?: number })

/** One reconciliation of one user, and what came of it. */
export class Reconciliation {
  readonly user: User
  /** Whether the user was subscribed for the first time. */
  isCreated = false
  /** Not empty if the user was restored. */
  readonly gaps: KeeperGap[] = []
  readonly #parts: Parts
  readonly #run: Run
  /** Proofs since then are enough; monotonic. */
  readonly #provenSince: number
  /** The record as it is now, without a claim. What the store holds, with a claim, is `user.record`. */
  #record: UserRecord
  #learnt: Learnt = {}
  /** The error of the last call with an id. */
  #idError: unknown
  /** Whether a call has proven the subscription, however long it took. */
  #isProven = false
  /** Whether the record has a claim for which nothing was sent. */
  #isClaimUnused = false

  constructor(parts: Parts, user: User, provenSince: number, run: Run) {
    this.#parts = parts
    this.user = user
    this.#provenSince = provenSince
    this.#run = run
    this.#record = newRecord(user.username, parts.configuration.spec, Date.now())
  }

  /** Never rejects. Only one reconciliation of a user at a time. */
  async reconcile(): Promise<Ending> {
    const { routes, users } = this.#parts
    const { user } = this
    const ending = await this.#proceed().catch((error: unknown) => this.#endingOf(error))
    routes.end(user.username)
    // No other process is to wait for a call that was not made. If that fails, the claim becomes stale.
    if (this.#isClaimUnused && user.record?.claim !== undefined)
      await users.write(user, this.#record).catch(() => {})
    return ending
  }

  #endingOf(error: unknown): Ending {
    if (error instanceof Collision) return { kind: 'claimed', againMs: 1_000, error }
    if (error instanceof KeyFailure) return { kind: 'STORE', error }
    if (error instanceof StoreFailure) return { kind: 'prevented', againMs: 0, error }
    return { kind: 'BUG', againMs: this.#parts.sweepIntervalMs, error }
  }

  async #proceed(): Promise<Ending> {
    const { configuration, schedule, users } = this.#parts
    const { user } = this
    if (!user.username.isWellFormed()) return this.#invalid(new Error(surrogateMessage))
    const wasKnown = user.record !== undefined
    const read = await users.read(user)
    if (read === undefined && wasKnown && user.isWanted) {
      schedule.markRosterDue()
      return { kind: 'prevented', againMs: lookMs + 1_000, error: new Error(removedMessage) }
    }
    if (read !== undefined && read.generation > (configuration.state.generation ?? 0))
      await configuration.synchronize()
    const staleMs = read?.claim === undefined ? 0 : user.unchangedSince + claimStaleMs - now()
    if (staleMs > 0)
      return { kind: 'claimed', againMs: Math.min(staleMs, claimLookMs), error: new Error(claimedMessage) }
    const known = absorb(assumeEffect(read ?? user.removed ?? this.#record), user.delivery)
    // The id of two users is used for neither, and proves neither.
    const isShared = known.id !== undefined && users.byId.get(known.id) !== user
    this.#record = isShared ? { ...known, id: undefined, idUnsure: true, provenAt: undefined } : known
    for (let calls = 0; calls < maxCalls; calls++) {
      const facts = this.#facts()
      if (facts === undefined) return this.#prevented()
      const decision = decide(this.#record, this.#learnt, facts)
      if (decision.kind === 'forget') return this.#forget()
      if (!isCall(decision)) return this.#rest(decision.kind, facts)
      const ending = await this.#call(decision, facts)
      if (ending !== undefined) return ending
    }
    return { kind: 'SERVICE', againMs: minute, error: new Error(endlessMessage) }
  }

  /** @returns `undefined` if another process has a newer configuration */
  #facts(): Facts | undefined {
    const { configuration, existing, routes } = this.#parts
    const { user } = this
    const { generation, isSuperseded } = configuration.state
    if (isSuperseded || generation === undefined) return undefined
    const names = namesOf(configuration.values)
    return {
      spec: configuration.spec,
      names,
      generation,
      isWanted: user.isWanted,
      wantsProof: !this.#isProven && (user.checkedSince < this.#provenSince || now() >= user.checkDueFrom),
      wantsProofById: user.proofs % proofsPerId === 0 || !routes.isProven('update'),
      mayUpdate: names.length > 0 && routes.mayTry('update'),
      mayUnsubscribe: routes.mayTry('unsubscribe'),
      isUnsubscribeProven: routes.isProven('unsubscribe'),
      isIdProven: user.provenId === this.#record.id,
      replacesExisting: existing === 'replace',
      at: Date.now(),
    }
  }

  /** No call is needed. Writes the findings of a stale claim or a delivery. */
  async #rest(kind: 'done' | 'wait' | 'conflict' | 'blocked', { at }: Facts): Promise<Ending> {
    const { problems, sweepIntervalMs, users } = this.#parts
    const { user } = this
    const record = this.#record
    if (kind === 'conflict' && this.#learnt.isTaken) await users.write(user, { ...record, conflictAt: at })
    else if (record !== user.record && user.record !== undefined) await users.write(user, record)
    switch (kind) {
      case 'done': {
        // A restored subscription that lasts shows that the receiver works again, also without a delivery.
        const { provenAt = at, restoredAt = 0 } = record
        const hasLasted = Math.abs(provenAt - restoredAt) >= Math.max(calmAfterEndMs, sweepIntervalMs)
        const codes = hasLasted ? undefined : (['CONFLICT', 'REFUSED', 'ROSTER', 'SERVICE'] as const)
        problems.removeUser(user.username, codes)
        return { kind, againMs: user.checkDueFrom - now() }
      }
      case 'wait':
        return { kind: 'waiting', againMs: restoreLeftMs(record, at), error: new Error(waitingMessage) }
      case 'conflict':
        problems.begin('CONFLICT', conflictMessage, { username: user.username })
        return { kind, againMs: user.checkDueFrom - now(), error: new Error(conflictMessage) }
      case 'blocked': {
        const againMs = Math.min(brokenAnswerMs, sweepIntervalMs)
        return { kind: 'BLOCKED', againMs, error: new Error(blockedMessage) }
      }
    }
  }

  #prevented(againMs = lookMs): Ending {
    const { circuit, configuration } = this.#parts
    const error = configuration.state.isSuperseded ? new Error(supersededMessage) : circuit.outage?.error
    return { kind: 'prevented', againMs, error }
  }

  async #forget(): Promise<Ending> {
    const { problems, reporter, users } = this.#parts
    const { username } = this.user
    await users.remove(this.user)
    problems.removeUser(username)
    reporter.log('debug', { event: 'user.removed', username }, 'A user who left the roster was removed')
    return { kind: 'removed', againMs: 0 }
  }

  /** Limiter, claim, call, settle. @returns how the reconciliation ends, or `undefined` if it continues */
  async #call(call: PlannedCall, facts: Facts): Promise<Ending | undefined> {
    const { circuit, client, configuration, limiter, routes, users } = this.#parts
    const { user } = this
    // Meanwhile the record may have changed.
    if ('id' in call && (await routes.begin(call.kind, user.username))) return this.#proceed()
    if (!(await limiter.enter(user.username, this.#run)))
      return this.#prevented(Math.max(0, (circuit.outage?.nextTestFrom ?? 0) - now()))
    try {
      await this.#claim(call, facts)
      const { generation, isSuperseded } = configuration.state
      const isOutdated = generation !== facts.generation || user.isWanted !== facts.isWanted
      if (isSuperseded || isOutdated || this.#run.isStopped) return undefined
      this.#isClaimUnused = false
      const sent = { since: now(), at: Date.now() }
      const result = await sendCall(client, call, user.username, configuration.values, this.#run.calls.signal)
      const failure = isFailure(result) ? result : this.#settle(call, result, facts, sent)
      // Another call shows whether the service works.
      if (failure === undefined && result.kind !== 'refused') circuit.succeeded()
      // A stop says nothing of the service.
      if (failure !== undefined && !this.#run.calls.signal.aborted)
        circuit.failed(user.username, failure, user.schedule.failures > 0, users.all.size)
      // The claim stays: nothing may be sent for this user until the call can no longer take effect.
      if (failure?.isLost) return { ...failure, againMs: claimLookMs }
      this.#record = await users.write(user, this.#record)
      if (result.kind === 'unreadable' && call.kind === 'recreate') return this.#unreadable(result.error)
      return failure?.kind === 'INVALID' ? this.#invalid(failure.error) : failure
    } finally {
      limiter.leave(user.username)
    }
  }

  /** Writes the claim, or writes it again, right before the call. */
  async #claim(call: PlannedCall, { names }: Facts): Promise<void> {
    const { configuration, users } = this.#parts
    const record = this.#record
    for (let isFresh = false; !isFresh; ) {
      // An older configuration must replace nothing.
      if (call.kind === 'recreate') await configuration.synchronize()
      const [since, at] = [now(), Date.now()]
      await users.write(this.user, {
        ...record,
        ...('spec' in call && { spec: call.spec }),
        ...(call.kind !== 'unsubscribe' && { names: union(record.names, names) }),
        claim: { nonce: randomUUID(), call: call.kind },
      })
      this.#isClaimUnused = true
      // The monotonic clock may stop while the machine sleeps.
      isFresh = Math.max(now() - since, Date.now() - at) <= claimFreshMs
    }
  }

  /** Applies the reply to the record, and reports its findings. @returns why the user is not in the wanted state */
  #settle(
    call: PlannedCall,
    reply: Reply,
    facts: Facts,
    sent: { readonly since: number; readonly at: number },
  ): Failure | undefined {
    const { problems, reporter, routes, users } = this.#parts
    const { user } = this
    const { username } = user
    const times = { sentAt: sent.at, answeredAt: Date.now() }
    const applied = apply(this.#record, { call, reply, ...times, learnt: this.#learnt, facts })
    const { gap, isCreated, isRefused, learnt, proven, proves, record, refutes } = applied
    if (proves !== undefined) routes.prove(proves)
    if ('id' in call) this.#idError = 'error' in reply ? reply.error : undefined
    if (refutes !== undefined) routes.refute(refutes, this.#idError)
    if (proven !== undefined) {
      this.#isProven = true
      users.noteProof(user, sent.since, proven === 'id' ? record.id : undefined)
    }
    this.#record = record
    this.#learnt = learnt
    if (isCreated) {
      this.isCreated = true
      const fields = { event: 'subscription.created', username, subscriptionId: record.id }
      reporter.log('debug', fields, 'A user was subscribed')
    }
    if (gap !== undefined) {
      this.gaps.push(gap)
      reporter.reportGap(gap)
      if (gap.cause === 'ended') problems.begin('RECEIVER_SUSPECTED', endedMessage, { username })
    }
    return isRefused ? { kind: 'REFUSED', error: this.#idError } : undefined
  }

  /** Each further attempt would leave another subscription, or end the previous one. */
  #unreadable(error: unknown): Ending {
    const message = `${unreadableMessage} The last answer: ${messageOf(error)}`
    this.#parts.problems.begin('SERVICE', message, { username: this.user.username, error })
    return { kind: 'SERVICE', againMs: brokenAnswerMs, error }
  }

  #invalid(error: unknown): Ending {
    const { problems, sweepIntervalMs } = this.#parts
    const reason = error instanceof InvalidRequestError ? error.issues[0]?.message : messageOf(error)
    problems.begin('ROSTER', invalidMessage, { username: this.user.username, reason, error })
    return { kind: 'INVALID', againMs: sweepIntervalMs, error }
  }
}

const removedMessage = 'Another process has removed this user: the roster is read again.'
const claimedMessage =
  'Another process works on this user, or a request was not answered and may still take effect. Sweep again in two minutes.'
const waitingMessage = 'Restored before, and no delivery has come since: the next restore is tried later.'
const blockedMessage =
  'The subscription cannot be ended: the service has another route to unsubscribe. Set `routes.unsubscribe` of the client.'
const endlessMessage =
  'The answers of the service contradict each other: it creates subscriptions, and does not find them.'
const unreadableMessage =
  'The service accepts creates, and its answers hold no id that can be read: tried again in 15 minutes.'
const conflictMessage =
  'The service has another subscription with this callback URL, whose id the keeper does not know: a joint subscription, ' +
  'one of another environment, or one that this keeper made and lost. Unsubscribe it by its id, which a STRAY names ' +
  'after its next deliveries, or use another callback URL.'
const surrogateMessage = 'has half a surrogate pair'
const invalidMessage =
  'The client refuses these users. Correct the roster or the options: until then nothing is sent for them.'
const endedMessage =
  'The subscription had ended and is restored. The service ends a subscription after three failed callbacks in a row: the ' +
  'receiver was probably down, slow or refusing, or a readiness probe kept callbacks from it. See its log, and those of proxies ' +
  'before it, since `lastProvenAt` of the gap. Resolved when each user has got a delivery, or their subscription has lasted for an interval.'
