/** What the answer to a call means: the next record, what was learnt, and what is to be reported. No I/O, no clock. */
import { type Call, type Facts, hasSurplus, type Learnt } from './decide.js'
import {
  earlierStamp,
  isThere,
  overlaps,
  pastStamp,
  type SubscriptionState,
  stateOf,
  type UserRecord,
  union,
  withoutState,
  withState,
} from './record.js'
import type { KeeperGap } from './types.js'

/** What the service answered. */
export type Answer =
  | { readonly kind: 'created'; readonly id: number }
  | { readonly kind: 'ok' | 'conflict' | 'not-found' }

export interface CallTimes {
  /** Wall clock. */
  readonly sentAt: number
  /** Wall clock. */
  readonly answeredAt: number
}

export interface Context {
  readonly facts: Facts
  readonly learnt: Learnt
  readonly times: CallTimes
}

/** What is to be reported of an answer. */
export interface Report {
  /** Subscribed for the first time. */
  readonly isCreated?: boolean
  /** Had to be made anew. */
  readonly isRestored?: boolean
  readonly gap?: KeeperGap
  /** Found ended. `first`: the first end since a delivery; `again`: the user's receiver fails again and again. */
  readonly end?: 'first' | 'again'
}

export interface Applied {
  readonly record: UserRecord
  readonly learnt: Learnt
  readonly report: Report
  /** Whether the answer proves the wanted subscription: its proof was sent when the call was. */
  readonly isProof: boolean
}

/** @param record - as it was before the call */
export function apply(record: UserRecord, call: Call, answer: Answer, context: Context): Applied {
  if (answer.kind === 'created') return applyCreated(record, call, answer.id, context)
  switch (call.kind) {
    case 'unsubscribe':
      return applyUnsubscribe(record, call.key, answer, context)
    case 'update':
      return applyUpdate(record, call.key, answer, context)
    case 'create':
      return applyConflict(record, call.key, context)
    default:
      return applyOverlap(record, call, context)
  }
}

function applyCreated(record: UserRecord, call: Call, id: number, context: Context): Applied {
  const { facts, learnt, times } = context
  const { generation, names, spec } = facts
  const before = stateOf(record, call.key)
  const { types, callbackUrl } = before ?? spec
  const state = { types, callbackUrl, generation, parameterNames: names, id, provenAt: times.sentAt }
  const noted = noteReplacing(withState(record, state), call, times)
  if (!isPresent(call.key, facts)) return unchanged(noted, context)

  const { interruption, ...created } = noted
  const proven = { learnt: { ...learnt, isProven: true }, isProof: true }
  const gapOf = (cause: KeeperGap['cause'], lastProvenAt: number | undefined) =>
    gapBetween(record.username, lastProvenAt, id, cause, times)

  if (before?.id === undefined) {
    const isFirst = interruption === undefined && !before?.isOutcomeUnknown
    const cause = before?.isOutcomeUnknown ? 'replaced' : 'changed'
    const gap = isFirst ? {} : { gap: gapOf(cause, interruption?.lastProvenAt) }
    return { ...proven, record: created, report: { isCreated: true, ...gap } }
  }

  const provenAt = interruption ? earlierStamp(interruption.lastProvenAt, before.provenAt) : before.provenAt
  if (call.kind === 'recreate' || before.isEnding) {
    const isOwnDoing = before.isEnding || (hasSurplus(before, facts) && !before.isOutcomeUnknown)
    const gap = gapOf(isOwnDoing ? 'changed' : 'replaced', provenAt)
    return { ...proven, record: created, report: { isRestored: true, gap } }
  }
  return {
    ...proven,
    record: {
      ...created,
      restoredCount: record.restoredCount + 1,
      restoresSinceDelivery: record.restoresSinceDelivery + 1,
      restoredAt: times.answeredAt,
    },
    report: { isRestored: true, gap: gapOf('ended', provenAt), end: endOf(record) },
  }
}

/** A plain create was answered 409: something stands there. */
function applyConflict(record: UserRecord, key: string, context: Context): Applied {
  const { learnt } = context
  const taken = { ...context, learnt: { ...learnt, taken: union(learnt.taken, [key]) } }
  const state = stateOf(record, key)
  const isOurs = isThere(state) && !state.isOutcomeUnknown
  return isOurs ? proveExistence(record, state, key, taken) : unchanged(record, taken)
}

/** A recreate was answered 409. It would have replaced an identical subscription, so nothing of ours exists. */
function applyOverlap(record: UserRecord, call: Call, context: Context): Applied {
  const { learnt, times } = context
  const { key } = call
  const overlapped = { ...context, learnt: { ...learnt, overlapped: union(learnt.overlapped, [key]) } }
  const tried = noteReplacing(record, call, times)
  const state = stateOf(record, key)
  if (state === undefined) return unchanged(tried, overlapped)
  const { isOutcomeUnknown: _, ...known } = state
  return unchanged(withState(tried, known.id === undefined ? known : { ...known, isGone: true }), overlapped)
}

function applyUpdate(record: UserRecord, key: string, answer: Answer, context: Context): Applied {
  const { facts, learnt } = context
  const state = stateOf(record, key)
  if (state === undefined) return unchanged(record, context)
  if (answer.kind === 'not-found') {
    const missing = { ...context, learnt: { ...learnt, isMissing: true } }
    return unchanged(withState(record, { ...state, isGone: true }), missing)
  }
  const { isGone: _, isOutcomeUnknown: __, isEnding: ___, ...present } = state
  const parameterNames = union(present.parameterNames, facts.names)
  return proveExistence(record, { ...present, parameterNames, generation: facts.generation }, key, context)
}

function applyUnsubscribe(record: UserRecord, key: string, answer: Answer, context: Context): Applied {
  const { facts, times } = context
  const learnt = { ...context.learnt, taken: [] }
  const state = stateOf(record, key)
  if (state === undefined) return unchanged(record, { ...context, learnt })
  const { id: _, isGone: __, ...unknown } = state
  const ended = state.isOutcomeUnknown ? withState(record, unknown) : withoutState(record, key)
  if (!facts.isWanted) return unchanged(ended, { ...context, learnt })

  if (isPresent(key, facts) || overlaps(state, facts.spec)) {
    const interruption = record.interruption ?? { lastProvenAt: state.provenAt }
    return unchanged({ ...ended, interruption }, { ...context, learnt })
  }
  const successor = stateOf(record, facts.key)
  if (answer.kind !== 'not-found' || successor?.id === undefined) {
    return unchanged(ended, { ...context, learnt })
  }
  // The subscription had ended before its successor was there.
  const gap = gapBetween(record.username, state.provenAt, successor.id, 'ended', times)
  return { record: ended, learnt, report: { gap, end: endOf(record) }, isProof: false }
}

function proveExistence(
  record: UserRecord,
  state: SubscriptionState,
  key: string,
  { facts, learnt, times }: Context,
): Applied {
  const proven = withState(record, { ...state, provenAt: times.sentAt })
  const isProof = isPresent(key, facts)
  return { record: proven, learnt: isProof ? { ...learnt, isProven: true } : learnt, report: {}, isProof }
}

function unchanged(record: UserRecord, { learnt }: Context): Applied {
  return { record, learnt, report: {}, isProof: false }
}

function isPresent(key: string, facts: Facts): boolean {
  return facts.isWanted && key === facts.key
}

function endOf({ restoresSinceDelivery }: UserRecord): 'first' | 'again' {
  return restoresSinceDelivery === 0 ? 'first' : 'again'
}

function noteReplacing(record: UserRecord, call: Call, { answeredAt }: CallTimes): UserRecord {
  return call.kind === 'recreate' && !call.isOwn ? { ...record, replacedAt: answeredAt } : record
}

function gapBetween(
  username: string,
  provenBefore: number | undefined,
  subscriptionId: number,
  cause: KeeperGap['cause'],
  { answeredAt }: CallTimes,
): KeeperGap {
  const lastProvenAt = pastStamp(provenBefore, answeredAt)
  return { username, subscriptionId, lastProvenAt, restoredAt: answeredAt, cause }
}
