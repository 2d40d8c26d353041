/** What a keeper says of its users, from memory. */
import type { NewestConfiguration } from './configuration.js'
import { isThere, laterStamp } from './record.js'
import { deliveryLagMs } from './timing.js'
import type { KeeperProblem, KeeperStatus, KeptSubscription, RotationReport, SweepReport } from './types.js'
import type { User, Users } from './users.js'

/** A proof older than so many intervals is none any more. */
const intervalsOfAProof = 2

export function keptSubscriptionOf(user: User, sweepIntervalMs: number): KeptSubscription {
  const { lastDelivery, present, proofByDelivery, record } = user
  const provenByDeliveryAt = proofByDelivery && proofByDelivery.at - deliveryLagMs
  return {
    subscriptionId: isThere(present) ? present.id : undefined,
    state: stateOfUser(user, sweepIntervalMs),
    lastProvenAt: laterStamp(present?.provenAt, provenByDeliveryAt),
    lastDeliveryAt: laterStamp(lastDelivery?.at, record?.deliveryAt),
    restoredCount: record?.restoredCount ?? 0,
  }
}

function stateOfUser(
  { failures, hasConflict, present, provenSince }: User,
  sweepIntervalMs: number,
): KeptSubscription['state'] {
  if (failures > 0) return 'failing'
  if (hasConflict) return 'conflict'
  const isRecent = performance.now() - provenSince <= intervalsOfAProof * sweepIntervalMs
  return isThere(present) && !present.isOutcomeUnknown && isRecent ? 'active' : 'unproven'
}

export function statusOf(kept: Iterable<KeptSubscription>, problems: readonly KeeperProblem[]): KeeperStatus {
  const counts = { active: 0, unproven: 0, conflict: 0, failing: 0 }
  let oldestProofAt: number | undefined = Number.POSITIVE_INFINITY
  for (const { state, lastProvenAt } of kept) {
    counts[state]++
    if (lastProvenAt === undefined) oldestProofAt = undefined
    else if (oldestProofAt !== undefined) oldestProofAt = Math.min(oldestProofAt, lastProvenAt)
  }
  if (oldestProofAt === Number.POSITIVE_INFINITY) oldestProofAt = undefined
  return { counts, oldestProofAt, problems }
}

/** Whose callbacks carry the values of the own configuration for certain, after a sweep. */
export function rotationReportOf(
  users: Users,
  newest: NewestConfiguration,
  { failed }: SweepReport,
): RotationReport {
  const confirmed: string[] = []
  const pending = failed.map(({ username }) => username).filter((name) => users.get(name) === undefined)
  for (const user of users) {
    if (user.isWanted) (hasOwnValues(user, newest) ? confirmed : pending).push(user.username)
  }
  return { confirmed, pending }
}

function hasOwnValues(
  { present, record }: User,
  { generation, isKnown, isSuperseded }: NewestConfiguration,
): boolean {
  const isOnly = record?.subscriptions.length === 1 && record.claim === undefined
  const isSettled = isThere(present) && !present.isOutcomeUnknown && present.generation === generation
  return isKnown && !isSuperseded && isOnly && isSettled
}
