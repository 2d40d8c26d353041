/** Deliveries as proofs. Noting one must cost next to nothing, so what follows from it is worked out when it matters. */
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
  if (record.chunk !== undefined) record.chunk.isStale = true
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
    record.dueAt = Math.min(record.dueAt, deliveredSince)
  }
  const provenAt = deliveredAt - deliveryLagMs
  if (slot.provenAt === undefined || slot.provenAt < provenAt) slot.provenAt = provenAt
  if (slot.doubt !== 'none' && provenSince >= slot.settlesAt) slot.doubt = 'none'
  if (slot.target !== target) return false
  if (record.provenSince < provenSince) record.provenSince = provenSince
  const nextProbeAt = provenSince + sweepIntervalMs
  if (record.isQuiet && record.dueAt < nextProbeAt) record.dueAt = nextProbeAt
  if (record.restoresSinceDelivery === 0) return false
  record.restoresSinceDelivery = 0
  record.restoreAllowedAt = 0
  return true
}
