/** What a keeper says of itself. */
import type { KeeperStatus, KeptSubscription, RotationReport, SweepReport } from './keeper-types.js'
import type { Keeping } from './keeping.js'
import { slotOf, type UserRecord } from './user-record.js'

/** A proof older than so many intervals is none any more. */
const intervalsOfAProof = 2

export function statusOf(keeping: Keeping): KeeperStatus {
  keeping.intake.absorbAll()
  const counts = { active: 0, unproven: 0, conflict: 0, failing: 0 }
  let oldestProofAt: number | undefined = Number.POSITIVE_INFINITY
  for (const record of keeping.records.users.values()) {
    if (record.isRemoved) continue
    counts[stateOf(record, keeping)]++
    const provenAt = currentSlot(record, keeping)?.provenAt
    if (provenAt === undefined) oldestProofAt = undefined
    else if (oldestProofAt !== undefined) oldestProofAt = Math.min(oldestProofAt, provenAt)
  }
  if (oldestProofAt === Number.POSITIVE_INFINITY) oldestProofAt = undefined
  return { counts, oldestProofAt, problems: keeping.problems.list() }
}

export function keptSubscriptionOf(keeping: Keeping, username: string): KeptSubscription | undefined {
  const record = keeping.records.users.get(username)
  if (record === undefined || record.isRemoved) return undefined
  keeping.intake.absorb(record)
  const slot = currentSlot(record, keeping)
  return {
    subscriptionId: slot?.isGone ? undefined : slot?.id,
    state: stateOf(record, keeping),
    lastProvenAt: slot?.provenAt,
    lastDeliveryAt: record.deliveryAt,
    restoredCount: record.restoredCount,
  }
}

/** Whose callbacks carry the values of the present configuration for certain, after a pass. */
export function rotationReportOf(keeping: Keeping, { failed }: SweepReport): RotationReport {
  const { users } = keeping.records
  const confirmed: string[] = []
  const pending = new Set(failed.map(({ username }) => username).filter((name) => !users.has(name)))
  for (const record of users.values()) {
    if (record.isRemoved) continue
    if (hasPresentValues(record, keeping)) confirmed.push(record.username)
    else pending.add(record.username)
  }
  return { confirmed, pending: [...pending] }
}

function hasPresentValues(record: UserRecord, { tenure }: Keeping): boolean {
  const slot = currentSlot(record, { tenure })
  return (
    tenure.isUpToDate &&
    slot?.id !== undefined &&
    !slot.isGone &&
    // A create without an answer may carry the old values.
    slot.doubt !== 'unanswered' &&
    slot.generation === tenure.generation?.generation &&
    record.slots.length === 1
  )
}

function currentSlot(record: UserRecord, { tenure }: Pick<Keeping, 'tenure'>) {
  const { generation } = tenure
  return generation && slotOf(record, generation.target)
}

function stateOf(record: UserRecord, keeping: Keeping): KeptSubscription['state'] {
  if (record.failures > 0) return 'failing'
  if (record.hasConflict) return 'conflict'
  const slot = currentSlot(record, keeping)
  if (slot?.id === undefined || slot.isGone || slot.doubt === 'unanswered') return 'unproven'
  const age = performance.now() - record.provenSince
  return age <= intervalsOfAProof * keeping.sweepIntervalMs ? 'active' : 'unproven'
}
