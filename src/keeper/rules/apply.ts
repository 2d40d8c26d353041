/** What an answer of the service means for the record. A pure rule. */
import type { KeeperGap } from '../types.js'
import { type Call, type Facts, hasFormerNames, type Learnt } from './decide.js'
import { type UserRecord, union } from './record.js'

/**
 * `unreadable`: a create succeeded, but its answer has no readable id. Of calls with an id: `no-route`: the service has no
 * such route. `refused`: any other refusal, because the interface leaves open how a service answers for an ended subscription.
 */
export type Answer =
  | { readonly kind: 'created'; readonly id: number }
  | { readonly kind: 'ok' | 'conflict' | 'not-found' | 'no-route' | 'refused' | 'unreadable' }

/** Times are of the wall clock. */
export interface Exchange {
  readonly sentAt: number
  readonly answeredAt: number
  /** Whether a 404 of this route is proof. */
  readonly isRouteProven: boolean
}

/** What users are to be subscribed to. */
type Target = Pick<Facts, 'spec' | 'names' | 'generation' | 'isWanted'>

export interface Applied {
  /** The record without a claim. */
  readonly record: UserRecord
  /** Added to earlier findings, unless the answer is `created` or `ok`, which make them obsolete. */
  readonly learnt: Learnt
  /** What the answer proves: the subscription's id, or only its existence. */
  readonly proven?: 'id' | 'existence'
  /** Whether a user was subscribed for the first time. */
  readonly isCreated?: boolean
  /** An interval in which notifications may have been lost: the user was restored. */
  readonly gap?: KeeperGap
}

export function apply(
  record: UserRecord,
  call: Call,
  answer: Answer,
  facts: Target,
  exchange: Exchange,
): Applied {
  const { sentAt, answeredAt, isRouteProven } = exchange
  if ('id' in call) {
    const isMissing = answer.kind === 'not-found' && isRouteProven
    // A plain create shows whether the subscription has ended.
    if (!isMissing && answer.kind !== 'ok') return { record, learnt: { missing: call.kind } }
    if (call.kind === 'unsubscribe') {
      // Also after a 404: the gap is reported when the user is subscribed again.
      return { record: { ...without(record, 'id'), isInterrupted: true }, learnt: {} }
    }
    if (isMissing) return { record: without(record, 'id'), learnt: {} }
    const sure = without(record, 'isUnsure', 'isInterrupted', 'conflictAt')
    const names = union(record.names, facts.names)
    const updated = { ...sure, names, generation: facts.generation, provenAt: sentAt }
    return { record: updated, learnt: {}, proven: 'id' }
  }
  const learnt = call.spec === facts.spec ? { isTaken: true } : {}
  // One replacement a day. Replacing what may be the keeper's own is free, unless the service refused that.
  const usesUpTheDay = call.kind === 'recreate' && (!record.isUnsure || answer.kind === 'conflict')
  const tried = usesUpTheDay ? { ...record, replacedAt: answeredAt } : record
  switch (answer.kind) {
    case 'created':
      return created(tried, call, answer.id, facts, exchange)
    case 'unreadable': {
      // What may have been created before may have ended before this call.
      const provenAt = record.provenAt ?? (record.isUnsure ? undefined : sentAt)
      return { record: { ...without(tried, 'id'), spec: call.spec, isUnsure: true, provenAt }, learnt }
    }
    default: {
      // A recreate replaces an identical subscription: after a 409 none of ours exists.
      if (call.kind === 'recreate') return { record: without(tried, 'id', 'isUnsure'), learnt }
      if (record.id === undefined || record.isUnsure) return { record, learnt }
      // The gap of a spec that is no longer wanted begins with the last proof before.
      const provenAt = call.spec === facts.spec ? { provenAt: sentAt } : {}
      return { record: { ...without(record, 'isInterrupted'), ...provenAt }, learnt, proven: 'existence' }
    }
  }
}

/** A new subscription: the user's first, or one after an interruption. */
function created(
  record: UserRecord,
  { kind, spec }: Extract<Call, { spec: string }>,
  id: number,
  facts: Target,
  { sentAt, answeredAt }: Exchange,
): Applied {
  const { isInterrupted, isUnsure, provenAt, restoredCount, restores } = record
  const isChange = isInterrupted || record.spec !== spec || hasFormerNames(record, facts)
  const wasThere = provenAt !== undefined
  const cause = isChange ? 'changed' : kind === 'create' && wasThere ? 'ended' : 'replaced'
  const known = { id, spec, names: facts.names, generation: facts.generation }
  const made = { ...without(record, 'isUnsure', 'isInterrupted', 'conflictAt'), ...known, provenAt: sentAt }
  // Made only to learn the id and end it: the gap begins with the last proof before. A plain create shows an end.
  const isTemporary = !facts.isWanted || (spec !== facts.spec && kind === 'recreate')
  if (isTemporary) return { record: { ...made, provenAt }, learnt: {} }
  const isFirst = !wasThere && !isUnsure && kind === 'create'
  if (isFirst) return { record: made, learnt: {}, proven: 'id', isCreated: true }
  const { username } = record
  const lastProvenAt = provenAt !== undefined && provenAt <= answeredAt ? provenAt : undefined
  const gap = { username, subscriptionId: id, lastProvenAt, restoredAt: answeredAt, cause } as const
  const isEnd = cause === 'ended'
  const counted = {
    ...made,
    restoredCount: restoredCount + 1,
    ...(isEnd && { restores: restores + 1, restoredAt: answeredAt }),
  }
  return { record: counted, learnt: {}, proven: 'id', gap }
}

function without<Key extends keyof UserRecord>(record: UserRecord, ...keys: Key[]): Omit<UserRecord, Key> {
  const copy = { ...record }
  for (const key of keys) delete copy[key]
  return copy
}
