/** Reconciles one user: reads the record, then decides and calls until nothing is left to do. */
import { randomUUID } from 'node:crypto'
import { messageOf } from '../../shared/text.js'
import { type Configuration, supersededMessage } from '../memory/configuration.js'
import { KeyFailure, StoreFailure } from '../memory/keeper-store.js'
import { Collision, type User, type Users } from '../memory/users.js'
import type { Reporter } from '../reporter.js'
import { apply } from '../rules/apply.js'
import { type Call, decide, type Facts, type Learnt } from '../rules/decide.js'
import { assumeEffect, newRecord, type UserRecord, union } from '../rules/record.js'
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
import type { KeeperClient } from '../types.js'
import { type CallResult, type Outcome, type Reconciled, sendCall } from './call.js'
import type { CircuitBreaker, Limiter, Routes } from './outage-and-limits.js'

/** The most calls in one reconciliation: the service contradicts itself if more are needed. */
const maxCalls = 8
/** If this many first creates are answered 409, a store without a configuration was emptied. */
const conflictsOfEmptiedStore = 10
/** One proof in this many is an update; the others are creates. */
const proofsPerId = 4

/** A reconciliation on its way. */
interface Visit {
  readonly user: User
  /** Proofs since then are enough; monotonic. */
  readonly provenFrom: number
  /** What is known of the user, without a claim; `user.record` is what the store holds, with the claim. */
  record: UserRecord
  /** Whether the store had no record. */
  isNew: boolean
  learnt: Learnt
  /** The 404 behind `learnt.missing`. */
  notFound?: unknown
  isCreated: boolean
  isRestored: boolean
}

export interface ReconcilerParts {
  readonly client: KeeperClient
  readonly existing: 'replace' | 'report'
  readonly sweepIntervalMs: number
  readonly users: Users
  readonly configuration: Configuration
  readonly routes: Routes
  readonly circuit: CircuitBreaker
  readonly limiter: Limiter
  readonly reporter: Reporter
  /** Called when a subscription that had ended was restored. */
  readonly onEnd: () => void
  /** Called when another process has removed a user that this process still wants. */
  readonly onRemoved: () => void
}

export class Reconciler {
  readonly #parts: ReconcilerParts
  #firstConflicts = 0

  constructor(parts: ReconcilerParts) {
    this.#parts = parts
  }

  /**
   * Never rejects. Only one reconciliation of a user at a time.
   *
   * @param provenFrom - proofs since then are enough; monotonic
   */
  async reconcile(user: User, provenFrom: number): Promise<Reconciled> {
    const { configuration, routes } = this.#parts
    const record = newRecord(user.username, configuration.spec, Date.now())
    const found = { isNew: false, isCreated: false, isRestored: false }
    const visit: Visit = { user, provenFrom, record, learnt: {}, ...found }
    const outcome = await this.#visit(visit).catch((error: unknown) => this.#outcomeOf(error))
    routes.leave(user.username)
    return { outcome, isCreated: visit.isCreated, isRestored: visit.isRestored }
  }

  #outcomeOf(error: unknown): Outcome {
    if (error instanceof Collision) return { kind: 'claimed', againMs: 1_000, error }
    if (error instanceof KeyFailure) return { kind: 'failed', failure: { kind: 'STORE', error } }
    if (error instanceof StoreFailure) return { kind: 'held', againMs: 0, error }
    return { kind: 'failed', againMs: this.#parts.sweepIntervalMs, failure: { kind: 'BUG', error } }
  }

  async #visit(visit: Visit): Promise<Outcome> {
    const { configuration, onRemoved, users } = this.#parts
    const { user } = visit
    const wasKnown = user.record !== undefined
    const read = await users.read(user)
    visit.isNew = read === undefined
    if (read === undefined && wasKnown && user.isWanted) {
      onRemoved()
      return { kind: 'held', againMs: lookMs + 1_000, error: new Error(removedMessage) }
    }
    if (read !== undefined && read.generation > (configuration.state.generation ?? 0))
      await configuration.look()
    const staleMs = read?.claim === undefined ? 0 : user.textSince + claimStaleMs - now()
    if (staleMs > 0) {
      return { kind: 'claimed', againMs: Math.min(staleMs, claimLookMs), error: new Error(claimedMessage) }
    }
    visit.record = users.withDelivery(user, assumeEffect(read ?? visit.record))
    for (let calls = 0; calls < maxCalls; calls++) {
      const facts = this.#facts(visit)
      if (facts === undefined) return this.#held(visit)
      const step = decide(visit.record, visit.learnt, facts)
      switch (step.kind) {
        case 'forget':
          return this.#forget(user)
        case 'done':
        case 'wait':
        case 'conflict':
        case 'blocked':
          return this.#rest(visit, step.kind, facts)
        default: {
          const outcome = await this.#call(visit, step, facts)
          if (outcome !== undefined) return outcome
        }
      }
    }
    return { kind: 'failed', againMs: minute, failure: { kind: 'SERVICE', error: new Error(endlessMessage) } }
  }

  /** @returns `undefined` if another process has a newer configuration */
  #facts({ provenFrom, user }: Visit): Facts | undefined {
    const { configuration, existing, routes } = this.#parts
    const { generation, isSuperseded, names } = configuration.state
    if (isSuperseded || generation === undefined) return undefined
    return {
      spec: configuration.spec,
      names,
      generation,
      isWanted: user.isWanted,
      wantsProof: user.provenSince < provenFrom || now() >= user.proofDueFrom,
      wantsProofById:
        user.metId !== user.record?.id || user.proofs % proofsPerId === 0 || !routes.isProven('update'),
      mayRestore: now() >= user.restorableFrom,
      isConflictKnown: user.conflictSince >= provenFrom && now() < user.conflictDueFrom,
      mayUpdate: names.length > 0 && routes.mayTry('update'),
      mayUnsubscribe: routes.mayTry('unsubscribe'),
      replacesExisting: existing === 'replace',
      at: Date.now(),
    }
  }

  /** No call is needed. Writes the findings of a stale claim or a delivery. */
  async #rest(
    { record, user }: Visit,
    kind: 'done' | 'wait' | 'conflict' | 'blocked',
    { at, isConflictKnown }: Facts,
  ): Promise<Outcome> {
    const { reporter, sweepIntervalMs, users } = this.#parts
    const { problems } = reporter
    const { username } = user
    if (kind === 'conflict' && !isConflictKnown) await users.write(user, { ...record, conflictAt: at })
    else if (record !== user.record && user.record !== undefined) await users.write(user, record)
    switch (kind) {
      case 'done': {
        // A restored subscription that lasts shows that the receiver works again, also without a delivery.
        const lastedMs = user.provenSince - (user.restoredSince ?? Number.POSITIVE_INFINITY)
        const hasLasted = lastedMs >= Math.max(calmAfterEndMs, sweepIntervalMs)
        problems.removeUser(username, hasLasted ? undefined : ['CONFLICT', 'ROSTER', 'SERVICE'])
        return { kind, againMs: user.proofDueFrom - now() }
      }
      case 'wait':
        return { kind: 'waiting', againMs: user.restorableFrom - now(), error: new Error(waitingMessage) }
      case 'conflict':
        problems.addUser('CONFLICT', username, (count) => conflictMessage(count, username))
        return { kind, againMs: user.conflictDueFrom - now(), error: new Error(obstacleMessage) }
      default: {
        const failure = { kind: 'REFUSED', error: new Error(blockedMessage) } as const
        return { kind: 'failed', againMs: Math.min(brokenAnswerMs, sweepIntervalMs), failure }
      }
    }
  }

  /** No call may be made. Clears a claim whose call is not in flight. */
  async #held({ record, user }: Visit, againMs = lookMs): Promise<Outcome> {
    const { circuit, configuration, users } = this.#parts
    const { isSuperseded } = configuration.state
    if (user.record?.claim !== undefined) await users.write(user, record)
    return {
      kind: 'held',
      againMs,
      error: isSuperseded ? new Error(supersededMessage) : circuit.outage?.error,
    }
  }

  async #forget(user: User): Promise<Outcome> {
    const { reporter, users } = this.#parts
    const { username } = user
    await users.remove(user)
    reporter.problems.removeUser(username)
    reporter.log('debug', { event: 'user.removed', username }, 'A user who left the roster was removed')
    return { kind: 'removed', againMs: 0 }
  }

  /** Limiter, claim, call, settle. @returns how the reconciliation ends, or `undefined` if it continues */
  async #call(visit: Visit, call: Call, facts: Facts): Promise<Outcome | undefined> {
    const { circuit, client, configuration, limiter, routes, users } = this.#parts
    const { user } = visit
    const { username } = user
    if (call.kind === 'unsubscribe' && !routes.enter(username)) {
      return { kind: 'held', againMs: 1_000, error: new Error(testedMessage) }
    }
    if (!(await limiter.enter(username))) {
      return this.#held(visit, Math.max(0, (circuit.outage?.nextTestFrom ?? 0) - now()))
    }
    try {
      await this.#claim(visit, call, facts)
      const { generation, isSuperseded, values } = configuration.state
      if (isSuperseded || generation !== facts.generation || user.isWanted !== facts.isWanted)
        return undefined
      const sent = { since: now(), at: Date.now() }
      const result = await sendCall(client, call, username, values)
      if (result.kind === 'refused' || result.kind === 'lost') circuit.failed(username, result.failure)
      else circuit.succeeded(username)
      // The claim stays: nothing may be sent for this user until the call can no longer take effect.
      if (result.kind === 'lost') return { kind: 'failed', againMs: claimLookMs, failure: result.failure }
      this.#settle(visit, call, result, facts, sent)
      visit.record = await users.write(user, visit.record)
      return this.#failureOf(username, call, result)
    } finally {
      limiter.leave(username)
    }
  }

  /** Writes the claim, or writes it again, right before the call. */
  async #claim({ record, user }: Visit, call: Call, { names }: Facts): Promise<void> {
    const { configuration, users } = this.#parts
    let claimedSince: number
    let claimedAt: number
    do {
      // An older configuration must replace nothing.
      if (call.kind === 'recreate') await configuration.look()
      claimedSince = now()
      claimedAt = Date.now()
      await users.write(user, {
        ...record,
        ...('spec' in call && { spec: call.spec }),
        ...(call.kind !== 'unsubscribe' && { names: union(record.names, names) }),
        claim: { nonce: randomUUID(), call: call.kind },
      })
      // The monotonic clock may stop while the machine sleeps.
    } while (now() - claimedSince > claimFreshMs || Date.now() - claimedAt > claimFreshMs)
  }

  /** Applies the answer to the record, and reports its findings. */
  #settle(
    visit: Visit,
    call: Call,
    result: Exclude<CallResult, { kind: 'lost' }>,
    facts: Facts,
    sent: { readonly since: number; readonly at: number },
  ): void {
    const { configuration, onEnd, reporter, routes, users } = this.#parts
    const { learnt, record: before, user } = visit
    const { username } = user
    const route = 'spec' in call ? undefined : call.kind
    if (result.kind === 'no-route' && route !== undefined) routes.refute(route, result.error)
    if (result.kind !== 'answered') return
    const { answer, error } = result
    if (route !== undefined && answer.kind === 'ok') routes.prove(route)
    const isRouteProven = route !== undefined && routes.isProven(route)
    const times = { sentAt: sent.at, answeredAt: Date.now(), isRouteProven }
    const { gap, isCreated, learnt: news, proven, record } = apply(before, call, answer, facts, times)
    // The subscription that a 404 did not find exists.
    if (learnt.missing !== undefined && proven === 'existence') routes.refute(learnt.missing, visit.notFound)
    if (proven !== undefined) users.noteProof(user, sent.since, proven === 'id' ? record.id : undefined)
    const isSettled = answer.kind === 'created' || answer.kind === 'ok'
    visit.record = record
    visit.learnt = isSettled ? {} : { ...learnt, ...news }
    if (answer.kind === 'not-found') visit.notFound = error
    if (isCreated) {
      visit.isCreated = true
      const fields = { event: 'subscription.created', username, subscriptionId: record.id }
      reporter.log('debug', fields, 'A user was subscribed')
    }
    if (gap !== undefined) {
      visit.isRestored = true
      reporter.reportGap(gap)
    }
    if (gap?.cause === 'ended') {
      reporter.problems.addUser('RECEIVER_SUSPECTED', username, endMessage)
      onEnd()
    }
    const isFirst = visit.isNew && call.kind === 'create' && answer.kind === 'conflict'
    if (!isFirst || !configuration.state.wasMissing) return
    if (++this.#firstConflicts > conflictsOfEmptiedStore)
      reporter.problems.reportOnce('STORE', emptiedMessage, 'emptied')
  }

  /** @returns nothing if the reconciliation can continue */
  #failureOf(username: string, { kind }: Call, result: CallResult): Outcome | undefined {
    const { reporter, sweepIntervalMs } = this.#parts
    if (result.kind === 'answered' && result.answer.kind === 'unreadable' && kind === 'recreate') {
      // Each further attempt would leave another subscription, or end the previous one.
      const { error } = result
      const message = `${unreadableMessage} The last answer: ${messageOf(error)}`
      reporter.problems.addUser('SERVICE', username, () => message, error)
      return { kind: 'failed', againMs: brokenAnswerMs, failure: { kind: 'SERVICE', error } }
    }
    if (result.kind !== 'refused') return undefined
    const { failure } = result
    if (failure.kind !== 'INVALID') return { kind: 'failed', failure }
    const message = (count: number) => invalidMessage(count, username, failure.error)
    reporter.problems.addUser('ROSTER', username, message, failure.error)
    return { kind: 'failed', againMs: sweepIntervalMs, failure }
  }
}

const removedMessage = 'Another process has removed this user: the roster is read again.'
const claimedMessage =
  'Another process is working on this user, or an earlier request was not answered and may still take effect. ' +
  'Sweep again in two minutes.'
const waitingMessage = 'Restored before, and no delivery has come since: the next restore is tried later.'
const obstacleMessage = 'Another subscription for this user, type and callback URL is in the way.'
const blockedMessage =
  'The subscription cannot be ended: the service has another route to unsubscribe. Set `routes.unsubscribe` of the client.'
const testedMessage = 'The route to unsubscribe is tested with another user first.'
const endlessMessage =
  'The answers of the service contradict each other: it creates subscriptions, and does not find them.'
const unreadableMessage =
  'The service accepts creates, and its answers hold no id that can be read. Each such user is tried again in 15 minutes.'
const emptiedMessage =
  'More than ten users are subscribed already, and the store knows nothing of them: it was probably emptied. ' +
  "Each subscription is replaced once, to learn its id; `existing: 'report'` replaces none."

function conflictMessage(userCount: number, username: string): string {
  const who = userCount === 1 ? username : `${userCount} users`
  return (
    `The service has another subscription for ${who} with this callback URL, whose id the keeper does not know: ` +
    'a joint subscription, one of another environment, or one that this keeper made and lost. Unsubscribe it by its id, ' +
    'which a STRAY names after its next deliveries, or use another callback URL.'
  )
}

/** @param error - the client's error for the last user */
function invalidMessage(userCount: number, username: string, error: unknown): string {
  const who =
    userCount === 1
      ? `${JSON.stringify(username)} cannot be subscribed:`
      : `${userCount} users cannot be subscribed. Of the last one the client says:`
  return `${who} ${messageOf(error)} Correct the roster or the options: until then nothing is sent for these users.`
}

function endMessage(userCount: number): string {
  const found =
    userCount === 1
      ? 'A subscription was found ended and is'
      : `${userCount} subscriptions were found ended and are`
  return (
    `${found} restored. The service ends a subscription after three failed callbacks in a row: the receiver was probably ` +
    'down, slow or refusing. Look at its log, and at the logs of proxies in front of it, since `lastProvenAt` of the ' +
    'gap, which `onGap` gets, or else the line `subscription.restored` in the log.'
  )
}
