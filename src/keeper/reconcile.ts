/** Reconciles one user: reads the record, then decides and sends until nothing is left to do. */
import { randomUUID } from 'node:crypto'
import { InvalidRequestError } from '../errors.js'
import { messageOf } from '../shared/text.js'
import type { Configuration } from './configuration.js'
import { StoreFailure } from './keeper-store.js'
import type { Limiter, Obstacle, StopSignal } from './limiter.js'
import type { ResolvedOptions } from './options.js'
import type { Reporter } from './reporter.js'
import { type Failure, isFailure, type KnownRoutes, sendRequest } from './request.js'
import { type Answered, apply } from './rules/apply.js'
import { type Conclusion, decide, type Facts, type Findings, type PlannedRequest } from './rules/decide.js'
import { absorb, assumeEffect, newRecord, restoreLeftMs, type UserRecord, union } from './rules/record.js'
import { brokenAnswerMs, calmAfterEndMs, claimStaleMs, lookMs, minute, now } from './timing.js'
import type { KeeperGap } from './types.js'
import { Collision, type User, type Users } from './users.js'

/** A request is sent within this time after its claim, or the user is claimed again. */
const claimFreshMs = 10_000
/** How often the claim of another process is read. */
const claimLookMs = 10_000
/** The most requests in one reconciliation: the service contradicts itself if more are needed. */
const maxRequests = 8
/** One proof in this many is an update; the others are creates. */
const proofsPerUpdate = 4

/**
 * How a reconciliation ended: nothing is left to do, something failed, or it was `prevented` by another process, a stop, an
 * outage, or a newer configuration.
 */
export interface Ending {
  readonly kind: Conclusion | Failure['kind'] | Obstacle['kind']
  /** Why the user is not in the wanted state. */
  readonly error?: unknown
  /** After which wait the user is due again. Default: a backoff, or the wait that the service named. */
  readonly againMs?: number
  readonly retryAfterMs?: number | undefined
}

export interface Outcome {
  readonly ending: Ending
  /** Whether the user was subscribed for the first time. */
  readonly isCreated: boolean
  /** Not empty if the user was restored. */
  readonly gaps: readonly KeeperGap[]
}

export class Reconciliation {
  /** A proof since this time is enough. */
  readonly #provenSince: number
  /** The record as it is now, without a claim. What the store holds, with a claim, is `user.record`. */
  #record: UserRecord
  #findings: Findings = {}
  /** The error of the last request with an id. */
  #idError: unknown
  #isCreated = false
  readonly #gaps: KeeperGap[] = []
  /** Whether a request has proven the subscription, however long it took. */
  #isProven = false
  /** Whether the record has a claim for which nothing was sent. */
  #isClaimUnused = false

  constructor(
    private readonly options: ResolvedOptions,
    private readonly configuration: Configuration,
    private readonly users: Users,
    private readonly routes: KnownRoutes,
    private readonly limiter: Limiter,
    private readonly reporter: Reporter,
    private readonly user: User,
    private readonly stopSignal: StopSignal,
  ) {
    // In an outage a request must show whether the service works again.
    this.#provenSince = limiter.outage === undefined ? users.provenSince : now()
    this.#record = newRecord(user.username, configuration.spec, Date.now())
  }

  /** Never rejects. Only one reconciliation of a user at a time. */
  async reconcile(): Promise<Outcome> {
    const user = this.user
    const ending = await this.#proceed().catch((error: unknown) => this.#endingOf(error))
    this.routes.end(user.username)
    // Removes a claim without a request, so that no other process waits for it. If the write fails, the claim becomes stale.
    if (this.#isClaimUnused && user.record?.claim !== undefined)
      await this.users.write(user, this.#record).catch(() => {})
    return { ending, isCreated: this.#isCreated, gaps: this.#gaps }
  }

  #endingOf(error: unknown): Ending {
    if (error instanceof Collision) {
      // Random, or processes whose second request waits for the rate would get in each other's way for ever.
      const againMs = (1 + 4 * Math.random()) * 1_000
      return { kind: 'prevented', againMs, error: new Error(claimedMessage) }
    }
    if (error instanceof StoreFailure)
      return this.limiter.obstacle(this.stopSignal) ?? { kind: 'unavailable', error }
    return { kind: 'bug', againMs: this.options.sweepIntervalMs, error }
  }

  async #proceed(): Promise<Ending> {
    const { configuration, user, users } = this
    if (!user.username.isWellFormed())
      return user.isWanted
        ? this.#invalid(new Error(surrogateMessage))
        : this.#conclude('forget', this.#facts())
    const wasKnown = user.record !== undefined
    const read = await users.read(user)
    if (read === undefined && wasKnown && user.isWanted)
      return { kind: 'prevented', againMs: lookMs + 1_000, error: new Error(removedMessage) }
    if (read !== undefined && read.generation > configuration.generation) await configuration.synchronize()
    const untilStaleMs = read?.claim === undefined ? 0 : user.unchangedSince + claimStaleMs - now()
    if (untilStaleMs > 0)
      return {
        kind: 'prevented',
        againMs: Math.min(untilStaleMs, claimLookMs),
        error: new Error(claimedMessage),
      }
    const known = absorb(assumeEffect(read ?? user.removed ?? this.#record), user.delivery)
    // An id that two users have is used for neither, and proves neither subscription.
    const isShared = known.id !== undefined && users.byId.get(known.id) !== user
    this.#record = isShared ? { ...known, id: undefined, idUnsure: true, provenAt: undefined } : known
    for (let requests = 0; requests < maxRequests; requests++) {
      const facts = this.#facts()
      const decision = decide(this.#record, this.#findings, facts)
      if (typeof decision === 'string') return this.#conclude(decision, facts)
      const ending = await this.#send(decision, facts)
      if (ending !== undefined) return ending
    }
    return { kind: 'unavailable', againMs: minute, error: new Error(endlessMessage) }
  }

  #facts(): Facts {
    const { options, routes, user } = this
    const { generation, names, spec } = this.configuration
    const isIdKnown = user.provenId === this.#record.id
    return {
      spec,
      names,
      generation,
      isWanted: user.isWanted,
      wantsProof: !this.#isProven && (user.proofSince < this.#provenSince || now() >= user.proofDueFrom),
      wantsProofById: user.proofs % proofsPerUpdate === 0 || !routes.isConfirmed('update'),
      mayUpdate: names.length > 0 && routes.mayTry('update', isIdKnown),
      mayUnsubscribe: routes.mayTry('unsubscribe'),
      isUnsubscribeConfirmed: routes.isConfirmed('unsubscribe'),
      isIdKnown,
      replacesExisting: options.existing === 'replace',
      at: Date.now(),
    }
  }

  /** No request can or need be sent. Writes what a stale claim or a delivery has changed in the record. */
  async #conclude(kind: Conclusion, { at }: Facts): Promise<Ending> {
    const { user, users } = this
    const { username } = user
    const { log, problems } = this.reporter
    const { sweepIntervalMs } = this.options
    const record = this.#record
    if (kind === 'forget') await users.remove(user)
    else if (kind === 'conflict' && this.#findings.isTaken)
      await users.write(user, { ...record, conflictAt: at })
    else if (record !== user.record && user.record !== undefined) await users.write(user, record)
    switch (kind) {
      case 'forget':
        problems.removeUser(username)
        log('debug', { event: 'user.removed', username }, 'A user was removed')
        return { kind, againMs: 0 }
      case 'done': {
        // A restored subscription that lasts shows that the receiver works again, also without a delivery.
        const { provenAt = at, restoredAt = 0 } = record
        const hasLasted = Math.abs(provenAt - restoredAt) >= calmAfterEndMs(sweepIntervalMs)
        const codes = hasLasted ? undefined : (['CONFLICT', 'REFUSED', 'ROSTER', 'SERVICE'] as const)
        problems.removeUser(username, codes)
        return { kind, againMs: user.proofDueFrom - now() }
      }
      case 'waiting':
        return { kind, againMs: restoreLeftMs(record, at), error: new Error(waitingMessage) }
      case 'conflict':
        problems.begin('CONFLICT', conflictMessage, { username })
        return { kind, againMs: user.proofDueFrom - now(), error: new Error(conflictMessage) }
      case 'blocked': {
        const againMs = Math.min(brokenAnswerMs, sweepIntervalMs)
        return { kind, againMs, error: new Error(blockedMessage) }
      }
    }
  }

  /** Sends a request when it may leave. @returns how the reconciliation ends, or `undefined` if it continues */
  async #send(request: PlannedRequest, facts: Facts): Promise<Ending | undefined> {
    const { limiter, routes, stopSignal, user } = this
    // While this user waited for the test of a route, the record may have changed.
    if ('id' in request && (await routes.begin(request.kind, user.username))) return this.#proceed()
    return limiter.run(stopSignal, () => this.#sendNow(request, facts))
  }

  /** Claim, request, settle. @returns as {@link Reconciliation.#send} */
  async #sendNow(request: PlannedRequest, facts: Facts): Promise<Ending | undefined> {
    const { configuration, limiter, user, users } = this
    const { client } = this.options
    const later = await this.#claim(request, facts)
    if (later !== undefined) return later
    const haveFactsChanged = configuration.generation !== facts.generation || user.isWanted !== facts.isWanted
    if (haveFactsChanged) return undefined
    this.#isClaimUnused = false
    const [sentSince, sentAt] = [now(), Date.now()]
    const { signal } = this.stopSignal.requests
    const result = await sendRequest(client, request, user.username, configuration.values, signal)
    const sent = { request, facts, findings: this.#findings, sentAt, answeredAt: Date.now() }
    const failure = isFailure(result) ? result : this.#settle({ ...sent, reply: result }, sentSince)
    // After an unclear answer the next request shows whether the service works.
    if (failure === undefined && result.kind !== 'unclear') limiter.succeeded()
    // A request that a stop aborted says nothing about the service.
    if (failure !== undefined && !signal.aborted) limiter.failed(failure, user, sentSince)
    // The claim stays: nothing may be sent for this user until the request can no longer take effect.
    if (failure?.isLost) return { ...failure, againMs: claimLookMs }
    this.#record = await users.write(user, this.#record)
    if (result.kind === 'unreadable' && request.kind === 'recreate') return this.#unreadable(result.error)
    return failure?.kind === 'invalid' ? this.#invalid(failure.error) : failure
  }

  /** Writes the claim, or writes it again, right before the request. @returns what prevents the request meanwhile */
  async #claim(request: PlannedRequest, { names }: Facts): Promise<Obstacle | undefined> {
    const record = this.#record
    for (let isFresh = false; !isFresh; ) {
      // An older configuration must replace nothing.
      if (request.kind === 'recreate') await this.configuration.synchronize()
      const [since, at] = [now(), Date.now()]
      await this.users.write(this.user, {
        ...record,
        ...('spec' in request && { spec: request.spec }),
        ...(request.kind !== 'unsubscribe' && { names: union(record.names, names) }),
        claim: { nonce: randomUUID(), call: request.kind },
      })
      this.#isClaimUnused = true
      // The monotonic clock may stop while the machine sleeps.
      isFresh = Math.max(now() - since, Date.now() - at) <= claimFreshMs
    }
    return this.limiter.obstacle(this.stopSignal, 1)
  }

  /** Applies the reply to the record, and reports what it shows. @returns why the user is not in the wanted state */
  #settle(answered: Answered, sentSince: number): Failure | undefined {
    const { reporter, routes, user } = this
    const { username } = user
    const { request, reply } = answered
    const applied = apply(this.#record, answered)
    const { confirms, findings, gap, isCreated, isRefused, proven, record, refutes } = applied
    if (confirms !== undefined) routes.confirm(confirms)
    if ('id' in request) this.#idError = 'error' in reply ? reply.error : undefined
    if (refutes !== undefined) routes.refute(refutes, this.#idError)
    if (proven !== undefined) {
      this.#isProven = true
      this.users.noteProof(user, sentSince, proven === 'id' ? record.id : undefined)
    }
    this.#record = record
    this.#findings = findings
    if (isCreated) {
      this.#isCreated = true
      const fields = { event: 'subscription.created', username, subscriptionId: record.id }
      reporter.log('debug', fields, 'A user was subscribed')
    }
    if (gap !== undefined) {
      this.#gaps.push(gap)
      reporter.reportGap(gap)
      if (gap.cause === 'ended') reporter.problems.begin('RECEIVER_SUSPECTED', endedMessage, { username })
    }
    return isRefused ? { kind: 'refused', error: this.#idError } : undefined
  }

  /** Each further attempt would leave another subscription, or end the previous one. */
  #unreadable(error: unknown): Ending {
    const message = `${unreadableMessage} The last answer: ${messageOf(error)}`
    this.reporter.problems.begin('SERVICE', message, { username: this.user.username, error })
    return { kind: 'unavailable', againMs: brokenAnswerMs, error }
  }

  #invalid(error: unknown): Ending {
    const reason = error instanceof InvalidRequestError ? error.issues[0]?.message : messageOf(error)
    this.reporter.problems.begin('ROSTER', invalidMessage, { username: this.user.username, reason, error })
    return { kind: 'invalid', againMs: this.options.sweepIntervalMs, error }
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
  'The service has another subscription with this callback URL, whose id the keeper does not know: one for several ' +
  'users, one of another environment, or one that this keeper made and lost. Unsubscribe it by its id, the `subscriptionId` ' +
  'of its deliveries, or use another callback URL.'
const surrogateMessage = 'has half a surrogate pair'
const invalidMessage =
  'The client refuses these users. Correct the roster or the options: until then nothing is sent for them.'
const endedMessage =
  'The subscription had ended and is restored. The service ends a subscription after three failed callbacks in a row: the ' +
  'receiver was probably down, slow or refusing, or a readiness probe kept callbacks from it. See its log, and those of ' +
  'proxies before it, since `lastProvenAt` of the gap. Resolved when each user has got a delivery, or their subscription has ' +
  'lasted for an interval.'
