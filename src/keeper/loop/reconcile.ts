/** Reconciles one user: reads the record, decides, makes a call, and begins again. */
import { randomUUID } from 'node:crypto'
import { messageOf } from '../../shared/text.js'
import type { Configuration } from '../memory/configuration.js'
import type { IndexOfNames } from '../memory/index-of-names.js'
import { KeyFailure, StoreFailure } from '../memory/keeper-store.js'
import { Collision, type Records } from '../memory/records.js'
import type { User, Users } from '../memory/users.js'
import type { Reporter } from '../reporter.js'
import { type Answer, type Applied, apply } from '../rules/apply.js'
import { type Call, decide, type Facts, type Learnt } from '../rules/decide.js'
import { newRecord, takeOver, type UserRecord, union } from '../rules/record.js'
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
import { type CallResult, sendCall } from './call.js'
import type { CircuitBreaker, Limiter } from './outage-and-limits.js'
import type { Achieved, Failure, Outcome, Reconciled } from './outcome.js'
import type { Routes } from './routes.js'

export interface ReconcilerParts {
  readonly client: KeeperClient
  readonly existing: 'replace' | 'report'
  readonly sweepIntervalMs: number
  readonly users: Users
  readonly records: Records
  readonly index: IndexOfNames
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

/** The most calls in one reconciliation: the service contradicts itself if more are needed. */
const maxCalls = 8
/** If this many first creates are answered 409, a store without a configuration was emptied. */
const conflictsOfEmptiedStore = 10
/** One proof in this many is an update; the others are creates. */
const proofsPerId = 4

type Writable<T> = { -readonly [Key in keyof T]: T[Key] }

/** A record on its way through one reconciliation. */
interface Progress {
  readonly record: UserRecord
  readonly learnt: Learnt
  /** The 404 behind `learnt.missing`. */
  readonly notFound?: unknown
}

export class Reconciler {
  readonly #parts: ReconcilerParts
  readonly #by = randomUUID().slice(0, 8)
  #nonce = 0
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
    const achieved = { isCreated: false, isRestored: false }
    const outcome = await this.#reconcile(user, provenFrom, achieved).catch(
      (error: unknown): Outcome => this.#outcomeOf(error),
    )
    this.#parts.routes.leave(user.username)
    return { outcome, ...achieved }
  }

  #outcomeOf(error: unknown): Outcome {
    if (error instanceof Collision) return { kind: 'claimed', againMs: 1_000, error }
    if (error instanceof KeyFailure) return { kind: 'failed', failure: { kind: 'STORE', error } }
    if (error instanceof StoreFailure) return { kind: 'held', againMs: 0, error }
    return { kind: 'failed', againMs: this.#parts.sweepIntervalMs, failure: { kind: 'BUG', error } }
  }

  async #reconcile(user: User, provenFrom: number, achieved: Writable<Achieved>): Promise<Outcome> {
    const { configuration, onRemoved, records, users } = this.#parts
    const wasKnown = user.record !== undefined
    const read = await records.read(user)
    if (read === undefined && wasKnown && user.isWanted) {
      onRemoved()
      return { kind: 'held', againMs: lookMs + 1_000, error: new Error(removedMessage) }
    }
    if (read !== undefined && read.generation > (configuration.generation ?? 0)) await configuration.look()
    if (read?.claim !== undefined) {
      const staleMs = user.textSince + claimStaleMs - now()
      if (staleMs > 0) {
        return { kind: 'claimed', againMs: Math.min(staleMs, claimLookMs), error: new Error(claimedMessage) }
      }
    }
    const record = takeOver(read ?? newRecord(user.username, configuration.spec, Date.now()))
    let progress: Progress = { record: users.withDelivery(user, record), learnt: {} }
    for (let calls = 0; calls < maxCalls; calls++) {
      const { record, learnt } = progress
      const facts = this.#facts(user, provenFrom)
      if (facts === undefined) return this.#held(user, record)
      const step = decide(record, learnt, facts)
      switch (step.kind) {
        case 'forget':
          return this.#forget(user)
        case 'done':
        case 'wait':
        case 'conflict':
        case 'blocked':
          return this.#rest(user, record, step.kind, facts)
        default: {
          const next = await this.#call(user, progress, step, facts, achieved)
          if ('kind' in next) return next
          progress = next
        }
      }
    }
    return { kind: 'failed', againMs: minute, failure: { kind: 'SERVICE', error: new Error(endlessMessage) } }
  }

  /** @returns `undefined` if another process has a newer configuration */
  #facts(user: User, provenFrom: number): Facts | undefined {
    const { configuration, existing, routes } = this.#parts
    const { generation, isSuperseded, names, spec } = configuration
    if (isSuperseded || generation === undefined) return undefined
    const { conflictDueFrom, conflictSince, isWanted, metId, proofDueFrom, proofs, provenSince, record } =
      user
    const wantsRouteProof = !routes.isProven('update')
    return {
      spec,
      names,
      generation,
      isWanted,
      wantsProof: provenSince < provenFrom || now() >= proofDueFrom,
      wantsProofById: metId !== record?.id || proofs % proofsPerId === 0 || wantsRouteProof,
      mayRestore: now() >= user.restorableFrom,
      isConflictKnown: conflictSince >= provenFrom && now() < conflictDueFrom,
      mayUpdate: names.length > 0 && routes.mayTry('update'),
      mayUnsubscribe: routes.mayTry('unsubscribe'),
      replacesExisting: existing === 'replace',
      at: Date.now(),
    }
  }

  /** No call is needed. Writes the findings of a stale claim or a delivery. */
  async #rest(
    user: User,
    record: UserRecord,
    kind: 'done' | 'wait' | 'conflict' | 'blocked',
    facts: Facts,
  ): Promise<Outcome> {
    const { records, reporter, sweepIntervalMs, users } = this.#parts
    if (kind === 'conflict' && !facts.isConflictKnown) {
      await records.write(user, { ...record, conflictAt: facts.at })
      users.noteConflict(user)
    } else if (record !== user.record && user.record !== undefined) await records.write(user, record)
    switch (kind) {
      case 'done': {
        // A restored subscription that lasts shows that the receiver works again, also without a delivery.
        const { provenSince, restoredSince = Number.POSITIVE_INFINITY } = user
        const hasLasted = provenSince - restoredSince >= Math.max(calmAfterEndMs, sweepIntervalMs)
        reporter.problems.removeUser(user.username, hasLasted ? undefined : ['CONFLICT', 'ROSTER', 'SERVICE'])
        return { kind, againMs: user.proofDueFrom - now() }
      }
      case 'wait':
        return { kind: 'waiting', againMs: user.restorableFrom - now(), error: new Error(waitingMessage) }
      case 'conflict':
        reporter.problems.addUser('CONFLICT', user.username, (count) => conflictMessage(count, user.username))
        return { kind, againMs: user.conflictDueFrom - now(), error: new Error(obstacleMessage) }
      default: {
        const failure = { kind: 'REFUSED', error: new Error(blockedMessage) } as const
        return { kind: 'failed', againMs: Math.min(brokenAnswerMs, sweepIntervalMs), failure }
      }
    }
  }

  /** No call may be made. Resolves a stale claim. */
  async #held(user: User, record: UserRecord, againMs = lookMs): Promise<Outcome> {
    const { circuit, configuration, records } = this.#parts
    const { isSuperseded } = configuration
    if (user.record?.claim !== undefined && !isSuperseded) await records.write(user, record)
    return { kind: 'held', againMs, error: isSuperseded ? new Error(supersededMessage) : circuit.error }
  }

  async #forget(user: User): Promise<Outcome> {
    const { index, records, reporter, users } = this.#parts
    const { username } = user
    // The name is removed last: if the process stops in between, another one finds the rest.
    await records.remove(user)
    await index.remove(username)
    users.setIndexed(user, false)
    reporter.problems.removeUser(username)
    reporter.log('debug', { event: 'user.removed', username }, 'A user who left the roster was removed')
    return { kind: 'removed', againMs: 0 }
  }

  /** Limiter, claim, call, settle. @returns how to go on, or how the reconciliation ends */
  async #call(
    user: User,
    progress: Progress,
    call: Call,
    facts: Facts,
    achieved: Writable<Achieved>,
  ): Promise<Progress | Outcome> {
    const { circuit, client, configuration, limiter, records, routes } = this.#parts
    const { username } = user
    if (call.kind === 'unsubscribe' && !routes.enter(username)) {
      return { kind: 'held', againMs: 1_000, error: new Error(testedMessage) }
    }
    if (!(await limiter.enter(username))) {
      return this.#held(user, progress.record, Math.max(0, circuit.nextTestFrom - now()))
    }
    try {
      await this.#claim(user, progress.record, call, facts)
      const isOutdated = configuration.isSuperseded || configuration.generation !== facts.generation
      if (isOutdated || user.isWanted !== facts.isWanted) return progress
      const sent = { since: now(), at: Date.now() }
      const result = await sendCall(client, call, { username, values: configuration.values })
      this.#noteResult(user, result)
      // The claim stands: nothing may be sent for this user until the call can no longer take effect.
      if (result.kind === 'lost') return { kind: 'failed', againMs: claimLookMs, failure: result.failure }
      const next = this.#settle(user, progress, call, result, facts, sent, achieved)
      await records.write(user, next.record)
      if (result.kind === 'refused') return this.#refused(user, result.failure)
      const isUnreadable = result.kind === 'answered' && result.answer.kind === 'unreadable'
      if (isUnreadable && call.kind === 'recreate') return this.#unreadable(user, result.error)
      return { ...next, record: user.record ?? next.record }
    } finally {
      limiter.leave(username)
    }
  }

  /** Writes the claim, or writes it again, right before the call. */
  async #claim(user: User, record: UserRecord, call: Call, facts: Facts): Promise<void> {
    const { configuration, index, records, users } = this.#parts
    if (!user.isIndexed) {
      const [entered] = await index.add([user.username])
      if (entered === undefined) throw new KeyFailure(unlistedMessage)
      users.setIndexed(user, true)
    }
    const isCreate = call.kind === 'create' || call.kind === 'recreate'
    let claimedSince: number
    do {
      claimedSince = now()
      await records.write(user, {
        ...record,
        ...(isCreate && { spec: call.spec }),
        ...(call.kind !== 'unsubscribe' && { names: union(record.names, facts.names) }),
        claim: { by: this.#by, nonce: `${this.#by}-${++this.#nonce}`, call: call.kind },
      })
      // An older configuration must replace nothing.
      if (call.kind === 'recreate') await configuration.look()
    } while (now() - claimedSince > claimFreshMs)
  }

  #noteResult({ username }: User, result: CallResult): void {
    const { circuit } = this.#parts
    if (result.kind === 'refused' || result.kind === 'lost') circuit.failed(username, result.failure)
    else circuit.succeeded()
  }

  /** Applies the answer to the record, and reports its findings. */
  #settle(
    user: User,
    { record, learnt, notFound }: Progress,
    call: Call,
    result: Exclude<CallResult, { kind: 'lost' }>,
    facts: Facts,
    sent: { readonly since: number; readonly at: number },
    achieved: Writable<Achieved>,
  ): Progress {
    const { routes, users } = this.#parts
    const route = call.kind === 'update' || call.kind === 'unsubscribe' ? call.kind : undefined
    if (result.kind === 'refused') return { record, learnt }
    if (result.kind === 'no-route') {
      if (route !== undefined) routes.refute(route, result.error)
      return { record, learnt }
    }
    const { answer, error } = result
    if (route !== undefined && answer.kind === 'ok') routes.prove(route)
    const times = { sentAt: sent.at, answeredAt: Date.now() }
    const isRouteProven = route !== undefined && routes.isProven(route)
    const applied = apply(record, call, answer, facts, { ...times, isRouteProven })
    // The subscription that a 404 did not find exists.
    if (learnt.missing !== undefined && applied.proven === 'existence') {
      routes.refute(learnt.missing, notFound)
    }
    if (applied.proven !== undefined) {
      users.noteProof(user, sent.since, applied.proven === 'id' ? applied.record.id : undefined)
    }
    if (applied.isCreated) achieved.isCreated = true
    if (applied.gap !== undefined) achieved.isRestored = true
    this.#report(user, record, applied, answer)
    const isSettled = answer.kind === 'created' || answer.kind === 'ok'
    if (isSettled) return { record: applied.record, learnt: {} }
    return {
      record: applied.record,
      learnt: { ...learnt, ...applied.learnt },
      notFound: answer.kind === 'not-found' ? error : notFound,
    }
  }

  #report(user: User, before: UserRecord, { gap, isCreated, record }: Applied, answer: Answer): void {
    const { configuration, onEnd, reporter } = this.#parts
    const { username } = user
    if (isCreated) {
      const fields = { event: 'subscription.created', username, subscriptionId: record.id }
      reporter.log('debug', fields, 'A user was subscribed')
    }
    if (gap !== undefined) reporter.reportGap(gap)
    if (gap?.cause === 'ended') {
      reporter.problems.addUser('RECEIVER_SUSPECTED', username, endMessage)
      onEnd()
    }
    const isFirst = before.provenAt === undefined && before.id === undefined && !before.isUnsure
    if (!configuration.wasMissing || answer.kind !== 'conflict' || !isFirst) return
    if (++this.#firstConflicts > conflictsOfEmptiedStore) {
      reporter.problems.reportOnce('STORE', emptiedMessage, 'emptied')
    }
  }

  #refused({ username }: User, failure: Failure): Outcome {
    const { reporter, sweepIntervalMs } = this.#parts
    if (failure.kind !== 'INVALID') return { kind: 'failed', failure }
    const message = (count: number) => invalidMessage(count, username, failure.error)
    reporter.problems.addUser('ROSTER', username, message, failure.error)
    return { kind: 'failed', againMs: sweepIntervalMs, failure }
  }

  /** Each further attempt would leave another subscription, or end the previous one. */
  #unreadable({ username }: User, error: unknown): Outcome {
    const message = `${unreadableMessage} The last answer: ${messageOf(error)}`
    this.#parts.reporter.problems.addUser('SERVICE', username, () => message, error)
    return { kind: 'failed', againMs: brokenAnswerMs, failure: { kind: 'SERVICE', error } }
  }
}

const removedMessage = 'Another process has removed this user: the roster is read again.'
const claimedMessage =
  'Another process is working on this user, or an earlier request was not answered and may still take effect. ' +
  'Sweep again in two minutes.'
const supersededMessage =
  'Another process runs a newer configuration: it subscribes this user, and this process sends nothing.'
const waitingMessage = 'Restored before, and no delivery has come since: the next restore is tried later.'
const obstacleMessage = 'Another subscription for this user, type and callback URL is in the way.'
const blockedMessage =
  'The subscription cannot be ended: the service has another route to unsubscribe. Set `routes.unsubscribe` of the client.'
const testedMessage = 'The route to unsubscribe is tested with another user first.'
const endlessMessage =
  'The answers of the service contradict each other: it creates subscriptions, and does not find them.'
const unlistedMessage = 'The name cannot be entered in the index in the store: nothing is sent for this user.'
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
