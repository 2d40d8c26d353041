/** The parts of a keeper put together, and what passes and the watch have in common. */
import { type Log, logOf, lossLogOf } from '../logger.js'
import { callSafely } from '../shared/call-safely.js'
import { Circuit, type Outage } from './circuit.js'
import { Configuration } from './configuration.js'
import { absorbDelivery, noteDelivery } from './deliveries.js'
import { Gate } from './gate.js'
import { Incidents } from './incidents.js'
import type {
  KeeperGap,
  KeeperProblem,
  Roster,
  SubscriptionKeeperOptions,
  SweepProgress,
  SweepReport,
} from './keeper-types.js'
import { Lease } from './lease.js'
import { runPass } from './pass.js'
import { Problems } from './problems.js'
import { RecordStore } from './record-store.js'
import { askRoster, removalProblem } from './roster.js'
import { StoreAccess, StoreFailure } from './store-access.js'
import { doubtOf, Strays, strayMessage } from './strays.js'
import { Tenure } from './tenure.js'
import { delay, leaseMs, proofFlushMs } from './timing.js'
import { newUser, type UserRecord } from './user-record.js'
import { type Visit, Visitor } from './visit.js'

export interface KeepingSettings {
  readonly roster: Roster
  readonly sweepIntervalMs: number
  readonly concurrency: number
  readonly maxRemovedShare: number
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
  readonly store: StoreAccess
  readonly #lease: Lease
  readonly #strays = new Strays()
  readonly #log: Log
  #flushedSince = performance.now()
  /** Users that were recorded when the roster was believed last, while it is not. */
  #believedUsers: number | undefined
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
      maxRemovedShare: options.maxRemovedShare ?? 0.5,
      reportStrays: options.reportStrays ?? true,
    }
    const log = logOf(logger)
    this.#log = log
    const lossLog = lossLogOf(logger)
    this.problems = new Problems((problem) => tellOfProblem(problem, { onProblem, log, lossLog }))
    this.incidents = new Incidents(this.problems, sweepIntervalMs)
    this.store = new StoreAccess(options.store, name, {
      onFailure: (error) => this.problems.begin('STORE', storeMessage, { error }),
      onRecovery: () => this.problems.end('STORE'),
    })
    this.#lease = new Lease(this.store)
    this.records = new RecordStore(this.store)
    const { store, records, problems } = this
    const configuration = new Configuration(
      { types: options.notificationTypes, callbackUrl: String(options.callbackUrl) },
      { parameters: options.parameters, headers: options.headers },
    )
    this.tenure = new Tenure({ store, lease: this.#lease, records, problems, log }, configuration)
    this.circuit = new Circuit(() => this.#keptCount, {
      onOutage: (outage) =>
        problems.begin(codeOf(outage), outageMessages[outage.kind], { error: outage.error }),
      onRecovery: (outage) => {
        problems.end(codeOf(outage))
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
      log('info', { name }, 'The store has no compareAndSet: only one process may keep this roster')
    }
  }

  get #keptCount(): number {
    return this.records.users.size
  }

  /** Visits everybody who is wanted, and everybody who is no longer. Never rejects. */
  async pass(request: PassRequest): Promise<SweepReport> {
    const standing = await this.#takePart()
    const isTold = standing === 'at-work' || standing === 'blind'
    const roster = request.wanted === 'nobody' ? new Set<string>() : await this.askRoster({ isTold })
    if (standing !== 'at-work') return this.#reportOfOthers(roster)
    if (request.wanted === 'nobody') this.#removeAll()
    else if (roster !== undefined) this.applyRoster(roster, request.allowRemovals)
    const report = await runPass(
      {
        visitor: this.visitor,
        concurrency: this.settings.concurrency,
        absorb: (record) => this.absorb(record),
        target: () => this.tenure.generation?.target,
        problems: () => this.problems.list(),
        onVisited: (record, visit) => this.visited(record, visit),
      },
      { ...request, users: [...this.records.users.values()] },
    )
    await this.flush()
    const { wanted, active, created, restored, removed, failed } = report
    const counts = { wanted, active, created, restored, removed, failed: failed.length }
    this.#log('info', counts, 'A pass over the roster is done')
    return report
  }

  /** Takes the work over if nobody does it: one who died is waited for until that is certain. */
  async #takePart(): Promise<string> {
    const startedAt = performance.now()
    for (;;) {
      const standing = await this.tenure.enter()
      const mayChange = standing === 'standing-by' && !this.#lease.isOthers
      if (!mayChange || performance.now() - startedAt > 2 * leaseMs) return standing
      await delay(5_000)
    }
  }

  /** The roster, or `undefined` if there is none: a `ROSTER` problem, unless another process tells of it. */
  async askRoster({ isTold = true } = {}): Promise<ReadonlySet<string> | undefined> {
    try {
      return await askRoster(this.settings.roster)
    } catch (error) {
      if (!isTold) return undefined
      this.problems.begin('ROSTER', 'The roster cannot be read: those who are recorded are kept.', { error })
      return undefined
    }
  }

  /** Notes who is wanted and who no longer. */
  applyRoster(roster: ReadonlySet<string>, allowRemovals: boolean): void {
    const { users } = this.records
    const recorded = [...users.values()].filter((record) => !record.isRemoved).map(({ username }) => username)
    const { maxRemovedShare } = this.settings
    const believed = this.#believedUsers ?? recorded.length
    const problem = removalProblem(roster, recorded, { maxRemovedShare, allowRemovals, believed })
    this.#believedUsers = problem === undefined ? undefined : believed
    if (problem === undefined) this.problems.end('ROSTER')
    else this.problems.begin('ROSTER', problem)
    const now = performance.now()
    for (const username of roster) {
      const known = users.get(username)
      if (known === undefined) {
        const record = newUser(username)
        record.dueAt = now
        users.set(username, record)
      } else if (known.isRemoved) this.#setRemoved(known, false, now)
    }
    if (problem !== undefined) return
    for (const record of users.values()) {
      if (!record.isRemoved && !roster.has(record.username)) this.#setRemoved(record, true, now)
    }
  }

  #removeAll(): void {
    const now = performance.now()
    for (const record of this.records.users.values()) this.#setRemoved(record, true, now)
  }

  #setRemoved(record: UserRecord, isRemoved: boolean, now: number): void {
    record.isRemoved = isRemoved
    record.isQuiet = false
    record.dueAt = now
    record.hasConflict = false
    this.problems.removeUser('CONFLICT', record.username)
    this.problems.removeUser('RECEIVER_SUSPECTED', record.username)
    if (record.chunk !== undefined) record.chunk.isStale = true
  }

  /** What comes of a visit besides the record. */
  visited({ username }: UserRecord, visit: Visit): void {
    if (visit.end === 'conflict') this.problems.addUser('CONFLICT', username, conflictMessage)
    else if (visit.end === 'settled') this.problems.removeUser('CONFLICT', username)
  }

  /** A pass that another process does, or nobody. */
  #reportOfOthers(roster: ReadonlySet<string> | undefined): SweepReport {
    const names = roster ?? new Set(this.records.users.keys())
    const failed = []
    for (const username of names) {
      const record = this.records.users.get(username)
      const isThere = record?.slots.some(({ id, isGone }) => id !== undefined && !isGone) === true
      if (!isThere) failed.push({ username, error: new Error(otherMessages[this.tenure.standing]) })
    }
    return {
      wanted: names.size,
      active: names.size - failed.length,
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
    await this.#reviewStrays(now)
  }

  /** Troubles of the work are told by the process that does it: here nobody would see when they are over. */
  #handOverProblems(): void {
    this.circuit.forget()
    this.problems.end('ROSTER')
    this.problems.end('CONFLICT')
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
      if (this.isWatching && this.settings.reportStrays) this.#strays.see(subscriptionId)
      return
    }
    noteDelivery(record, subscriptionId)
    // Whoever is restored, or moves to another configuration, is known to be alive at once.
    if (record.restoresSinceDelivery > 0 || record.slots.length > 1) this.absorb(record)
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
    let mayBeOwn = false
    if (this.#strays.hasCandidate(now)) {
      if (this.tenure.standing === 'standing-by') {
        await ignoringStoreFailure(() => this.tenure.lookAgain())
      }
      if (this.tenure.standing === 'blind') return
      const hasParameters = this.tenure.configuration.names.length > 0
      const doubt = doubtOf(this.records.users.values(), {
        hasParameters,
        isOutage: this.circuit.outage !== undefined,
      })
      if (doubt === 'passing') return
      mayBeOwn = doubt === 'lasting'
    }
    const { begun, over } = this.#strays.review(now, (id) => this.records.byId.has(id))
    for (const subscriptionId of begun)
      this.problems.begin('STRAY', strayMessage(subscriptionId, { mayBeOwn }), { subscriptionId })
    for (const subscriptionId of over) this.problems.end('STRAY', subscriptionId)
  }
}

interface Tellers {
  readonly log: Log
  readonly lossLog: Log
}

function tellOfGap(
  gap: KeeperGap,
  { onGap, log, lossLog }: Tellers & Pick<SubscriptionKeeperOptions, 'onGap'>,
): void {
  const message = 'A subscription was restored: notifications since its last proof may be missing'
  if (onGap === undefined) {
    lossLog('warn', gap, message)
    return
  }
  log('info', gap, message)
  callSafely(
    () => onGap(gap),
    (error) => log('error', { error }, 'onGap failed'),
  )
}

function tellOfProblem(
  problem: KeeperProblem,
  { onProblem, log, lossLog }: Tellers & Pick<SubscriptionKeeperOptions, 'onProblem'>,
): void {
  if (onProblem === undefined) {
    lossLog(problem.resolved ? 'info' : 'error', problem, `${problem.code}: ${problem.message}`)
    return
  }
  log('info', problem, `${problem.code}: ${problem.message}`)
  callSafely(
    () => onProblem(problem),
    (error) => log('error', { error }, 'onProblem failed'),
  )
}

const storeMessage =
  'The store fails, hangs or does not keep what is written. Until it works again nothing is replaced or unsubscribed, ' +
  'and nobody new is subscribed; recorded users are still looked after.'

function codeOf({ kind }: Outage): 'CREDENTIALS' | 'SERVICE' {
  return kind === 'CREDENTIALS' ? 'CREDENTIALS' : 'SERVICE'
}

const outageMessages: Readonly<Record<Outage['kind'], string>> = {
  CREDENTIALS:
    'The credentials are refused: check the client ID and the secret, and that access was not ended. ' +
    'One call at a time tests whether they are accepted again.',
  SERVICE:
    'The service fails or cannot be reached. One call at a time, from every 5 s to every 5 min, tests whether it is back.',
  REFUSED:
    'The service refuses every request: look at the error for what it says about it. One call at a time goes on testing.',
}

function conflictMessage(usernames: readonly string[]): string {
  const who = usernames.length === 1 ? usernames[0] : `${usernames.length} users`
  return (
    `The service has another subscription for ${who} with this callback URL, which this keeper did not make: ` +
    'perhaps a joint subscription, or another environment. Unsubscribe it by its id, which a STRAY names at its next ' +
    'delivery, or use another callback URL.'
  )
}

const otherMessages = {
  'at-work': '',
  'standing-by': 'Another process keeps the roster: it subscribes this user at its next pass.',
  superseded: 'Another process runs a newer configuration: it subscribes this user at its next pass.',
  blind: 'The store cannot be read: nobody new is subscribed until it can.',
} as const

async function ignoringStoreFailure(operation: () => Promise<unknown>): Promise<void> {
  try {
    await operation()
  } catch (error) {
    if (!(error instanceof StoreFailure)) throw error
  }
}
