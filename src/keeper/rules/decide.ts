/** What to do next for one user. A pure rule: every step may be repeated at any time. */
import { day } from '../timing.js'
import type { Spec, UserRecord } from './record.js'

/** A request to the service. `recreate` is a create that replaces an identical subscription. */
export type Call =
  | { readonly kind: 'create' | 'recreate'; readonly spec: Spec }
  | { readonly kind: 'update'; readonly id: number }
  | { readonly kind: 'unsubscribe'; readonly id: number }

/**
 * The next call; or `forget`: nothing of the user is left. `wait`: a restore must wait. `conflict`: another subscription
 * is in the way. `blocked`: the unsubscribe route is wrong. `done`: nothing to do.
 */
export type Step = Call | { readonly kind: 'forget' | 'wait' | 'conflict' | 'blocked' | 'done' }

export function isCall(step: Step): step is Call {
  return 'spec' in step || 'id' in step
}

/** Findings of this reconciliation that no record has. */
export interface Learnt {
  /** A create of the wanted spec was answered 409 or unreadably: a subscription exists. */
  readonly isTaken?: boolean
  /** The kind of a call that was refused, or answered 404 on an unproven route. */
  readonly missing?: 'update' | 'unsubscribe'
}

export interface Facts {
  /** The wanted spec of every user. */
  readonly spec: Spec
  /** Names, in lower case, of the parameters and headers of the configuration. */
  readonly names: readonly string[]
  /** The generation of the configuration. */
  readonly generation: number
  readonly isWanted: boolean
  /** Whether a proof is due, or another attempt after a conflict. */
  readonly wantsProof: boolean
  /** Whether the proof must prove the recorded id. */
  readonly wantsProofById: boolean
  /** Whether a subscription may be restored now. */
  readonly mayRestore: boolean
  /** Whether there are parameters to update, on a route that is not known to be wrong. */
  readonly mayUpdate: boolean
  /** Whether the route to unsubscribe is not known to be wrong. */
  readonly mayUnsubscribe: boolean
  /** Whether a subscription in the way may be replaced. */
  readonly replacesExisting: boolean
  /** Wall clock. */
  readonly at: number
}

export function decide(record: UserRecord, learnt: Learnt, facts: Facts): Step {
  const { conflictAt, generation, id, isInterrupted, isUnsure, spec } = record
  const isOutdated = spec !== facts.spec && mayBeOurs(record, facts)
  if (!facts.isWanted || isOutdated) return end(record, learnt, facts)

  const recreate = { kind: 'recreate', spec: facts.spec } as const
  const recreateOrConflict = mayReplace(record, facts) ? recreate : ({ kind: 'conflict' } as const)
  // What the keeper itself has ended waits for nothing.
  const createOrWait =
    facts.mayRestore || isInterrupted
      ? ({ kind: 'create', spec: facts.spec } as const)
      : ({ kind: 'wait' } as const)
  if (id === undefined) {
    if (learnt.isTaken) return recreateOrConflict
    return conflictAt !== undefined && !facts.wantsProof ? { kind: 'conflict' } : createOrWait
  }

  const mayUpdate = facts.mayUpdate && learnt.missing === undefined
  const update = { kind: 'update', id } as const
  if (hasFormerNames(record, facts)) return recreate
  if (mayUpdate && (isUnsure || generation !== facts.generation)) return update
  if (isUnsure) return learnt.isTaken ? recreateOrConflict : createOrWait
  if (learnt.missing !== undefined && !learnt.isTaken) return createOrWait
  if (!facts.wantsProof && !isInterrupted) return { kind: 'done' }
  // An update restores nothing, so it need not wait.
  return mayUpdate && (facts.wantsProofById || !facts.mayRestore) ? update : createOrWait
}

/** An unwanted subscription is ended; first its id is learnt, if it is unsure. */
function end(record: UserRecord, { missing }: Learnt, facts: Facts): Step {
  const { id, isUnsure, spec } = record
  if (!mayBeOurs(record, facts)) return { kind: 'forget' }
  if (!facts.mayUnsubscribe) return { kind: 'blocked' }
  if (id === undefined || isUnsure) return { kind: 'recreate', spec }
  return missing === 'unsubscribe' ? { kind: 'create', spec } : { kind: 'unsubscribe', id }
}

/** Whether there may be a subscription of this keeper, and not only one that must not be replaced. */
function mayBeOurs(record: UserRecord, facts: Facts): boolean {
  return record.id !== undefined || (record.isUnsure === true && mayReplace(record, facts))
}

/** The obstacle is replaced once a day, or at any time if it may be the keeper's own. */
function mayReplace(
  { isUnsure, provenAt, replacedAt }: UserRecord,
  { at, replacesExisting }: Facts,
): boolean {
  // What was proven is the keeper's own, also with `existing: 'report'`.
  if (isUnsure) return replacesExisting || provenAt !== undefined
  return replacesExisting && (replacedAt === undefined || Math.abs(at - replacedAt) >= day)
}

/** Whether the subscription may have parameters that the configuration no longer names: no update removes them. */
export function hasFormerNames({ names }: UserRecord, facts: Pick<Facts, 'names'>): boolean {
  return names.some((name) => !facts.names.includes(name))
}
