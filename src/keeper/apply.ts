/** What the answer to a call means: the next record, what was learnt, and what is to be reported. No I/O, no clock. */
import { type Call, type Facts, hasSurplus, type Learnt } from './decide.js'
import {
  earlierStamp,
  isSettled,
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

/** What an answer changes. */
type Changes = Partial<Applied>

/** @param record - as it was before the call */
export function apply(record: UserRecord, call: Call, answer: Answer, context: Context): Applied {
  const changes = changesBy(record, call, answer, context)
  return { record, learnt: context.learnt, report: {}, isProof: false, ...changes }
}

function changesBy(record: UserRecord, call: Call, answer: Answer, context: Context): Changes {
  if (answer.kind === 'created') return afterCreated(record, call, answer.id, context)
  switch (call.kind) {
    case 'unsubscribe':
      return afterUnsubscribe(record, call.key, answer, context)
    case 'update':
      return afterUpdate(record, call.key, answer, context)
    case 'create':
      return afterConflict(record, call.key, context)
    default:
      return afterOverlap(record, call, context)
  }
}

function afterCreated(record: UserRecord, call: Call, id: number, context: Context): Changes {
  const { facts, learnt, times } = context
  const { generation, names, spec } = facts
  const before = stateOf(record, call.key)
  const { types, callbackUrl } = before ?? spec
  const state = { types, callbackUrl, generation, parameterNames: names, id, provenAt: times.sentAt }
  const noted = noteReplacing(withState(record, state), call, times)
  if (!isPresent(call.key, facts)) return { record: noted, report: lateReport(record, call, context) }

  const { interruption, ...created } = noted
  const proven = { record: created, learnt: { ...learnt, isProven: true }, isProof: true }
  const gapOf = (cause: KeeperGap['cause'], lastProvenAt: number | undefined) =>
    gapBetween(record.username, lastProvenAt, id, cause, times)

  if (before?.id === undefined) {
    const isFirst = interruption === undefined && !before?.isOutcomeUnknown
    const cause = before?.isOutcomeUnknown ? 'replaced' : 'changed'
    const gap = isFirst ? {} : { gap: gapOf(cause, interruption?.lastProvenAt) }
    return { ...proven, report: { isCreated: true, ...gap } }
  }

  const provenAt = interruption ? earlierStamp(interruption.lastProvenAt, before.provenAt) : before.provenAt
  if (call.kind === 'recreate' || before.isEnding) {
    const isOwnDoing = before.isEnding || (hasSurplus(before, facts) && !before.isOutcomeUnknown)
    const gap = gapOf(isOwnDoing ? 'changed' : 'replaced', provenAt)
    return { ...proven, report: { isRestored: true, gap } }
  }
  const restored = {
    ...created,
    restoredCount: record.restoredCount + 1,
    restoresSinceDelivery: record.restoresSinceDelivery + 1,
    restoredAt: times.answeredAt,
  }
  const report = { isRestored: true, gap: gapOf('ended', provenAt), end: endOf(record) }
  return { ...proven, record: restored, report }
}

/** An earlier create had no answer. Now it is known: it made nothing, or that ended before its successor was there. */
function lateReport(record: UserRecord, call: Call, { facts, times }: Context): Report {
  const successor = stateOf(record, facts.key)
  if (call.kind !== 'create' || !facts.isWanted || successor?.id === undefined) return {}
  return { gap: gapBetween(record.username, undefined, successor.id, 'replaced', times) }
}

/** A plain create was answered 409: something stands there. */
function afterConflict(record: UserRecord, key: string, context: Context): Changes {
  const learnt = { ...context.learnt, taken: union(context.learnt.taken, [key]) }
  const state = stateOf(record, key)
  return isSettled(state) ? proof(record, state, { ...context, learnt }) : { learnt }
}

/** A recreate was answered 409. It would have replaced an identical subscription, so nothing of ours exists. */
function afterOverlap(record: UserRecord, call: Call, { learnt, times }: Context): Changes {
  const { key } = call
  const overlapped = { ...learnt, overlapped: union(learnt.overlapped, [key]) }
  const tried = noteReplacing(record, call, times)
  const state = stateOf(record, key)
  if (state?.id === undefined) return { record: withoutState(tried, key), learnt: overlapped }
  const { isOutcomeUnknown: _, ...known } = state
  return { record: withState(tried, { ...known, isGone: true }), learnt: overlapped }
}

function afterUpdate(record: UserRecord, key: string, answer: Answer, context: Context): Changes {
  const { facts, learnt } = context
  const state = stateOf(record, key)
  if (state === undefined) return {}
  if (answer.kind === 'not-found') {
    return { record: withState(record, { ...state, isGone: true }), learnt: { ...learnt, isMissing: true } }
  }
  const { isGone: _, isOutcomeUnknown: __, isEnding: ___, ...present } = state
  const parameterNames = union(present.parameterNames, facts.names)
  return proof(record, { ...present, parameterNames, generation: facts.generation }, context)
}

function afterUnsubscribe(
  record: UserRecord,
  key: string,
  answer: Answer,
  { facts, times, learnt: before }: Context,
): Changes {
  const learnt = { ...before, taken: [] }
  const state = stateOf(record, key)
  if (state === undefined) return { learnt }
  const { id: _, isGone: __, ...unknown } = state
  const ended = state.isOutcomeUnknown ? withState(record, unknown) : withoutState(record, key)
  if (!facts.isWanted) return { record: ended, learnt }
  if (isPresent(key, facts) || overlaps(state, facts.spec)) {
    const interruption = record.interruption ?? { lastProvenAt: state.provenAt }
    return { record: { ...ended, interruption }, learnt }
  }
  const successor = stateOf(record, facts.key)
  if (answer.kind !== 'not-found' || successor?.id === undefined) return { record: ended, learnt }
  // The subscription had ended before its successor was there; or else an unsubscribe without an answer took effect.
  const cause = state.isEnding ? 'changed' : 'ended'
  const gap = gapBetween(record.username, state.provenAt, successor.id, cause, times)
  return { record: ended, learnt, report: state.isEnding ? { gap } : { gap, end: endOf(record) } }
}

/** `decide` asks for a proof of the wanted subscription alone. */
function proof(record: UserRecord, state: SubscriptionState, { facts, learnt, times }: Context): Changes {
  // Where there are no parameters, there is no more to be known of them.
  const generation = facts.names.length === 0 ? facts.generation : state.generation
  const proven = withState(record, { ...state, generation, provenAt: times.sentAt })
  return { record: proven, learnt: { ...learnt, isProven: true }, isProof: true }
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
