/** The parts of a keeper, put together, and what every beat of its heart does. */
import type { Log } from '../logger.js'
import { Circuit } from './circuit.js'
import { Configuration } from './configuration.js'
import { Gate } from './gate.js'
import { Incidents } from './incidents.js'
import { Intake } from './intake.js'
import type { SubscriptionKeeperOptions } from './keeper-types.js'
import { Lease } from './lease.js'
import { Membership } from './membership.js'
import { Outages } from './outages.js'
import { Problems } from './problems.js'
import { RecordStore } from './record-store.js'
import { StoreAccess, StoreFailure } from './store-access.js'
import { Strays } from './strays.js'
import { storeMessage, tellersOf, tellOfGap, tellOfProblem } from './telling.js'
import { Tenure } from './tenure.js'
import { proofFlushMs } from './timing.js'
import { Visitor } from './visit.js'

export class Keeping {
  readonly sweepIntervalMs: number
  readonly concurrency: number
  readonly log: Log
  readonly problems: Problems
  readonly outages: Outages
  readonly incidents: Incidents
  readonly store: StoreAccess
  readonly lease: Lease
  readonly records: RecordStore
  readonly tenure: Tenure
  readonly membership: Membership
  readonly circuit: Circuit
  readonly intake: Intake
  readonly visitor: Visitor
  #flushedSince = performance.now()
  /** Whether everybody is looked at again and again, and not only when somebody asks for a pass. */
  isWatching = false
  /** Whether a pass is looking at everybody. */
  isPassing = false
  /** Called when an end was found, or an outage is over. */
  onNews: (news: 'end' | 'recovery') => void = () => {}

  constructor(options: SubscriptionKeeperOptions) {
    const { callbackUrl, client, existing = 'replace', headers, logger, name, notificationTypes } = options
    const { concurrency = 8, maxRemovedShare = 0.5, maxRequestsPerSecond = 50, onGap, onProblem } = options
    const { parameters, reportStrays = true, sweepIntervalMs = 900_000, usernames: roster } = options
    this.sweepIntervalMs = sweepIntervalMs
    this.concurrency = concurrency
    const { log, lossLog } = tellersOf(name, logger)
    this.log = log
    const problems = new Problems((problem) => tellOfProblem(problem, { onProblem, log, lossLog }))
    this.problems = problems
    this.outages = new Outages(problems)
    this.incidents = new Incidents(problems, sweepIntervalMs)
    const store = new StoreAccess(options.store, name, {
      onFailure: (error) =>
        problems.begin('STORE', storeMessage(this.tenure.standing === 'at-work'), { error }),
      onRecovery: () => problems.end('STORE'),
    })
    this.store = store
    const strays = new Strays()
    const records = new RecordStore(store, (id) => strays.wasDropped(id))
    this.records = records
    this.lease = new Lease(store)
    const configuration = new Configuration(
      { types: notificationTypes, callbackUrl: String(callbackUrl) },
      { parameters, headers },
    )
    const tenure = new Tenure({ lease: this.lease, records, problems, log }, configuration)
    this.tenure = tenure
    this.membership = new Membership({ roster, records, problems, maxRemovedShare })
    const circuit = new Circuit(() => records.users.size, {
      onOutage: (outage) => this.outages.began(outage),
      onRecovery: () => {
        this.outages.recovered()
        this.onNews('recovery')
      },
    })
    this.circuit = circuit
    const watchesStrays = () => reportStrays && this.isWatching
    const { incidents } = this
    this.intake = new Intake({
      records,
      strays,
      tenure,
      circuit,
      incidents,
      problems,
      sweepIntervalMs,
      watchesStrays,
    })
    this.visitor = new Visitor({
      client,
      existing,
      store,
      records,
      tenure,
      gate: new Gate(circuit, { maxRequestsPerSecond, concurrency }),
      circuit,
      problems,
      log,
      sweepIntervalMs,
      onGap: (gap) => tellOfGap(gap, { onGap, log, lossLog }),
      lastEndSince: () => incidents.lastEndSince,
      onEnd: (username) => {
        incidents.foundEnd(username)
        this.onNews('end')
      },
      onIdEnded: (id) => strays.hasEnded(id),
      onUnknownEnded: () => strays.forgetUnreported(),
    })
    if (!store.canCompare) {
      log('info', {}, 'The store has no compareAndSet: only one process may keep this roster')
    }
  }

  /** Every half a minute while anything is going on. */
  async beat(): Promise<void> {
    const { incidents, intake, outages, store, tenure, visitor } = this
    const standing = await tenure.enter()
    if (standing === 'standing-by' || standing === 'superseded') this.#handOverProblems()
    if (standing === 'superseded') {
      await visitor.inFlight
      await tenure.leave()
    }
    const now = performance.now()
    // A failure is told already.
    if (!store.isWorking) await store.prove().catch(ignoreStoreFailure)
    if (now - this.#flushedSince >= proofFlushMs) await this.flush()
    incidents.review(now)
    outages.review(now, this.isWatching)
    await intake.reviewStrays(now)
  }

  /** Troubles of the work are told by the process that does it: here nobody would see when they are over. */
  #handOverProblems(): void {
    this.circuit.forget()
    this.outages.end()
    this.problems.endAll('ROSTER')
    this.problems.endAll('CONFLICT')
  }

  /** Writes what could wait until now. */
  async flush(): Promise<void> {
    const { intake, records, tenure } = this
    if (tenure.standing !== 'at-work' || !tenure.mayCall) return
    this.#flushedSince = performance.now()
    intake.absorbAll()
    try {
      await records.saveStale()
    } catch (error) {
      if (!(error instanceof StoreFailure)) tenure.lose()
    }
  }
}

function ignoreStoreFailure(error: unknown): void {
  if (!(error instanceof StoreFailure)) throw error
}
