/** Whether it is this process that works on the roster. */
import type { Log } from '../logger.js'
import type { UpdateSubscriptionParametersInput } from '../subscriptions/update-input.js'
import type { Configuration, StoredGeneration } from './configuration.js'
import { GenerationInForce } from './generation-in-force.js'
import { passOn, takeOver } from './handover.js'
import type { Lease } from './lease.js'
import type { Problems } from './problems.js'
import type { RecordStore } from './record-store.js'
import { Overtaken, StoreFailure } from './store-access.js'
import { pastStamp, restoreWaitMs, settlingMs } from './timing.js'
import type { UserRecord } from './user-record.js'

/** `at-work`: this process; `standing-by`: another one; `superseded`: for good; `blind`: the store cannot be read. */
export type Standing = 'at-work' | 'standing-by' | 'superseded' | 'blind'

export interface TenureParts {
  readonly lease: Lease
  readonly records: RecordStore
  readonly problems: Problems
  readonly log: Log
}

/** Somebody else changed the head at the same time: that settles in a few rounds. */
const maxRounds = 10

export class Tenure {
  readonly #parts: TenureParts
  readonly #inForce: GenerationInForce
  #standing: Standing = 'blind'
  #entering: Promise<Standing> | undefined
  #leaving: Promise<void> | undefined
  /** How many chunks the head counted when the records were read last. */
  #loadedChunks: number | undefined

  constructor(parts: TenureParts, configuration: Configuration) {
    this.#parts = parts
    this.#inForce = new GenerationInForce(parts, configuration)
  }

  get standing(): Standing {
    return this.#standing
  }

  /** The configuration in force: what requests are made from. */
  get configuration(): Configuration {
    return this.#inForce.configuration
  }

  /** The generation of that configuration. There is one whenever this process is at work. */
  get generation(): StoredGeneration | undefined {
    return this.#inForce.generation
  }

  /** Whether the values that were asked for last are in force. */
  get isUpToDate(): boolean {
    return this.#inForce.isUpToDate && this.#standing !== 'superseded'
  }

  /**
   * Whether an update may be sent. Without the lease the last holder cannot know whether another process has brought
   * newer parameters, which its own would undo.
   */
  get mayUpdate(): boolean {
    return this.#parts.lease.isHeld
  }

  /**
   * Whether a request may be sent. While the store fails, nobody can take or renew the lease: then the last holder
   * goes on with what needs no store.
   */
  get mayCall(): boolean {
    const { lease } = this.#parts
    return this.#standing === 'at-work' && (lease.isHeld || lease.outlivesStore)
  }

  /** Other values are wanted from now on. Until the store has heard of them, the present ones stay in force. */
  reconfigure(changes: UpdateSubscriptionParametersInput): void {
    this.#inForce.want(changes)
    if (this.#standing !== 'superseded') return
    this.#settle('standing-by')
    this.#parts.problems.end('SUPERSEDED')
  }

  /** Takes the place of the one who works, or renews it. Never rejects. */
  enter(): Promise<Standing> {
    this.#entering ??= this.#alone(async () => {
      await this.#leaving
      return this.#enter()
    })
    return this.#entering
  }

  #alone(operation: () => Promise<Standing>): Promise<Standing> {
    return operation().finally(() => {
      this.#entering = undefined
    })
  }

  /** Another process was at work meanwhile: what was not written is forgotten at the next entry. */
  lose(): void {
    if (this.#standing === 'at-work') this.#standing = 'standing-by'
  }

  /** Writes what is left, says so, and lets another process work. */
  leave(): Promise<void> {
    this.#leaving = this.#leave()
    return this.#leaving
  }

  async #leave(): Promise<void> {
    const { lease, log, records } = this.#parts
    const isForGood = this.#standing === 'superseded'
    const wasAtWork = this.#standing === 'at-work'
    if (wasAtWork) this.#standing = 'standing-by'
    try {
      await this.#close(lease.isHeld && (wasAtWork || isForGood), isForGood)
      if (!wasAtWork && !isForGood) return
      if (isForGood) records.disown()
      await lease.release()
    } catch (error) {
      log(
        'warn',
        { err: error },
        'The store failed while the keeper stopped: the next start checks every subscription',
      )
    }
  }

  /** Writes what is left, and that nothing is. What this process may not write any more is left to the one at work. */
  async #close(mayWrite: boolean, isForGood: boolean): Promise<void> {
    const { records } = this.#parts
    for (let round = 0; round < maxRounds; round++) {
      try {
        if (mayWrite && records.isOwn) await this.#inForce.find()
        if (mayWrite && records.isOwn) {
          await records.saveStale()
          if (await records.close()) return
        } else {
          // Another process may have followed, or have begun anew, since this one looked last.
          await this.#inForce.lookForNewStore()
          const isLost = isForGood || !records.isOwn
          if (isLost) for (const record of records.users.values()) records.leftovers.note(record)
          return await passOn(records)
        }
      } catch (error) {
        if (!(error instanceof Overtaken)) throw error
      }
      await records.head.read()
    }
  }

  async #enter(): Promise<Standing> {
    if (this.#standing === 'superseded') return 'superseded'
    const { lease, records } = this.#parts
    try {
      for (let round = 0; round < maxRounds; round++) {
        try {
          if (!(await this.#inForce.find())) return this.#standAside()
          const wasHeld = lease.isHeld
          if (!(await lease.take())) {
            // Somebody took the turn before its time was over: the store had lost it, with all that this process wrote.
            if (wasHeld && !records.isOwn) this.#inForce.leaveAll()
            if (this.#standing !== 'standing-by' || records.head.present?.chunks !== this.#loadedChunks)
              await this.#look()
            await passOn(records)
            return this.#settle('standing-by')
          }
          if (records.head.present === undefined) await this.#inForce.announceAgain()
          if (!records.isOwn || records.head.present?.isClosed) await this.#open()
          await takeOver(records)
          return this.#settle('at-work')
        } catch (error) {
          if (!(error instanceof Overtaken)) throw error
          await records.head.read()
        }
      }
      return this.#settle('standing-by')
    } catch (error) {
      if (!(error instanceof StoreFailure)) throw error
      // Its own records are in memory: what needs no store goes on.
      const canGoOn = this.#standing === 'at-work' && lease.outlivesStore
      return canGoOn ? 'at-work' : this.#settle('blind')
    }
  }

  #settle(standing: Standing): Standing {
    if (standing !== this.#standing) {
      const said = {
        'at-work': 'This process keeps the roster now',
        'standing-by': 'Another process keeps the roster: standing by',
        superseded: 'A newer configuration is at work: standing aside for good',
        blind: 'The store cannot be read: nothing is done until it can',
      }
      this.#parts.log('info', { standing, generation: this.generation?.generation }, said[standing])
    }
    this.#standing = standing
    return standing
  }

  #standAside(): Standing {
    this.#parts.problems.begin(
      'SUPERSEDED',
      'Another process was started with a newer configuration (types, callback URL, parameters): this one stands ' +
        'aside for good. Stop it, or restart it with the new configuration.',
    )
    return this.#settle('superseded')
  }

  async #open(): Promise<void> {
    const missing = await this.#parts.records.open(loadFacts())
    this.#loadedChunks = this.#parts.records.head.present?.chunks
    if (missing === 0) return
    this.#parts.problems.tellOnce(
      'STORE',
      `${missing} of the keeper's records are missing from the store, with up to a hundred users each: ` +
        'their subscriptions are met as if for the first time.',
    )
  }

  /** Reads what the one at work has written, to know whose deliveries arrive here. A store that lost it shows nothing. */
  async #look(): Promise<void> {
    const { records } = this.#parts
    if (records.head.present === undefined) return
    await records.load({ ...loadFacts(), wasClosed: true })
    this.#loadedChunks = records.head.present?.chunks
  }

  /** Reads again what the one at work has written, unless this process takes its place meanwhile. Never rejects. */
  async lookAgain(): Promise<void> {
    await this.#entering
    if (this.#standing !== 'standing-by') return
    this.#entering ??= this.#alone(async () => {
      try {
        await this.#parts.records.head.read()
        await this.#look()
      } catch (error) {
        if (!(error instanceof StoreFailure)) throw error
      }
      return this.#standing
    })
    await this.#entering
  }
}

function loadFacts() {
  const now = performance.now()
  const wall = Date.now()
  const restoreWait = (record: Pick<UserRecord, 'restoresSinceDelivery' | 'restoredAt'>) => {
    const restoredAt = pastStamp(record.restoredAt, wall)
    if (restoredAt === undefined) return 0
    return Math.max(0, restoreWaitMs(record.restoresSinceDelivery) - (wall - restoredAt))
  }
  return { now, settledFrom: now + settlingMs, restoreWaitMs: restoreWait }
}
