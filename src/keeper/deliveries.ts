/** Deliveries as proofs. Noting one must cost next to nothing, so what follows from it is worked out when it matters. */
import { markStale } from './chunk.js'
import { deliveryLagMs } from './timing.js'
import type { UserRecord } from './user-record.js'

export interface DeliveryFacts {
  /** The target of the present configuration. */
  readonly target: number | undefined
  readonly sweepIntervalMs: number
}

/** Notes that a delivery of the recorded id has arrived. */
export function noteDelivery(record: UserRecord, id: number): void {
  record.deliveredId = id
  record.deliveredSince = performance.now()
  record.deliveredAt = Date.now()
  markStale(record)
}

/**
 * Draws the conclusions from the last delivery that was noted: the subscription existed a minute before, and its next
 * probe can wait.
 *
 * @returns whether it is the first delivery after a restore
 */
export function absorbDelivery(record: UserRecord, { target, sweepIntervalMs }: DeliveryFacts): boolean {
  const { deliveredId, deliveredSince, deliveredAt } = record
  if (deliveredId === undefined) return false
  record.deliveredId = undefined
  record.deliveryAt = deliveredAt
  const slot = record.slots.find(({ id }) => id === deliveredId)
  const provenSince = deliveredSince - deliveryLagMs
  // A late callback of a subscription that is gone proves nothing; one that comes later, that it was not gone.
  if (slot === undefined || (slot.isGone && provenSince <= slot.goneSince)) return false
  if (slot.isGone) {
    slot.isGone = false
    record.hasConflict = false
    record.dueFrom = Math.min(record.dueFrom, deliveredSince)
  }
  const provenAt = deliveredAt - deliveryLagMs
  if (slot.provenAt === undefined || slot.provenAt < provenAt) slot.provenAt = provenAt
  if (!slot.isCreating && provenSince >= slot.settledFrom) slot.doubt = 'none'
  if (slot.target !== target) return false
  if (record.provenSince < provenSince) record.provenSince = provenSince
  const nextProbeFrom = provenSince + sweepIntervalMs
  if (record.isQuiet && record.dueFrom < nextProbeFrom) record.dueFrom = nextProbeFrom
  if (!endRestoreWait(record)) return false
  // Without parameters a probe, too, had to wait for the time of the next restore.
  record.dueFrom = Math.min(record.dueFrom, nextProbeFrom)
  return true
}

/**
 * Deliveries of an id that arrived in this process count for the record that was read anew, whoever was at work.
 *
 * @param earlier - the record in which they were noted
 */
export function carryOver(earlier: UserRecord, record: UserRecord, id: number): void {
  if (earlier.deliveredId === id) {
    record.deliveredId = id
    record.deliveredSince = earlier.deliveredSince
    record.deliveredAt = earlier.deliveredAt
  }
  if (earlier.deliveryAt === undefined) return
  if (record.deliveryAt !== undefined && record.deliveryAt >= earlier.deliveryAt) return
  const slot = record.slots.find((each) => each.id === id)
  const earlierSlot = earlier.slots.find((each) => each.id === id)
  if (slot === undefined || earlierSlot === undefined) return
  record.deliveryAt = earlier.deliveryAt
  record.provenSince = earlier.provenSince
  slot.provenAt = Math.max(slot.provenAt ?? 0, earlierSlot.provenAt ?? 0) || undefined
  endRestoreWait(record)
}

/** The receiver works for this user: the next end is restored at once. @returns whether there was a restore before */
function endRestoreWait(record: UserRecord): boolean {
  const wasRestored = record.restoresSinceDelivery > 0
  record.restoresSinceDelivery = 0
  record.restorableFrom = 0
  return wasRestored
}
