/**
 * When what is done: a tick each second while a keeper watches or sweeps. Reconciles users when they are due, makes
 * sweeps one after the other, tests whether a service that failed is back, and looks after the store.
 */
import type { Deliveries, Incidents } from './deliveries.js'
import { KeyFailure, StoreUnavailable } from './keeper-store.js'
import type { Purpose } from './reconciliation.js'
import { isThere } from './record.js'
import type { Records } from './records.js'
import { Sweep, type SweepParts, type SweepRequest, usersPerRequest } from './sweep.js'
import { configurationReadMs, hasPassed, presentInstant } from './timing.js'
import type { SweepProgress, SweepReport } from './types.js'
import type { User } from './users.js'

const tickMs = 1_000
/** After so many intervals a process looks at what it has not seen since: then those who prove later have done so. */
const longestUnseen = 16 / 15
/** A tick that is so much late: the process, or its machine, has slept, and anything may have happened. */
const sleptMs = 60_000

export interface ScheduleParts extends SweepParts {
  readonly sweepIntervalMs: number
  readonly records: Records
  readonly deliveries: Deliveries
  readonly incidents: Incidents
}

interface QueuedSweep {
  readonly sharedAs: string | undefined
  readonly listeners: ((progress: SweepProgress) => unknown)[]
  readonly report: Promise<SweepReport>
}

export class Schedule {
  readonly #parts: ScheduleParts
  #isWatching = false
  #isStopping = false
  /** When the keeper was made, or stopped last: nothing before counts as a proof. Monotonic. */
  #beganSince = performance.now()

  /** What keeps the tick going: the watch, and sweeps. */
  #holders = 0
  #timer: NodeJS.Timeout | undefined
  #ticked = presentInstant()
  #reviewedSince = Number.NEGATIVE_INFINITY

  /** Users who are due, the most overdue one last. */
  #ready: User[] = []
  #inFlight = 0
  #lastTester: User | undefined

  readonly #queue: QueuedSweep[] = []
  #lastSweep: Promise<unknown> = Promise.resolve()
  #isSweeping = false

  constructor(parts: ScheduleParts) {
    this.#parts = parts
  }

  get isWatching(): boolean {
    return this.#isWatching
  }

  start(): void {
    if (this.#isWatching) return
    this.#isWatching = true
    this.#parts.incidents.forgetSweep()
    // First, or the first tick would read the roster, too.
    this.#sweepInWatch(this.#beganSince)
    this.#hold()
  }

  /** Ends the watch, and a sweep before its next user; resolves when nothing is in flight. */
  async stop(): Promise<void> {
    this.#isStopping = true
    if (this.#isWatching) {
      this.#isWatching = false
      this.#beganSince = performance.now()
      this.#release()
    }
    await this.#lastSweep
    await Promise.all(Array.from(this.#parts.users, ({ reconciling }) => reconciling))
    await this.#parts.newest.settled()
    this.#isStopping = false
  }

  /** Sweeps wait for each other. Never rejects. */
  sweep(request: SweepRequest): Promise<SweepReport> {
    const { onProgress, sharedAs } = request
    const shared = sharedAs && this.#queue.find((each) => each.sharedAs === sharedAs)
    const queued = shared || this.#enqueue(request)
    if (onProgress !== undefined) queued.listeners.push(onProgress)
    return queued.report
  }

  #enqueue(request: SweepRequest): QueuedSweep {
    const listeners: QueuedSweep['listeners'] = []
    const report = this.#lastSweep.then(() => {
      this.#queue.splice(this.#queue.indexOf(queued), 1)
      return this.#makeSweep(request, listeners)
    })
    const queued: QueuedSweep = { sharedAs: request.sharedAs, listeners, report }
    this.#queue.push(queued)
    this.#hold()
    this.#lastSweep = report.catch(() => {}).finally(() => this.#release())
    return queued
  }

  async #makeSweep(request: SweepRequest, listeners: QueuedSweep['listeners']): Promise<SweepReport> {
    const { circuit, reporter } = this.#parts
    const onProgress = (progress: SweepProgress) => {
      for (const listener of listeners) reporter.reportProgress(() => listener(progress))
    }
    const isOver = () => this.#isStopping
    this.#isSweeping = true
    try {
      return await new Sweep(this.#parts, request, { onProgress, isOver }).run()
    } finally {
      this.#isSweeping = false
      this.#spread()
      circuit.review(this.#isWatching)
    }
  }

  #sweepInWatch(provenSince: number): void {
    this.#inBackground(async () => {
      await this.sweep({ provenSince })
    })
  }

  /** Users who were proven all at once are proven one after the other from now on. */
  #spread(): void {
    if (!this.#isWatching) return
    const { records, sweepIntervalMs, users } = this.#parts
    const own = [...users].filter(({ isQuiet, record }) => isQuiet && record?.provenBy === records.by)
    const now = performance.now()
    for (const [index, user] of own.entries()) {
      user.dueFrom = Math.min(user.dueFrom, now + (sweepIntervalMs * (index + 1)) / own.length)
    }
  }

  #hold(): void {
    if (this.#holders++ > 0) return
    this.#ticked = presentInstant()
    this.#tick()
  }

  #release(): void {
    if (--this.#holders === 0) clearTimeout(this.#timer)
  }

  #tick(): void {
    this.#timer = setTimeout(() => this.#tick(), tickMs)
    const { incidents, store } = this.#parts
    const hasSlept = hasPassed(sleptMs, this.#ticked)
    this.#ticked = presentInstant()
    const hasIncident = incidents.takeSweep()
    if (this.#isWatching && hasSlept) this.#sweepInWatch(performance.now())
    else if (this.#isWatching && hasIncident) this.#sweepInWatch(incidents.lastEndSince)
    if (store.isFailing) {
      void store.checkAgain()
      return
    }
    if (performance.now() - this.#reviewedSince >= configurationReadMs) this.#review()
    if (this.#isWatching) this.#readRosterIfDue()
    this.#testIfDue()
    this.#collectDue()
    this.#reconcileReady()
  }

  /** Which configuration is the newest, and which problems have begun or are resolved. */
  #review(): void {
    const { circuit, deliveries, incidents, newest } = this.#parts
    this.#reviewedSince = performance.now()
    incidents.review()
    circuit.review(this.#isWatching)
    this.#inBackground(async () => {
      await newest.refresh()
      // A search for unknown subscriptions asks the roster: during `unsubscribeAll` that would bring everybody back.
      if (this.#isWatching) await deliveries.review()
    })
  }

  #readRosterIfDue(): void {
    const { roster, sweepIntervalMs } = this.#parts
    const isDue = performance.now() - roster.readSince >= sweepIntervalMs
    if (!isDue || this.#queue.length > 0 || this.#isSweeping || roster.isBeingRead) return
    this.#inBackground(() => roster.read())
  }

  get #mayReconcile(): boolean {
    const { newest, store } = this.#parts
    return newest.isKnown && !newest.isSuperseded && !store.isFailing
  }

  #collectDue(): void {
    if (!this.#isWatching) return
    const due = [...this.#parts.users].filter((user) => this.#purposeOf(user) !== undefined)
    this.#ready = due.sort((one, other) => other.dueFrom - one.dueFrom)
  }

  #purposeOf(user: User): Purpose | undefined {
    const { sweepIntervalMs } = this.#parts
    const { dueFrom, failures, isQuiet, record, seenSince } = user
    if (user.reconciling !== undefined) return undefined
    const now = performance.now()
    // A sweep reaches everybody: until then the requests of a second are for users that wait for it.
    if (dueFrom <= now && !(this.#isSweeping && isQuiet)) return { kind: 'due' }
    // Deliveries save a proof, and not the look at what other processes have done.
    const isUnseen = isQuiet && now - seenSince >= longestUnseen * sweepIntervalMs
    const hasNews = failures === 0 && record?.claim === undefined && user.hasDeliveryNews(sweepIntervalMs)
    return isUnseen || hasNews ? { kind: 'look' } : undefined
  }

  #reconcileReady(): void {
    const { circuit, concurrency, reconciler, users } = this.#parts
    while (this.#isWatching && this.#mayReconcile && !circuit.isOpen) {
      if (this.#inFlight >= usersPerRequest * concurrency) return
      const user = this.#ready.pop()
      if (user === undefined) return
      const purpose = users.get(user.username) === user && this.#purposeOf(user)
      if (!purpose) continue
      this.#inFlight++
      void reconciler.reconcile(user, purpose).finally(() => {
        this.#inFlight--
        this.#reconcileReady()
      })
    }
  }

  /** In an outage one call at a time, and of another user each time, tests whether the service is back. */
  #testIfDue(): void {
    const { circuit, reconciler } = this.#parts
    if (!circuit.isTestDue || !this.#mayReconcile || this.#isStopping) return
    const tester = this.#nextTester()
    if (tester === undefined) return
    this.#lastTester = tester
    circuit.beginTest(tester.username)
    void reconciler.reconcile(tester, { kind: 'test' }).finally(() => circuit.endTest(tester.username))
  }

  /**
   * An update leaves no outcome unknown; without parameters the same user creates again, under the claim that stands: so
   * an outage leaves one outcome unknown at most.
   */
  #nextTester(): User | undefined {
    const { newest, records, users } = this.#parts
    const idle = [...users].filter(({ reconciling }) => reconciling === undefined)
    const next = this.#lastTester === undefined ? 0 : idle.indexOf(this.#lastTester) + 1
    const rotated = [...idle.slice(next), ...idle.slice(0, next)]
    const now = performance.now()
    const isFree = ({ dueFrom, record }: User) => record?.claim === undefined || dueFrom <= now
    const mayUpdate = (user: User) => newest.own.names.length > 0 && isThere(user.present) && isFree(user)
    const hasUnsettledCreate = ({ record }: User) =>
      record?.claim?.by === records.by && record.claim.call === 'create'
    return rotated.find(mayUpdate) ?? rotated.find(hasUnsettledCreate) ?? rotated.find(isFree)
  }

  /** A store that fails is reported by itself. */
  #inBackground(work: () => Promise<void>): void {
    work().catch((err: unknown) => {
      if (err instanceof StoreUnavailable || err instanceof KeyFailure) return
      const message = 'A bug of the keeper stopped some work: please report it'
      this.#parts.reporter.log('error', { event: 'keeper.broken', err }, message)
    })
  }
}
