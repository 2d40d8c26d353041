/** What to do next for one user. A pure rule: every step may be repeated at any time. */
import type { RouteName } from '../../shared/routes.js'
import { day } from '../timing.js'
import { restoreLeftMs, type Spec, type UserRecord } from './record.js'

/** A request to the service. `recreate` is a create that replaces an identical subscription. */
export type PlannedRequest =
  | { readonly kind: 'create' | 'recreate'; readonly spec: Spec }
  | { readonly kind: 'update'; readonly id: number }
  | { readonly kind: 'unsubscribe'; readonly id: number }

/**
 * Why there is no next request. `done`: nothing to do. `forget`: nothing of the user is left. `waiting`: the next restore must wait.
 * `conflict`: another subscription is in the way. `blocked`: the unsubscribe route is wrong.
 */
export type Conclusion = 'done' | 'forget' | 'waiting' | 'conflict' | 'blocked'
type Decision = PlannedRequest | Conclusion

/** What the answers of this reconciliation have shown, and no record has. */
export interface Findings {
  /** A create of the wanted spec was answered 409 or unreadably: a subscription exists. */
  readonly isTaken?: boolean
  /** The kind of a request with an id that was refused, or answered 404 on an unconfirmed route. */
  readonly inconclusive?: RouteName | undefined
  /** Whether that request was refused. */
  readonly isRefused?: boolean
  /** The service gave the recorded id in this reconciliation. */
  readonly isIdNew?: boolean
  /** The first unsubscribe of this process was answered 2xx. */
  readonly seemsEnded?: boolean
}

export interface Facts {
  /** The wanted spec of every user. */
  readonly spec: Spec
  /** The names of the parameters and headers of the configuration, in lower case. */
  readonly names: readonly string[]
  readonly generation: number
  readonly isWanted: boolean
  /** Whether a proof is due, or another attempt after a conflict. */
  readonly wantsProof: boolean
  /**
   * Whether the next proof is an update: it proves the recorded id. A create that is answered 409 proves only that a
   * subscription exists.
   */
  readonly wantsProofById: boolean
  /** Whether there are parameters to update, on a route that is not known to be wrong. */
  readonly mayUpdate: boolean
  /** Whether the route to unsubscribe is not known to be wrong. */
  readonly mayUnsubscribe: boolean
  /** Whether the route to unsubscribe has ended a subscription. */
  readonly isUnsubscribeConfirmed: boolean
  /** Whether the service gave or confirmed the recorded id to this process. */
  readonly isIdKnown: boolean
  /** Whether a subscription in the way may be replaced. */
  readonly replacesExisting: boolean
  readonly at: number
}

export function decide(record: UserRecord, findings: Findings, facts: Facts): Decision {
  const { conflictAt, generation, id, endedByUs, idUnsure, spec } = record
  const hasOtherSpec = spec !== facts.spec && mayBeOurs(record, facts)
  if (!facts.isWanted || hasOtherSpec) return end(record, findings, facts)

  const recreate = { kind: 'recreate', spec: facts.spec } as const
  const recreateOrConflict = mayReplace(record, facts) ? recreate : 'conflict'
  const mayRestore = restoreLeftMs(record, facts.at) === 0
  // What the keeper itself has ended waits for nothing.
  const create = { kind: 'create', spec: facts.spec } as const
  const createOrWait = mayRestore || endedByUs ? create : 'waiting'
  if (id === undefined) {
    if (findings.isTaken) return recreateOrConflict
    return conflictAt !== undefined && !facts.wantsProof ? 'conflict' : createOrWait
  }

  const isInconclusive = findings.inconclusive !== undefined
  // After an inconclusive request only an id that the service gave just now is worth an update: a 404 shows a wrong route.
  const mayUpdate = facts.mayUpdate && (!isInconclusive || findings.isIdNew)
  const update = { kind: 'update', id } as const
  if (hasFormerNames(record, facts)) return recreate
  if (mayUpdate && (isInconclusive || idUnsure || generation !== facts.generation)) return update
  if (idUnsure) return findings.isTaken ? recreateOrConflict : createOrWait
  // An id that the service gave just now needs no proof.
  if (isInconclusive && !findings.isTaken && !findings.isIdNew) return createOrWait
  if (!facts.wantsProof && !endedByUs) return 'done'
  // An update restores nothing, so it need not wait.
  const wantsUpdate = facts.wantsProofById || !facts.isIdKnown || !mayRestore
  return mayUpdate && wantsUpdate ? update : createOrWait
}

/** An unwanted subscription is ended; first its id is learnt, if it is unsure. */
function end(record: UserRecord, { inconclusive, isIdNew, seemsEnded }: Findings, facts: Facts): Decision {
  const { id, idUnsure, spec } = record
  if (!mayBeOurs(record, facts)) return 'forget'
  if (!facts.mayUnsubscribe) return 'blocked'
  // A create shows whether the untested route has ended the subscription.
  if (seemsEnded) return { kind: 'create', spec }
  const mayBeOutdated = inconclusive === 'unsubscribe' && !isIdNew
  if (id === undefined || idUnsure || mayBeOutdated) return { kind: 'recreate', spec }
  return { kind: 'unsubscribe', id }
}

/** Whether there may be a subscription that this keeper may end. */
function mayBeOurs(record: UserRecord, facts: Facts): boolean {
  return record.id !== undefined || (record.idUnsure === true && mayReplace(record, facts))
}

/** A subscription in the way is replaced once a day, or at any time if it may be the keeper's own. */
function mayReplace(
  { idUnsure, provenAt, replacedAt }: UserRecord,
  { at, replacesExisting }: Facts,
): boolean {
  // What was proven is the keeper's own, also with `existing: 'report'`.
  if (idUnsure) return replacesExisting || provenAt !== undefined
  return replacesExisting && (replacedAt === undefined || Math.abs(at - replacedAt) >= day)
}

/** Whether the subscription may have parameters that the configuration no longer names: no update removes them. */
export function hasFormerNames({ names }: UserRecord, facts: Pick<Facts, 'names'>): boolean {
  return names.some((name) => !facts.names.includes(name))
}
