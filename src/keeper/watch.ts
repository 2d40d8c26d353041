/** Keeps watch: everybody once per interval, spread over it, and at once where there is a reason. */
import { DueQueue } from './due-queue.js'
import { unknownUsers } from './handover.js'
import type { Keeping } from './keeping.js'
import { incidentPauseMs } from './timing.js'
import type { UserRecord } from './user-record.js'

/** During a pass a proof that is due is put off by this time, and again. */
const proofPauseMs = 5_000

export class Watch {
  readonly #keeping: Keeping
  readonly #passAll: (provenSince: number) => Promise<unknown>
  readonly #due = new DueQueue()
  #visitsInFlight = 0
  #timer: NodeJS.Timeout | undefined
  #incidentTimer: NodeJS.Timeout | undefined
  #rosterTimer: NodeJS.Timeout | undefined
  #lastIncidentSince = Number.NEGATIVE_INFINITY
  /** Passes and readings of the roster. */
  readonly #inFlight = new Set<Promise<unknown>>()
  #passesInFlight = 0
  /** How often the records had been read when a pass over them was done last, since this process is at work. */
  #timesLoadedThen: number | undefined

  /** @param passAll - queues a pass over everybody who was not proven since a time */
  constructor(keeping: Keeping, passAll: (provenSince: number) => Promise<unknown>) {
    this.#keeping = keeping
    this.#passAll = passAll
  }

  get isRunning(): boolean {
    return this.#keeping.isWatching
  }

  start(): void {
    this.#keeping.isWatching = true
    this.#timesLoadedThen = undefined
    this.#keeping.onNews = (news) => {
      if (news === 'recovery') this.#plan()
      else this.#planIncidentPass()
    }
    this.#pass()
    this.#planRoster()
  }

  /** No more visits begin; resolves when the visits in flight are over. */
  async stop(): Promise<void> {
    this.#keeping.isWatching = false
    this.#keeping.onNews = () => {}
    for (const timer of [this.#timer, this.#incidentTimer, this.#rosterTimer]) clearTimeout(timer)
    this.#incidentTimer = undefined
    this.#due.clear()
    await Promise.all(this.#inFlight)
    await this.#keeping.visitor.inFlight
  }

  /** After a beat: another process may have gone, or taken over. */
  look(): void {
    if (!this.isRunning) return
    const { records, tenure } = this.#keeping
    if (tenure.standing !== 'at-work') this.#timesLoadedThen = undefined
    else if (this.#timesLoadedThen !== records.timesLoaded && this.#passesInFlight === 0) this.#pass()
    else if (unknownUsers(records).size > 0) this.#readRoster()
    this.#queueEarlier()
  }

  /** The process has slept: anything may have happened. */
  slept(): void {
    if (this.isRunning) this.#pass()
  }

  /** After a pass of somebody's own, too. */
  spread(startedSince: number): void {
    if (!this.isRunning || this.#keeping.tenure.standing !== 'at-work') return
    this.#timesLoadedThen = this.#keeping.records.timesLoaded
    const users = [...this.#keeping.records.users.values()]
    const now = performance.now()
    const { sweepIntervalMs } = this.#keeping
    for (const [index, record] of users.entries()) {
      const turn = startedSince + (sweepIntervalMs * (index + 1)) / users.length
      if (record.isQuiet) record.dueFrom = Math.min(record.dueFrom, Math.max(now, turn))
      this.#due.add(record)
    }
    this.#plan()
  }

  #track(promise: Promise<unknown>): void {
    this.#inFlight.add(promise)
    void promise.finally(() => this.#inFlight.delete(promise))
  }

  #pass(): void {
    this.#passesInFlight++
    const pass = this.#passAll(performance.now()).finally(() => {
      this.#passesInFlight--
    })
    this.#track(pass)
  }

  /** What ended with the one that was found has to be found, too: by a pass that begins after it, one a minute. */
  #planIncidentPass(): void {
    if (this.#incidentTimer !== undefined) return
    const waitMs = this.#lastIncidentSince + incidentPauseMs - performance.now()
    this.#incidentTimer = setTimeout(
      () => {
        this.#incidentTimer = undefined
        this.#lastIncidentSince = performance.now()
        this.#track(this.#passAll(this.#keeping.incidents.lastEndSince))
      },
      Math.max(0, waitMs),
    )
  }

  #planRoster(): void {
    this.#rosterTimer = setTimeout(() => {
      this.#readRoster()
      this.#planRoster()
    }, this.#keeping.sweepIntervalMs)
  }

  #readRoster(): void {
    this.#track(this.#applyRoster())
  }

  async #applyRoster(): Promise<void> {
    const { membership, tenure } = this.#keeping
    if (tenure.standing !== 'at-work') return
    const roster = await membership.askRoster()
    if (roster === undefined || !this.isRunning || tenure.standing !== 'at-work') return
    membership.applyRoster(roster, false)
    this.#queueEarlier()
  }

  /** Users may have become due earlier than the queue knows. */
  #queueEarlier(): void {
    const { records, visitor } = this.#keeping
    for (const record of records.users.values()) {
      if (record.queuedFrom > record.dueFrom && !visitor.inFlightOf(record)) this.#due.add(record)
    }
    this.#plan()
  }

  /** Begins the visits that are due, and sets the timer for the next. */
  #plan(): void {
    clearTimeout(this.#timer)
    if (!this.isRunning || this.#keeping.tenure.standing !== 'at-work') return
    const now = performance.now()
    const { circuit, concurrency } = this.#keeping
    const room = circuit.outage === undefined ? concurrency : 1
    while (this.#visitsInFlight < room && now >= circuit.nextCallFrom) {
      const record = this.#takeDue(now)
      if (record === undefined) break
      void this.#visit(record)
    }
    if (this.#visitsInFlight >= room) return
    const nextDueFrom = Math.max(this.#due.nextDueFrom, circuit.nextCallFrom)
    if (nextDueFrom === Number.POSITIVE_INFINITY) return
    this.#timer = setTimeout(() => this.#plan(), Math.max(1, Math.ceil(nextDueFrom - now)))
  }

  /** In an outage each test is made with another user. */
  #takeDue(now: number): UserRecord | undefined {
    const passedOver: UserRecord[] = []
    let record = this.#takeNotDelivered(now)
    while (record !== undefined && !this.#keeping.circuit.isAnother(record.username)) {
      passedOver.push(record)
      record = this.#takeNotDelivered(now)
    }
    if (record === undefined) record = passedOver.pop()
    for (const each of passedOver) this.#due.add(each)
    return record
  }

  /** A delivery has saved the probe of some who are due. */
  #takeNotDelivered(now: number): UserRecord | undefined {
    const { users } = this.#keeping.records
    let record = this.#due.take(now)
    while (record !== undefined) {
      // One of a time before another process was at work has another in its place.
      if (users.get(record.username) === record) {
        this.#keeping.intake.absorb(record)
        // The requests of a second are for those whom the pass has not come to yet: they may have to be restored.
        const canWait = this.#keeping.isPassing && wantsOnlyProof(record)
        if (canWait) record.dueFrom = Math.max(record.dueFrom, now + proofPauseMs)
        if (record.dueFrom <= now) return record
        this.#due.add(record)
      }
      record = this.#due.take(now)
    }
    return undefined
  }

  async #visit(record: UserRecord): Promise<void> {
    const { records, visitor } = this.#keeping
    this.#visitsInFlight++
    await (visitor.inFlightOf(record) ?? visitor.visit(record, { wantsProof: true, repeats: false }))
    this.#visitsInFlight--
    // Forgotten, or of a time before another process was at work.
    if (this.isRunning && records.users.get(record.username) === record) this.#due.add(record)
    this.#plan()
  }
}

function wantsOnlyProof({ failures, isRemoved, slots }: UserRecord): boolean {
  const [slot] = slots
  const isThere = slot?.id !== undefined && !slot.isGone && slot.doubt !== 'unanswered'
  return isThere && slots.length === 1 && !isRemoved && failures === 0
}
