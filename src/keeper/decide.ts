/**
 * What to do next for a user: a pure function of the record, of what this reconciliation has learnt, and of the facts of
 * the moment. `apply.ts` turns the answer into the next record; then `decide` is asked again.
 */
import {
  isThere,
  overlaps,
  type Spec,
  type SubscriptionState,
  specKey,
  stateOf,
  type UserRecord,
} from './record.js'

/** One request to the service, for the subscription of one spec of the user. */
export type Call =
  | { readonly kind: 'create'; readonly key: string }
  /** A create with `recreateIfExists`. `isOwn`: what it replaces is the keeper's own, as far as the keeper knows. */
  | { readonly kind: 'recreate'; readonly key: string; readonly isOwn: boolean }
  | { readonly kind: 'update' | 'unsubscribe'; readonly key: string; readonly id: number }

export type Step =
  | { readonly kind: 'call'; readonly call: Call }
  /** A restore has to wait until then; monotonic. */
  | { readonly kind: 'wait'; readonly untilFrom: number }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'done' }

/** What one reconciliation has learnt so far; each begins with nothing. */
export interface Learnt {
  /** Keys of specs for which a plain create was answered 409. */
  readonly taken: readonly string[]
  /** Keys of specs for which even a recreate was answered 409. */
  readonly overlapped: readonly string[]
  /** Whether the wanted subscription was proven to exist. */
  readonly isProven: boolean
  /** Whether an update was answered that no subscription has the recorded id. */
  readonly isMissing: boolean
}

export const nothingLearnt: Learnt = { taken: [], overlapped: [], isProven: false, isMissing: false }

export interface Facts {
  /** Monotonic. */
  readonly now: number
  readonly isWanted: boolean
  /** What the user is to be subscribed to, and its key. */
  readonly spec: Spec
  readonly key: string
  readonly generation: number
  /** Names of the parameters and headers of this generation, in lower case. */
  readonly names: readonly string[]
  /** Before this time an ended subscription is not restored; monotonic. */
  readonly restorableFrom: number
  /** The option `existing`. */
  readonly replacesExisting: boolean
  /** Whether the day's one replacement of a subscription that may be somebody else's is still left for this user. */
  readonly mayReplace: boolean
  /** Whether to prove that the subscription exists. */
  readonly wantsProof: boolean
  /** Whether that proof is to go by id, where there are parameters. */
  readonly wantsProofById: boolean
}

export function decide(record: UserRecord, learnt: Learnt, facts: Facts): Step {
  if (facts.isWanted) {
    const step = keep(record, learnt, facts)
    if (step.kind === 'conflict') {
      // A create of ours that was never answered may be what stands in the way: what has an id has been ended before.
      const hidden = record.subscriptions.find((state) => isInTheWay(state, facts))
      if (hidden !== undefined) return end(hidden, learnt, facts)
    }
    if (step.kind !== 'done') return step
  }
  const surplus = record.subscriptions.find((state) => !facts.isWanted || specKey(state) !== facts.key)
  return surplus === undefined ? { kind: 'done' } : end(surplus, learnt, facts)
}

/** Towards one proven subscription of the wanted spec. */
function keep(record: UserRecord, learnt: Learnt, facts: Facts): Step {
  const inTheWay = record.subscriptions.find((state) => state.id !== undefined && isInTheWay(state, facts))
  if (inTheWay !== undefined) return end(inTheWay, learnt, facts)
  const { key } = facts
  const state = stateOf(record, key)
  const isTaken = learnt.taken.includes(key)
  if (state?.id === undefined) return isTaken ? replace(state, learnt, facts) : create(key)

  const update: Step = { kind: 'call', call: { kind: 'update', key, id: state.id } }
  const mayUpdate = facts.names.length > 0
  if (!isThere(state)) {
    if (!isTaken) return restore(facts)
    // The 404 may have come from a gateway. The id of a lost create is only found out by a recreate.
    const mayBeThere = mayUpdate && !learnt.isMissing && !state.isOutcomeUnknown
    return mayBeThere ? update : replace(state, learnt, facts)
  }
  if (state.isOutcomeUnknown) {
    if (mayUpdate) return update
    return isTaken ? replace(state, learnt, facts) : restore(facts)
  }
  // An update keeps what it does not name.
  if (hasSurplus(state, facts)) return recreate(key, true)
  if (mayUpdate && state.generation !== facts.generation) return update
  if (learnt.isProven || !facts.wantsProof) return { kind: 'done' }
  // A plain create proves and restores in one call; an update proves by id, and restores nothing.
  const mayRestore = facts.now >= facts.restorableFrom
  return mayUpdate && (facts.wantsProofById || !mayRestore) ? update : restore(facts)
}

function restore({ key, now, restorableFrom }: Facts): Step {
  return now < restorableFrom ? { kind: 'wait', untilFrom: restorableFrom } : create(key)
}

/** Towards no subscription of this spec. */
function end(state: SubscriptionState, learnt: Learnt, facts: Facts): Step {
  const key = specKey(state)
  if (state.id !== undefined) return { kind: 'call', call: { kind: 'unsubscribe', key, id: state.id } }
  // Only its id can end it, and only creating it again finds out the id.
  return learnt.taken.includes(key) ? replace(state, learnt, facts) : create(key)
}

/** What stands in the way is replaced if it may be ours, by a call that was not answered, and otherwise once a day. */
function replace(state: SubscriptionState | undefined, learnt: Learnt, facts: Facts): Step {
  const key = state === undefined ? facts.key : specKey(state)
  if (learnt.overlapped.includes(key)) return { kind: 'conflict' }
  if (state?.isOutcomeUnknown && (facts.replacesExisting || state.id !== undefined))
    return recreate(key, true)
  return facts.replacesExisting && facts.mayReplace ? recreate(key, false) : { kind: 'conflict' }
}

function create(key: string): Step {
  return { kind: 'call', call: { kind: 'create', key } }
}

function recreate(key: string, isOwn: boolean): Step {
  return { kind: 'call', call: { kind: 'recreate', key, isOwn } }
}

function isInTheWay(state: SubscriptionState, { key, spec }: Facts): boolean {
  return specKey(state) !== key && overlaps(state, spec)
}

/** Whether the subscription may have a parameter that is no longer wanted. */
export function hasSurplus({ parameterNames }: SubscriptionState, { names }: Facts): boolean {
  return parameterNames.some((name) => !names.includes(name))
}
