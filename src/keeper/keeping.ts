/** The parts of a keeper put together, and what passes and the watch have in common. */
import type { Log } from '../logger.js'
import { Circuit } from './circuit.js'
import { Configuration } from './configuration.js'
import { absorbDelivery, noteDelivery } from './deliveries.js'
import { Gate } from './gate.js'
import { unknownUsers } from './handover.js'
import { Incidents } from './incidents.js'
import type { Roster, SubscriptionKeeperOptions, SweepProgress, SweepReport } from './keeper-types.js'
import { Lease } from './lease.js'
import { Membership } from './membership.js'
import { Outages } from './outages.js'
import { runPass } from './pass.js'
import { Problems } from './problems.js'
import { RecordStore } from './record-store.js'
import { askRoster, type RosterAnswer } from './roster.js'
import { StoreAccess, StoreFailure } from './store-access.js'
import { isSettling, Strays, strayMessage } from './strays.js'
import {
  conflictMessage,
  invalidMessage,
  storeMessage,
  tellersOf,
  tellOfGap,
  tellOfProblem,
} from './telling.js'
import { type Standing, Tenure } from './tenure.js'
import { delay, leaseMs, proofFlushMs } from './timing.js'
import type { UserRecord } from './user-record.js'
import { type Visit, Visitor } from './visit.js'

export interface KeepingSettings {
  readonly roster: Roster
  readonly sweepIntervalMs: number
  readonly concurrency: number
  readonly reportStrays: boolean
}

/** A pass as it is asked for. */
export interface PassRequest {
  /** `nobody`: everything is ended. */
  readonly wanted: 'roster' | 'nobody'
  readonly allowRemovals: boolean
  /** A proof that was sent since then is enough; monotonic. */
  readonly provenSince: number
  readonly onProgress: (progress: SweepProgress) => void
  readonly isOver: () => boolean
}

export class Keeping {
  readonly settings: KeepingSettings
  readonly problems: Problems
  readonly records: RecordStore
  readonly tenure: Tenure
  readonly visitor: Visitor
  readonly circuit: Circuit
  readonly incidents: Incidents
  readonly membership: Membership
  readonly store: StoreAccess
  readonly #lease: Lease
  readonly #outages: Outages
  readonly #strays = new Strays()
  readonly #log: Log
  #flushedSince = performance.now()
  /** How often the roster was asked, and the latest question that was answered. */
  #questions = 0
  #lastAnswered = 0
  readonly onProgressFailed = (error: unknown): void => this.#log('error', { error }, 'onProgress failed')
  /** Called when an end was found, or an outage is over. */
  onNews: (news: 'end' | 'recovery') => void = () => {}
  /** Deliveries of unknown ids are looked at while a watch is kept. */
  isWatching = false

  constructor(options: SubscriptionKeeperOptions) {
    const { logger, onGap, onProblem, name, client, existing = 'replace' } = options
    const { sweepIntervalMs = 900_000, maxRequestsPerSecond = 50, concurrency = 8 } = options
    this.settings = {
      roster: options.usernames,
      sweepIntervalMs,
      concurrency,
      reportStrays: options.reportStrays ?? true,
    }
    const { log, lossLog } = tellersOf(name, logger)
    this.#log = log
    this.problems = new Problems((problem) => tellOfProblem(problem, { onProblem, log, lossLog }))
    this.#outages = new Outages(this.problems)
    this.incidents = new Incidents(this.problems, sweepIntervalMs)
    this.store = new StoreAccess(options.store, name, {
      onFailure: (error) => {
        const isAtWork = this.tenure.standing === 'at-work'
        this.problems.begin('STORE', storeMessage(isAtWork), { error })
      },
      onRecovery: () => this.problems.end('STORE'),
    })
    this.#lease = new Lease(this.store)
    this.records = new RecordStore(this.store, (id) => this.#strays.wasDropped(id))
    const { store, records, problems } = this
    this.membership = new Membership({ records, problems, maxRemovedShare: options.maxRemovedShare ?? 0.5 })
    const configuration = new Configuration(
      { types: options.notificationTypes, callbackUrl: String(options.callbackUrl) },
      { parameters: options.parameters, headers: options.headers },
    )
    this.tenure = new Tenure({ store, lease: this.#lease, records, problems, log }, configuration)
    this.circuit = new Circuit(() => this.#keptCount, {
      onOutage: (outage) => this.#outages.began(outage),
      onRecovery: () => {
        this.#outages.recovered()
        this.onNews('recovery')
      },
    })
    const gate = new Gate(this.circuit, { maxRequestsPerSecond, concurrency })
    this.visitor = new Visitor({
      client,
      existing,
      store,
      records,
      tenure: this.tenure,
      gate,
      circuit: this.circuit,
      log,
      sweepIntervalMs,
      onGap: (gap) => tellOfGap(gap, { onGap, log, lossLog }),
      lastEndSince: () => this.incidents.lastEndSince,
      onEnd: (username) => {
        this.incidents.foundEnd(username)
        this.onNews('end')
      },
      onIdEnded: (id) => this.#strays.hasEnded(id),
      onUnknownEnded: () => this.#strays.forgetUnreported(),
    })
    if (!store.canCompare) {
      log('info', {}, 'The store has no compareAndSet: only one process may keep this roster')
    }
  }

  get #keptCount(): number {
    return this.records.users.size
  }

  /** Visits everybody who is wanted, and everybody who is no longer. Never rejects. */
  async pass(request: PassRequest): Promise<SweepReport> {
    const standing = await this.#takePart(request.isOver)
    const isTold = standing === 'at-work' || standing === 'blind'
    const isAsked = request.wanted === 'roster' && !request.isOver()
    const roster = isAsked ? await this.askRoster({ isTold }) : undefined
    // The answer may have taken its time.
    if (standing !== 'at-work' || this.tenure.standing !== 'at-work') {
      return this.#reportOfOthers(request.wanted, roster?.names)
    }
    if (request.wanted === 'nobody') this.membership.removeAll()
    else if (roster !== undefined) this.membership.applyRoster(roster, request.allowRemovals)
    const report = await runPass(
      {
        visitor: this.visitor,
        circuit: this.circuit,
        concurrency: this.settings.concurrency,
        absorb: (record) => this.absorb(record),
        target: () => this.tenure.generation?.target,
        problems: () => this.problems.list(),
        onVisited: (record, visit) => this.visited(record, visit),
      },
      { ...request, users: [...this.records.users.values()] },
    )
    this.#outages.review(performance.now(), this.isWatching)
    await this.flush()
    const { wanted, active, created, restored, removed, failed } = report
    const counts = { wanted, active, created, restored, removed, failed: failed.length }
    this.#log('info', counts, 'A pass over the roster is done')
    return report
  }

  /** Takes the work over if nobody does it: one who died is waited for until that is certain. */
  async #takePart(isOver: () => boolean): Promise<Standing> {
    const startedAt = performance.now()
    for (;;) {
      const standing = await this.tenure.enter()
      const mayChange = standing === 'standing-by' && !this.#lease.isOthers
      if (!mayChange || isOver() || performance.now() - startedAt > 2 * leaseMs) return standing
      await delay(5_000)
    }
  }

  /** The roster, or `undefined` if there is none: a `ROSTER` problem, unless another process tells of it. */
  async askRoster({ isTold = true } = {}): Promise<RosterAnswer | undefined> {
    const unknownBefore = unknownUsers(this.records)
    this.#questions++
    const question = this.#questions
    try {
      const names = await askRoster(this.settings.roster)
      // A later question was answered meanwhile: what this answer says may be older.
      if (question < this.#lastAnswered) return this.askRoster({ isTold })
      this.#lastAnswered = question
      if (isTold) this.problems.end('ROSTER', unreadRoster)
      return { names, unknownBefore }
    } catch (error) {
      if (!isTold) return undefined
      const message = 'The roster cannot be read: those who are recorded are kept.'
      this.problems.begin('ROSTER', message, { about: unreadRoster, error })
      return undefined
    }
  }

  /** What comes of a visit besides the record. */
  visited({ username }: UserRecord, visit: Visit): void {
    const { problems } = this
    if (visit.end === 'conflict') problems.addUser('CONFLICT', username, conflictMessage)
    else if (visit.end === 'settled') problems.removeUser('CONFLICT', username)
    if (visit.isInvalid === true) {
      problems.addUser('ROSTER', username, (names) => invalidMessage(names, visit.error), visit.error)
    } else if (visit.end === 'settled' || visit.end === 'conflict') problems.removeUser('ROSTER', username)
  }

  /** A pass that another process does, or nobody. */
  #reportOfOthers(wanted: PassRequest['wanted'], roster: ReadonlySet<string> | undefined): SweepReport {
    const { standing } = this.tenure
    const names = roster ?? new Set(this.records.users.keys())
    const failed = []
    for (const username of names) {
      const record = this.records.users.get(username)
      const isThere = record?.slots.some(({ id, isGone }) => id !== undefined && !isGone) === true
      if (wanted === 'nobody') failed.push({ username, error: new Error(otherEndMessages[standing]) })
      else if (!isThere) failed.push({ username, error: new Error(otherMessages[standing]) })
    }
    return {
      wanted: wanted === 'nobody' ? 0 : names.size,
      active: wanted === 'nobody' ? 0 : names.size - failed.length,
      created: 0,
      restored: 0,
      removed: 0,
      failed,
      problems: this.problems.list(),
    }
  }

  /** Every half a minute while anything is going on. */
  async beat(): Promise<void> {
    const standing = await this.tenure.enter()
    if (standing === 'standing-by' || standing === 'superseded') this.#handOverProblems()
    if (standing === 'superseded') {
      await this.visitor.underWay
      await this.tenure.leave()
    }
    const now = performance.now()
    if (!this.store.isWorking) await ignoringStoreFailure(() => this.store.prove())
    if (now - this.#flushedSince >= proofFlushMs) await this.flush()
    this.incidents.review(now)
    this.#outages.review(now, this.isWatching)
    await this.#reviewStrays(now)
  }

  /** Troubles of the work are told by the process that does it: here nobody would see when they are over. */
  #handOverProblems(): void {
    this.circuit.forget()
    this.#outages.end()
    this.problems.end('ROSTER')
    this.problems.end('ROSTER', unreadRoster)
    this.problems.endForUsers('ROSTER')
    this.problems.endForUsers('CONFLICT')
  }

  /** Writes what could wait until now. */
  async flush(): Promise<void> {
    if (this.tenure.standing !== 'at-work' || !this.tenure.mayCall) return
    this.#flushedSince = performance.now()
    this.absorbAll()
    try {
      await this.records.saveStale()
    } catch (error) {
      if (!(error instanceof StoreFailure)) this.tenure.lose()
    }
  }

  /** A delivery arrived: proof of life, if its id is known. */
  deliver(subscriptionId: number): void {
    const record = this.records.byId.get(subscriptionId)
    if (record === undefined) {
      // The command line's `check` posts a test delivery under the id 0, which is no subscription's.
      if (subscriptionId === 0) return
      if (this.isWatching && this.settings.reportStrays) this.#strays.see(subscriptionId)
      return
    }
    noteDelivery(record, subscriptionId)
    // Whoever is restored, in conflict, or moves to another configuration, is known to be alive at once.
    const { hasConflict, restoresSinceDelivery, slots } = record
    if (hasConflict || restoresSinceDelivery > 0 || slots.length > 1) this.absorb(record)
  }

  /** Draws the conclusions from deliveries, before somebody looks at the record. */
  absorb(record: UserRecord): void {
    const { sweepIntervalMs } = this.settings
    const target = this.tenure.generation?.target
    if (absorbDelivery(record, { target, sweepIntervalMs })) this.incidents.delivered()
  }

  absorbAll(): void {
    for (const record of this.records.users.values()) this.absorb(record)
  }

  async #reviewStrays(now: number): Promise<void> {
    // One that stands aside for good no longer reads what the one at work has created.
    if (this.tenure.standing === 'superseded') return
    if (this.#strays.hasCandidate(now)) {
      if (this.tenure.standing === 'standing-by') {
        await this.tenure.lookAgain()
      }
      if (this.tenure.standing === 'blind') return
      const hasParameters = this.tenure.configuration.names.length > 0
      const isOutage = this.circuit.outage !== undefined
      if (isSettling(this.records.users.values(), { hasParameters, isOutage })) {
        // Whether what settles it replaces a subscription is known to the process at work only.
        if (this.tenure.standing === 'standing-by') this.#strays.forgetUnreported()
        return
      }
    }
    const { begun, over } = this.#strays.review(now, (id) => this.records.byId.has(id))
    for (const subscriptionId of begun) {
      this.problems.begin('STRAY', strayMessage(subscriptionId), { about: subscriptionId, subscriptionId })
    }
    for (const subscriptionId of over) this.problems.end('STRAY', subscriptionId)
  }
}

/** A roster that cannot be read stands beside one that is not believed. */
const unreadRoster = 'unread'

const otherMessages = {
  'at-work': '',
  'standing-by': 'Another process keeps the roster: it subscribes this user at its next pass.',
  superseded: 'Another process runs a newer configuration: it subscribes this user at its next pass.',
  blind: 'The store cannot be read: nobody new is subscribed until it can.',
} as const

const otherEndMessages = {
  'at-work': '',
  'standing-by':
    'Another process keeps the roster: stop that one first, and then call `unsubscribeAll` again.',
  superseded:
    'Another process runs a newer configuration: stop that one first, and call `unsubscribeAll` there.',
  blind: 'The store cannot be read: nobody is unsubscribed until it can.',
} as const

async function ignoringStoreFailure(operation: () => Promise<unknown>): Promise<void> {
  try {
    await operation()
  } catch (error) {
    if (!(error instanceof StoreFailure)) throw error
  }
}
