/** Carries out for one user what `decide` says: one call after the other, until there is nothing left to do now. */
import type { Log } from '../logger.js'
import { Caller, type CallerParts, type Chain, type ChainEnd } from './caller.js'
import { type Chunk, markStale } from './chunk.js'
import { isPassing } from './classify.js'
import { decide, nothingLearnt, type Step } from './decide.js'
import { followUp } from './follow-up.js'
import type { Problems } from './problems.js'
import { Overtaken, StoreFailure } from './store-access.js'
import { conflictMessage, invalidMessage } from './telling.js'
import { delay } from './timing.js'
import type { UserRecord } from './user-record.js'

/** How a visit ended, and what it has brought about. */
export type Visit = ChainEnd & {
  readonly created: boolean
  readonly restored: boolean
  /** Whether the user was removed for good. */
  readonly removed: boolean
}

export interface VisitorParts extends CallerParts {
  readonly problems: Problems
  readonly log: Log
  readonly sweepIntervalMs: number
  /** When an end was found last; monotonic. */
  readonly lastEndSince: () => number
}

/** With a second or two in between: more than that is left to the next visit. */
const attemptsPerVisit = 3

export class Visitor {
  readonly #parts: VisitorParts
  readonly #caller: Caller
  /** By username: after the records were read anew, a visit of an old one may still be in flight. */
  readonly #inFlight = new Map<string, Promise<Visit>>()

  constructor(parts: VisitorParts) {
    this.#parts = parts
    this.#caller = new Caller(parts)
  }

  /** The visits in flight. */
  get inFlight(): Promise<unknown> {
    return Promise.all(this.#inFlight.values())
  }

  /** The visit of this user that is in flight, if there is one. */
  inFlightOf({ username }: UserRecord): Promise<Visit> | undefined {
    return this.#inFlight.get(username)
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
    const visit = this.#visit(record, wantsProof, repeats)
      .then((result) => this.#tellOf(record, result))
      .finally(() => this.#inFlight.delete(record.username))
    this.#inFlight.set(record.username, visit)
    return visit
  }

  /** Whether this user is in a trouble, or in one no longer. */
  #tellOf({ username }: UserRecord, visit: Visit): Visit {
    const { problems } = this.#parts
    if (visit.end === 'conflict') problems.addUser('CONFLICT', username, conflictMessage)
    else if (visit.end === 'settled') problems.removeUser('CONFLICT', username)
    if (visit.end === 'failed' && visit.trouble.kind === 'INVALID') {
      const { error } = visit
      problems.addUser('ROSTER', username, (...whom) => invalidMessage(...whom, error), error)
    } else if (visit.end === 'settled' || visit.end === 'conflict') problems.removeUser('ROSTER', username)
    return visit
  }

  async #visit(record: UserRecord, wantsProof: boolean, repeats: boolean): Promise<Visit> {
    const done = { created: false, restored: false }
    for (let attempt = 1; ; attempt++) {
      const suspectsEnd = Math.max(record.provenSince, record.takenSince) < this.#parts.lastEndSince()
      const startedSince = performance.now()
      const chain: Chain = { record, startedSince, wantsProof, suspectsEnd, learnt: nothingLearnt(), done }
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
        const facts = this.#caller.facts(chain)
        if (facts === undefined) return { end: 'aborted' }
        const step = decide(record, chain.learnt, facts)
        if (step.kind === 'forget') {
          record.slots = record.slots.filter((slot) => slot !== step.slot)
          markStale(record)
        } else if (step.kind === 'reread') {
          if (record.chunk === undefined || !(await this.#parts.records.isCurrent(record.chunk))) {
            throw new Overtaken()
          }
          chain.learnt.wasReread = true
        } else if (step.kind === 'call') {
          const end = await this.#caller.call(chain, step.call, facts)
          if (end !== undefined) return end
        } else return endOf(step)
      }
    } catch (error) {
      if (error instanceof StoreFailure) return { end: 'waiting', until: 'store', error }
      if (!(error instanceof Overtaken)) return { end: 'broken', error }
      // A record of an earlier turn says nothing about the present one.
      if (this.#parts.records.users.get(record.username) === record) this.#parts.tenure.lose()
      return { end: 'aborted' }
    }
  }

  async #finish(chain: Chain, end: ChainEnd): Promise<Visit> {
    const { record, done } = chain
    const { records, sweepIntervalMs } = this.#parts
    if (end.end !== 'aborted' && record.isRemoved && record.slots.length === 0) {
      const { chunk } = record
      records.forget(record)
      record.isQuiet = false
      record.dueFrom = Number.POSITIVE_INFINITY
      if (chunk !== undefined) await this.#saveChunkOf(chunk)
      return { end: 'settled', ...done, removed: true }
    }
    Object.assign(record, followUp(chain, end, { now: performance.now(), sweepIntervalMs }))
    this.#log(record, end)
    return { ...end, ...done, removed: false }
  }

  #log({ username, failures }: UserRecord, end: ChainEnd): void {
    const { log } = this.#parts
    if (end.end === 'failed') {
      const message = 'A subscription could not be kept: it will be tried again'
      log('warn', { username, failures, err: end.error }, message)
    } else if (end.end === 'broken') {
      const message = 'A bug of the keeper stopped a visit: report it. The user is tried again in turn'
      log('error', { username, failures, err: end.error }, message)
    }
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

function endOf(step: Extract<Step, { kind: 'wait' | 'conflict' | 'done' }>): ChainEnd {
  if (step.kind === 'wait') return { end: 'waiting', until: step.until }
  return step.kind === 'done' ? { end: 'settled' } : { end: 'conflict' }
}
