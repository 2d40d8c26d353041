/** Makes one call of a chain: stores before what it might bring about, and afterwards what came of it. */
import { InvalidRequestError } from '../errors.js'
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
import { markStale } from './chunk.js'
import type { Circuit } from './circuit.js'
import { type Classified, classify, type Trouble } from './classify.js'
import { areInEachOthersWay, hasSurplus } from './configuration.js'
import { type Call, decide, type Facts, type Learnt, type Step } from './decide.js'
import type { Gate } from './gate.js'
import type { KeeperClient, KeeperGap } from './keeper-types.js'
import type { RecordStore } from './record-store.js'
import { Overtaken, type StoreAccess, StoreFailure } from './store-access.js'
import type { Tenure } from './tenure.js'
import { probesPerIdProof } from './timing.js'
import { slotOf, type UserRecord } from './user-record.js'

export interface CallerParts {
  readonly client: KeeperClient
  readonly existing: 'replace' | 'report'
  readonly store: StoreAccess
  readonly records: RecordStore
  readonly tenure: Tenure
  readonly gate: Gate
  readonly circuit: Circuit
  readonly onGap: (gap: KeeperGap) => void
  /** A subscription was found to have ended. */
  readonly onEnd: (username: string) => void
  /** An id is no longer in use. */
  readonly onIdEnded: (id: number) => void
  /** A subscription whose id was never known is no longer there. */
  readonly onUnknownEnded: () => void
}

/** What a chain of calls is made with. */
export interface Chain {
  readonly record: UserRecord
  /** Monotonic. */
  readonly startedSince: number
  readonly wantsProof: boolean
  /** Whether an end was found since this one was last seen: this subscription may have ended with that one. */
  readonly suspectsEnd: boolean
  readonly learnt: Learnt
  readonly done: { created: boolean; restored: boolean }
}

/**
 * How a chain of calls ends. `settled`: all is as it should be. `conflict`: another subscription is in the way.
 * `aborted`: another process is at work. `waiting`: the rest has to wait, until a monotonic time or for the store.
 * `held`: an outage keeps all calls back. `failed`: a call did. `broken`: the keeper itself has thrown.
 */
export type ChainEnd =
  | { readonly end: 'settled' }
  | { readonly end: 'conflict' }
  | { readonly end: 'aborted' }
  | { readonly end: 'waiting'; readonly until: number | 'store'; readonly error?: unknown }
  | { readonly end: 'held' | 'broken'; readonly error: unknown }
  | { readonly end: 'failed'; readonly error: unknown; readonly trouble: Trouble }

export class Caller {
  readonly #parts: CallerParts

  constructor(parts: CallerParts) {
    this.#parts = parts
  }

  /** The facts of this moment; none while this process may not work. */
  facts({ record, wantsProof, suspectsEnd }: Chain): Facts | undefined {
    if (!this.#isCurrent(record)) return undefined
    const { tenure, existing, records, store } = this.#parts
    const { generation } = tenure
    if (generation === undefined || tenure.standing !== 'at-work') return undefined
    return {
      now: performance.now(),
      target: generation.target,
      generation: generation.generation,
      hasParameters: tenure.configuration.names.length > 0,
      isInTheWay: (target) => {
        const other = records.head.targets[target]
        return (
          target !== generation.target && !!other && areInEachOthersWay(tenure.configuration.target, other)
        )
      },
      hasSurplus: (each) => each < generation.generation && hasSurplus(generation, each),
      isStoreWorking: store.isWorking,
      mayUpdate: tenure.mayUpdate,
      replacesExisting: existing === 'replace',
      wantsProof,
      suspectsEnd,
      wantsProofById: record.probes % probesPerIdProof === probesPerIdProof - 1,
    }
  }

  /**
   * Stores what the call might bring about, waits until a request may be sent, and sends it if it is still the right one.
   *
   * @returns how the chain ends, if this call is its last
   * @throws StoreFailure, Overtaken
   */
  async call(chain: Chain, call: Call, facts: Facts): Promise<ChainEnd | undefined> {
    const { record, learnt } = chain
    const { circuit, gate, records, tenure } = this.#parts
    if (call.kind === 'create') {
      const problem = usernameProblem(record.username)
      if (problem !== undefined)
        return failed({ kind: 'INVALID', error: unsendable(problem), retryAfterMs: undefined })
    }
    if (circuit.outage && performance.now() < circuit.nextCallFrom)
      return { end: 'held', error: circuit.outage.error }

    const storage = intentStorage(record, call, facts)
    prepare(record, call, facts)
    let isSent = false
    try {
      let isNoted = storage === 'read-back'
      if (isNoted) await records.save(records.place(record))
      if (storage === 'written') isNoted = await this.#save(record)
      if (!tenure.mayCall && (await tenure.enter()) !== 'at-work') throw new Overtaken()
      if (!(await gate.enter(record.username))) return { end: 'held', error: circuit.outage?.error }
      try {
        // Meanwhile the roster may have brought the user back, or the store may have begun to fail.
        const present = this.facts(chain)
        if (present === undefined) return { end: 'aborted' }
        if (!tenure.mayCall || !isThatCall(decide(record, learnt, present), call)) return undefined
        isSent = true
        return await this.#carryOut(chain, call, { facts: present, isNoted })
      } finally {
        gate.leave(record.username)
      }
    } finally {
      if (!isSent) {
        takeBack(record, call)
        markStale(record)
      }
    }
  }

  /** Sends the call, and notes what came of it. */
  async #carryOut(
    chain: Chain,
    call: Call,
    { facts, isNoted }: { facts: Facts; isNoted: boolean },
  ): Promise<ChainEnd | undefined> {
    const { record, learnt } = chain
    const { answer, times, trouble } = await this.#send(record, call)
    const slot = slotOf(record, call.target)
    const idBefore = slot?.id
    const effects = apply(record, call, answer, { learnt, facts, times })
    if (slot && !isNoted) slot.isUnwritten ||= answer.kind === 'created' || isLostCreate(call, answer)
    this.#follow(chain, effects, idBefore)
    if (effects.mustSave) await this.#save(record)
    else markStale(record)
    return trouble && failed(trouble)
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
    // Whoever stands in front of the service may answer 404, too: that says nothing about an outage.
    if (result.answer.kind === 'not-found') circuit.giveBack(record.username)
    else circuit.tell(record.username, result.trouble, answeredSince)
    return { ...result, times: { sentSince, sentAt, answeredSince, answeredAt: Date.now() } }
  }

  async #request(record: UserRecord, call: Call): Promise<Answer> {
    const { client, records, tenure } = this.#parts
    const { values } = tenure.configuration
    if (call.kind === 'unsubscribe') {
      await client.unsubscribe(call.id, once)
      return { kind: 'ok' }
    }
    if (call.kind === 'update') {
      await client.updateSubscriptionParameters(call.id, values, once)
      return { kind: 'ok' }
    }
    const target = records.head.targets[call.target]
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
    const isInUse = this.#isCurrent(record)
    if (isInUse) records.index(record)
    if (isInUse && idBefore !== undefined && !record.slots.some(({ id }) => id === idBefore)) {
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
}

export function failed(trouble: Trouble): ChainEnd {
  return { end: 'failed', error: trouble.error, trouble }
}

function isLostCreate(call: Call, answer: Answer): boolean {
  return call.kind === 'create' && answer.kind === 'lost'
}

function isThatCall(step: Step, call: Call): boolean {
  if (step.kind !== 'call' || step.call.kind !== call.kind || step.call.target !== call.target) return false
  if (step.call.kind === 'create') return call.kind === 'create' && step.call.replaces === call.replaces
  return call.kind !== 'create' && step.call.id === call.id
}

function unsendable(problem: string): InvalidRequestError {
  const message = `The username ${problem}.`
  return new InvalidRequestError(message, { issues: [{ path: ['usernames', 0], message: problem }] })
}

/** The keeper repeats by itself, so that each attempt is counted and passes its limits. */
const once = { retry: false } as const
