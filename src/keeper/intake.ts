/** Deliveries as they arrive: proof of life of whom the keeper knows, strays of whom it does not. */
import type { Circuit } from './circuit.js'
import { absorbDelivery, noteDelivery } from './deliveries.js'
import type { Incidents } from './incidents.js'
import type { Problems } from './problems.js'
import type { RecordStore } from './record-store.js'
import { isSettling, type Strays, strayMessage } from './strays.js'
import type { Tenure } from './tenure.js'
import type { UserRecord } from './user-record.js'

export interface IntakeParts {
  readonly records: RecordStore
  readonly strays: Strays
  readonly tenure: Tenure
  readonly circuit: Circuit
  readonly incidents: Incidents
  readonly problems: Problems
  readonly sweepIntervalMs: number
  /** Whether ids that nobody knows are noted: somebody has to look at them later. */
  readonly watchesStrays: () => boolean
}

export class Intake {
  readonly #parts: IntakeParts

  constructor(parts: IntakeParts) {
    this.#parts = parts
  }

  /** A delivery has arrived. */
  deliver(subscriptionId: number): void {
    const { records, strays, watchesStrays } = this.#parts
    const record = records.byId.get(subscriptionId)
    if (record === undefined) {
      // The command line's `check` posts a test delivery under the id 0, which is no subscription's.
      if (subscriptionId !== 0 && watchesStrays()) strays.see(subscriptionId)
      return
    }
    noteDelivery(record, subscriptionId)
    // Whoever is restored, in conflict, or moves to another configuration, is known to be alive at once.
    const { hasConflict, restoresSinceDelivery, slots } = record
    if (hasConflict || restoresSinceDelivery > 0 || slots.length > 1) this.absorb(record)
  }

  /** Draws the conclusions from a user's deliveries, before somebody looks at the record. */
  absorb(record: UserRecord): void {
    const { incidents, sweepIntervalMs, tenure } = this.#parts
    const target = tenure.generation?.target
    if (absorbDelivery(record, { target, sweepIntervalMs })) incidents.delivered()
  }

  absorbAll(): void {
    for (const record of this.#parts.records.users.values()) this.absorb(record)
  }

  /** Tells of strays, and of those that are over. */
  async reviewStrays(now: number): Promise<void> {
    const { problems, records, strays, tenure } = this.#parts
    // One that stands aside for good no longer reads what the one at work has created.
    if (tenure.standing === 'superseded') return
    if (strays.hasCandidate(now)) {
      if (tenure.standing === 'standing-by') await tenure.lookAgain()
      if (tenure.standing === 'blind') return
      if (this.#isSettling()) {
        // Whether what settles it replaces a subscription is known to the process at work only.
        if (tenure.standing === 'standing-by') strays.forgetUnreported()
        return
      }
    }
    const { begun, over } = strays.review(now, (id) => records.byId.has(id))
    for (const subscriptionId of begun) {
      problems.begin('STRAY', strayMessage(subscriptionId), { about: subscriptionId, subscriptionId })
    }
    for (const subscriptionId of over) problems.end('STRAY', subscriptionId)
  }

  #isSettling(): boolean {
    const { circuit, records, tenure } = this.#parts
    const hasParameters = tenure.configuration.names.length > 0
    return isSettling(records.users.values(), { hasParameters, isOutage: circuit.outage !== undefined })
  }
}
