/** What a keeper says of itself. */
import type { KeeperStatus, KeptSubscription } from './keeper-types.js'
import type { Keeping } from './keeping.js'
import { slotOf, type UserRecord } from './user-record.js'

/** A proof older than so many intervals is none any more. */
const intervalsOfAProof = 2

export function statusOf(keeping: Keeping): KeeperStatus {
  keeping.absorbAll()
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
  keeping.absorb(record)
  const slot = currentSlot(record, keeping)
  return {
    subscriptionId: slot?.isGone ? undefined : slot?.id,
    state: stateOf(record, keeping),
    lastProvenAt: slot?.provenAt,
    lastDeliveryAt: record.deliveryAt,
    restoredCount: record.restoredCount,
  }
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
  return age <= intervalsOfAProof * keeping.settings.sweepIntervalMs ? 'active' : 'unproven'
}
