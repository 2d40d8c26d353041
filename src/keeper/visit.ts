/** Carries out for one user what `decide` says: one call after the other, until there is nothing left to do now. */
import { InvalidRequestError } from '../errors.js'
import type { Log } from '../logger.js'
import { usernameProblem } from '../subscriptions/create-input.js'
import {
  type Answer,
  apply,
  type CallTimes,
  type Effects,
  intentStorage,
  prepare,
  takeBack,
} from './apply.js'
import type { Circuit } from './circuit.js'
import { type Classified, classify, isPassing, type Trouble } from './classify.js'
import { areInEachOthersWay, hasSurplus } from './configuration.js'
import { type Call, decide, type Facts, type Learnt, nothingLearnt, type Step } from './decide.js'
import type { Gate } from './gate.js'
import type { KeeperClient, KeeperGap } from './keeper-types.js'
import type { RecordStore } from './record-store.js'
import { Overtaken, type StoreAccess, StoreFailure } from './store-access.js'
import type { Tenure } from './tenure.js'
import { delay, probesPerIdProof, retryWaitMs } from './timing.js'
import { type Chunk, slotOf, type UserRecord } from './user-record.js'

/** How a visit ended. */
export interface Visit {
  /**
   * `settled`: all is as it should be. `waiting`: the rest has to wait. `conflict`: another subscription is in the
   * way. `failed`: a call did. `held`: an outage keeps all calls back. `aborted`: another process is at work.
   */
  readonly end: 'settled' | 'waiting' | 'conflict' | 'failed' | 'held' | 'aborted'
  /** When to go on, of `waiting`; monotonic. */
  readonly until?: number
  /** Why the visit did not settle. */
  readonly error?: unknown
  readonly created: boolean
  readonly restored: boolean
  /** Whether the user was removed for good. */
  readonly removed: boolean
}

export interface VisitorParts {
  readonly client: KeeperClient
  readonly existing: 'replace' | 'report'
  readonly store: StoreAccess
  readonly records: RecordStore
  readonly tenure: Tenure
  readonly gate: Gate
  readonly circuit: Circuit
  readonly log: Log
  readonly sweepIntervalMs: number
  readonly onGap: (gap: KeeperGap) => void
  /** When an end was found last; monotonic. */
  readonly lastEndSince: () => number
  /** A subscription was found to have ended. */
  readonly onEnd: (username: string) => void
  /** An id is no longer in use. */
  readonly onIdEnded: (id: number) => void
  /** A subscription whose id was never known is no longer there. */
  readonly onUnknownEnded: () => void
}

/** What a chain of calls is made with. */
interface Chain {
  readonly record: UserRecord
  readonly wantsProof: boolean
  /** Whether an end was found since this one was last seen: this subscription may have ended with that one. */
  readonly suspectsEnd: boolean
  readonly learnt: Learnt
  readonly done: { created: boolean; restored: boolean }
}

/** With a second or two in between: more than that is left to the next visit. */
const attemptsPerVisit = 3

/** A store that fails is asked again after this time. */
const storePauseMs = 10_000

/** A visit that was given up, because this process may not work at the moment, is tried again after this time. */
const abortedPauseMs = 1_000

export class Visitor {
  readonly #parts: VisitorParts
  readonly #busy = new Map<UserRecord, Promise<Visit>>()

  constructor(parts: VisitorParts) {
    this.#parts = parts
  }

  /** The visits under way. */
  get underWay(): Promise<unknown> {
    return Promise.all(this.#busy.values())
  }

  /** The visit of this user that is under way, if there is one. */
  underWayOf(record: UserRecord): Promise<Visit> | undefined {
    return this.#busy.get(record)
  }

  /**
   * Visits a user whom nobody visits at the moment. Never rejects.
   *
   * @param wantsProof - whether to prove that the subscription exists, if nothing else is to be done
   * @param repeats - whether a call that failed is repeated within this visit
   */
  visit(
    record: UserRecord,
    { wantsProof, repeats }: { wantsProof: boolean; repeats: boolean },
  ): Promise<Visit> {
    const visit = this.#visit(record, wantsProof, repeats).finally(() => this.#busy.delete(record))
    this.#busy.set(record, visit)
    return visit
  }

  async #visit(record: UserRecord, wantsProof: boolean, repeats: boolean): Promise<Visit> {
    const done = { created: false, restored: false }
    for (let attempt = 1; ; attempt++) {
      const suspectsEnd = Math.max(record.provenSince, record.takenSince) < this.#parts.lastEndSince()
      const chain: Chain = { record, wantsProof, suspectsEnd, learnt: nothingLearnt(), done }
      const end = await this.#runChain(chain)
      const isAgain = 'trouble' in end && isPassing(end.trouble) && repeats && attempt < attemptsPerVisit
      if (!isAgain) return this.#finish(chain, end)
      await delay(1_000 * attempt)
    }
  }

  /** One chain of calls, each of which follows from what the ones before have taught. */
  async #runChain(chain: Chain): Promise<ChainEnd> {
    const { record } = chain
    try {
      for (;;) {
        const facts = this.#facts(chain)
        if (facts === undefined) return { end: 'aborted' }
        const step = decide(record, chain.learnt, facts)
        if (step.kind === 'forget') {
          record.slots = record.slots.filter((slot) => slot !== step.slot)
          if (record.chunk !== undefined) record.chunk.isStale = true
        } else if (step.kind === 'reread') {
          if (record.chunk === undefined || !(await this.#parts.records.isCurrent(record.chunk))) {
            throw new Overtaken()
          }
          chain.learnt.wasReread = true
        } else if (step.kind === 'call') {
          const end = await this.#call(chain, step.call, facts)
          if (end !== undefined) return end
        } else return endOf(step)
      }
    } catch (error) {
      if (error instanceof StoreFailure) return { end: 'waiting', until: 'store', error }
      if (!(error instanceof Overtaken)) return failed({ kind: 'NAME', error, retryAfterMs: undefined })
      this.#parts.tenure.lose()
      return { end: 'aborted' }
    }
  }

  #facts({ record, wantsProof, suspectsEnd }: Chain): Facts | undefined {
    const { tenure, existing, store } = this.#parts
    const { generation } = tenure
    if (generation === undefined || tenure.standing !== 'at-work') return undefined
    const own = generation.targets[generation.target]
    return {
      now: performance.now(),
      target: generation.target,
      generation: generation.generation,
      hasParameters: tenure.configuration.names.length > 0,
      isInTheWay: (target) => {
        const other = generation.targets[target]
        return target !== generation.target && !!own && !!other && areInEachOthersWay(own, other)
      },
      hasSurplus: (each) => each < generation.generation && hasSurplus(generation, each),
      isStoreWorking: store.isWorking,
      replacesExisting: existing === 'replace',
      wantsProof,
      suspectsEnd,
      wantsProofById: record.probes % probesPerIdProof === probesPerIdProof - 1,
    }
  }

  /** @returns how the chain ends, if this call is its last */
  async #call(chain: Chain, call: Call, facts: Facts): Promise<ChainEnd | undefined> {
    const { record, learnt } = chain
    const { circuit, gate, records, tenure } = this.#parts
    if (call.kind === 'create') {
      const problem = usernameProblem(record.username)
      if (problem !== undefined)
        return failed({ kind: 'NAME', error: unsendable(problem), retryAfterMs: undefined })
    }
    if (circuit.outage && performance.now() < circuit.nextCallAt)
      return { end: 'held', error: circuit.outage.error }

    const storage = intentStorage(record, call, facts)
    let before = prepare(record, call, facts)
    let isInside = false
    let isSent = false
    try {
      let isNoted = storage === 'read-back'
      if (isNoted) await records.save(records.place(record))
      if (storage === 'written') isNoted = await this.#save(record)
      if (!tenure.mayCall && (await tenure.enter()) !== 'at-work') throw new Overtaken()
      if (!(await gate.enter(record.username))) return { end: 'held', error: circuit.outage?.error }
      isInside = true
      try {
        if (!this.#isCurrent(record)) return { end: 'aborted' }
        // Meanwhile the roster may have brought the user back, or the store may have begun to fail.
        takeBack(record, call, before)
        const present = this.#facts(chain)
        if (present === undefined) return { end: 'aborted' }
        if (!tenure.mayCall || !isThatCall(decide(record, learnt, present), call)) return undefined
        before = prepare(record, call, present)
        isSent = true
        const { answer, times, trouble } = await this.#send(record, call)
        const slot = slotOf(record, call.target)
        const idBefore = slot?.id
        const effects = apply(record, call, answer, { learnt, facts: present, times, before })
        if (slot && !isNoted) slot.isUnwritten ||= answer.kind === 'created' || isLostCreate(call, answer)
        this.#follow(chain, effects, idBefore)
        if (effects.mustSave) await this.#save(record)
        else if (record.chunk !== undefined) record.chunk.isStale = true
        return trouble && failed(trouble)
      } finally {
        gate.leave()
      }
    } finally {
      if (!isSent) {
        if (isInside) circuit.giveBack(record.username)
        takeBack(record, call, before)
        if (record.chunk !== undefined) record.chunk.isStale = true
      }
    }
  }

  async #send(record: UserRecord, call: Call): Promise<Classified & { times: CallTimes }> {
    const { circuit } = this.#parts
    const sentSince = performance.now()
    const sentAt = Date.now()
    let result: Classified
    try {
      result = { answer: await this.#request(record, call) }
    } catch (error) {
      result = classify(call, error)
    }
    const answeredSince = performance.now()
    circuit.tell(record.username, result.trouble, answeredSince)
    return { ...result, times: { sentSince, sentAt, answeredSince, answeredAt: Date.now() } }
  }

  async #request(record: UserRecord, call: Call): Promise<Answer> {
    const { client, tenure } = this.#parts
    const { values } = tenure.configuration
    if (call.kind === 'unsubscribe') {
      await client.unsubscribe(call.id, once)
      return { kind: 'ok' }
    }
    if (call.kind === 'update') {
      await client.updateSubscriptionParameters(call.id, values, once)
      return { kind: 'ok' }
    }
    const target = tenure.generation?.targets[call.target]
    if (target === undefined) throw new Overtaken()
    const { types: notificationTypes, callbackUrl } = target
    const input = { ...values, notificationTypes, usernames: [record.username], callbackUrl }
    const result = await client.tryCreateSubscription(
      call.replaces ? { ...input, recreateIfExists: true } : input,
      once,
    )
    return result.created ? { kind: 'created', id: result.subscriptionId } : { kind: 'conflict' }
  }

  /** Tells whom it concerns. */
  #follow({ record, done }: Chain, effects: Effects, idBefore: number | undefined): void {
    const { onEnd, onGap, onIdEnded, records } = this.#parts
    records.index(record)
    if (idBefore !== undefined && !record.slots.some(({ id }) => id === idBefore)) {
      records.unindex(idBefore)
      onIdEnded(idBefore)
    }
    if (effects.replacedUnknown) this.#parts.onUnknownEnded()
    if (effects.created) done.created = true
    if (effects.restored) done.restored = true
    if (effects.gap) onGap(effects.gap)
    if (effects.foundEnd) onEnd(record.username)
  }

  /**
   * A store that fails now learns of it later: the problem is told already.
   *
   * @returns whether the store has it
   */
  async #save(record: UserRecord): Promise<boolean> {
    const { records } = this.#parts
    try {
      await records.save(records.place(record))
      return true
    } catch (error) {
      if (error instanceof StoreFailure) return false
      // A record in use is noted when others take its place.
      if (!this.#isCurrent(record)) records.leftovers.note(record)
      throw error
    }
  }

  /** Whether the record is the one in use, and not of a time before another process was at work. */
  #isCurrent(record: UserRecord): boolean {
    return this.#parts.records.users.get(record.username) === record
  }

  async #finish({ record, done, learnt, suspectsEnd }: Chain, chainEnd: ChainEnd): Promise<Visit> {
    const { records, log, sweepIntervalMs } = this.#parts
    const now = performance.now()
    record.isQuiet = false
    if (chainEnd.end === 'aborted') {
      // The record may stay in use: a new configuration is not in force yet. Whoever waits for it must not try at once.
      record.dueAt = now + abortedPauseMs
      return { end: 'aborted', ...done, removed: false }
    }
    if (record.isRemoved && record.slots.length === 0) {
      const { chunk } = record
      records.forget(record)
      record.dueAt = Number.POSITIVE_INFINITY
      if (chunk !== undefined) await this.#saveChunkOf(chunk)
      return { end: 'settled', ...done, removed: true }
    }
    if (chainEnd.end === 'failed') {
      record.failures++
      record.error = chainEnd.error
      const { kind, retryAfterMs } = chainEnd.trouble
      record.dueAt = now + (kind === 'NAME' ? sweepIntervalMs : retryWaitMs(record.failures, retryAfterMs))
      const { username, failures } = record
      log(
        'warn',
        { username, failures, error: chainEnd.error },
        'A subscription could not be kept: it will be tried again',
      )
      return { end: 'failed', error: chainEnd.error, ...done, removed: false }
    }
    if (chainEnd.end === 'held') {
      record.dueAt = now
      return { end: 'held', error: chainEnd.error, ...done, removed: false }
    }
    record.failures = 0
    record.error = undefined
    record.hasConflict = chainEnd.end === 'conflict'
    if (chainEnd.end === 'waiting') {
      const until = chainEnd.until === 'store' ? now + storePauseMs : chainEnd.until
      record.dueAt = until
      return { end: 'waiting', until, error: chainEnd.error, ...done, removed: false }
    }
    if (chainEnd.end === 'conflict') {
      record.dueAt = now + sweepIntervalMs
      return { end: 'conflict', error: new Error(conflictMessage), ...done, removed: false }
    }
    if (learnt.isProven) {
      if (!suspectsEnd) record.probes++
      record.isQuiet = record.slots.length === 1 && record.slots[0]?.doubt !== 'unanswered'
      record.dueAt = Math.min(now + sweepIntervalMs, nextCheckAt(record, now))
    }
    return { end: 'settled', ...done, removed: false }
  }

  async #saveChunkOf(chunk: Chunk): Promise<void> {
    try {
      await this.#parts.records.save(chunk)
    } catch (error) {
      if (error instanceof Overtaken) this.#parts.tenure.lose()
      else if (!(error instanceof StoreFailure)) throw error
    }
  }
}

/** When something that is not over yet is to be looked at again, sooner than in turn. */
function nextCheckAt(record: UserRecord, now: number): number {
  const times = record.slots.map(({ doubt, settlesAt }) => (doubt === 'unanswered' ? settlesAt : 0))
  times.push(record.restoreAllowedAt)
  return Math.min(...times.map((time) => (time > now ? time : Number.POSITIVE_INFINITY)))
}

function unsendable(problem: string): InvalidRequestError {
  const message = `The username ${problem}.`
  return new InvalidRequestError(message, { issues: [{ path: ['usernames', 0], message: problem }] })
}

const conflictMessage = 'Another subscription for this user, type and callback URL is in the way.'

/** The keeper repeats by itself, so that each attempt is counted and passes its limits. */
const once = { retry: false } as const

type ChainEnd =
  | { readonly end: 'settled' | 'conflict' | 'aborted' }
  | { readonly end: 'waiting'; readonly until: number | 'store'; readonly error?: unknown }
  | { readonly end: 'held'; readonly error: unknown }
  | { readonly end: 'failed'; readonly error: unknown; readonly trouble: Trouble }

function isLostCreate(call: Call, answer: Answer): boolean {
  return call.kind === 'create' && answer.kind === 'lost'
}

function isThatCall(step: Step, call: Call): boolean {
  if (step.kind !== 'call' || step.call.kind !== call.kind || step.call.target !== call.target) return false
  if (step.call.kind === 'create') return call.kind === 'create' && step.call.replaces === call.replaces
  return call.kind !== 'create' && step.call.id === call.id
}

function failed(trouble: Trouble): ChainEnd {
  return { end: 'failed', error: trouble.error, trouble }
}

function endOf(step: Extract<Step, { kind: 'wait' | 'conflict' | 'done' }>): ChainEnd {
  if (step.kind === 'wait') return { end: 'waiting', until: step.until }
  return { end: step.kind === 'done' ? 'settled' : 'conflict' }
}
