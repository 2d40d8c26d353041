/** What a call and its answer mean for a user's record. No I/O and no clock of its own. */
import type { Call, Facts, Learnt } from './decide.js'
import type { KeeperGap } from './keeper-types.js'
import { earlierStamp, pastStamp, restoreWaitMs, settlingMs } from './timing.js'
import { isMet, mayBeUndone, newSlot, type Slot, slotOf, type UserRecord } from './user-record.js'

/** What came of a call. `lost`: it may have taken effect. `refused`: it surely had no effect, or can be repeated. */
export type Answer =
  | { readonly kind: 'created'; readonly id: number }
  | { readonly kind: 'conflict' | 'ok' | 'not-found' | 'lost' | 'refused' }

/** When a call was made. */
export interface CallTimes {
  /** Monotonic. */
  readonly sentSince: number
  /** Wall clock. */
  readonly sentAt: number
  /** Monotonic. */
  readonly answeredSince: number
  /** Wall clock. */
  readonly answeredAt: number
}

/** What others are to be told of. */
export interface Effects {
  readonly gap?: KeeperGap
  /** Whether the subscription was found to have ended. */
  readonly foundEnd?: boolean
  readonly created?: boolean
  readonly restored?: boolean
  /** Whether a subscription may have been replaced whose id was never known. */
  readonly replacedUnknown?: boolean
  /** Whether the store has to learn of it soon: an id or a doubt has changed. */
  readonly mustSave: boolean
}

/** Notes in the record what a call might bring about, before it is sent. */
export function prepare(record: UserRecord, call: Call, { generation }: Facts): void {
  if (call.kind !== 'create') return
  let slot = slotOf(record, call.target)
  if (slot === undefined) {
    slot = newSlot(call.target, generation)
    record.slots.push(slot)
  }
  slot.isCreating = true
}

/** The call was not sent: nothing can come of it. */
export function takeBack(record: UserRecord, { target }: Call): void {
  const slot = slotOf(record, target)
  if (slot !== undefined) slot.isCreating = false
}

/**
 * How the intent is to be stored before the call is sent. `read-back`: it must stand there for certain. `written`: as
 * well as the store can. Not at all for the probe of a recorded user who has parameters: should it create, and the
 * process crash, then the next process finds that out by the recorded id.
 */
export function intentStorage(
  record: UserRecord,
  call: Call,
  facts: Facts,
): 'read-back' | 'written' | 'none' {
  if (call.kind === 'update') return 'none'
  if (call.kind === 'unsubscribe' || call.replaces) return 'read-back'
  const slot = slotOf(record, call.target)
  if (slot?.id === undefined || slot.isTaken) return 'read-back'
  return facts.hasParameters ? 'none' : 'written'
}

/** Whether the store still says that a create is unanswered which has been answered now. */
function hasStoredIntent(slot: Slot, { replaces }: { replaces: boolean }, facts: Facts): boolean {
  return replaces || slot.id === undefined || slot.isTaken || !facts.hasParameters
}

export function apply(record: UserRecord, call: Call, answer: Answer, context: Context): Effects {
  const { facts, times } = context
  const slot = slotOf(record, call.target)
  if (slot === undefined) return { mustSave: false }
  if (call.kind === 'unsubscribe') return applyUnsubscribe(record, slot, answer, context)
  if (call.kind === 'update') return applyUpdate(record, slot, answer, context)
  slot.isCreating = false
  switch (answer.kind) {
    case 'created': {
      const replacedUnknown = call.replaces && slot.doubt !== 'none'
      return { ...applyCreated(record, slot, { ...call, id: answer.id }, context), replacedUnknown }
    }
    case 'conflict':
      return applyConflict(record, slot, call, context)
    case 'refused':
      return { mustSave: hasStoredIntent(slot, call, facts) }
    default:
      slot.doubt = 'unanswered'
      slot.settledFrom = times.answeredSince + settlingMs
      return { mustSave: true }
  }
}

type Context = { readonly facts: Facts; readonly learnt: Learnt; readonly times: CallTimes }

function applyCreated(
  record: UserRecord,
  slot: Slot,
  { id, replaces }: { id: number; replaces: boolean },
  { facts, learnt, times }: Context,
): Effects {
  const { answeredAt, answeredSince, sentAt, sentSince } = times
  const hadId = slot.id !== undefined
  const mayHaveBeen = slot.doubt === 'unanswered'
  const hadSurplus = facts.hasSurplus(slot.generation)
  const { interruption } = record
  const provenBefore = interruption ? earlierStamp(interruption.lastProvenAt, slot.provenAt) : slot.provenAt
  const lastProvenAt = pastStamp(provenBefore, answeredAt)
  if (!isMet(record) && interruption === undefined && !mayHaveBeen) record.metAt = sentAt
  // A plain create leaves open what an earlier one, unanswered, may still do.
  const isSettled = replaces || sentSince >= slot.settledFrom
  if (isSettled) slot.doubt = 'none'
  slot.id = id
  slot.isGone = false
  slot.isTaken = false
  slot.generation = facts.generation
  slot.lateUpdate = undefined
  slot.provenAt = sentAt
  if (record.isRemoved || slot.target !== facts.target) return { mustSave: true }

  learnt.isProven = true
  record.provenSince = sentSince
  record.hasConflict = false
  const gapOf = (cause: KeeperGap['cause'], provenAt: number | undefined): KeeperGap => ({
    username: record.username,
    subscriptionId: id,
    lastProvenAt: provenAt,
    restoredAt: answeredAt,
    cause,
  })
  record.interruption = undefined
  if (!hadId) {
    if (interruption === undefined && !mayHaveBeen) return { created: true, mustSave: true }
    // An unanswered create may have made one that ended since.
    const provenAt = pastStamp(interruption?.lastProvenAt, answeredAt)
    return { created: true, gap: gapOf(mayHaveBeen ? 'replaced' : 'changed', provenAt), mustSave: true }
  }
  if (replaces) {
    const cause = hadSurplus ? 'changed' : 'replaced'
    return { restored: true, gap: gapOf(cause, lastProvenAt), mustSave: true }
  }
  record.restoredCount++
  record.restoresSinceDelivery++
  record.restoredAt = answeredAt
  record.restorableFrom = answeredSince + restoreWaitMs(record.restoresSinceDelivery)
  return { restored: true, foundEnd: true, gap: gapOf('ended', lastProvenAt), mustSave: true }
}

function applyConflict(
  record: UserRecord,
  slot: Slot,
  { replaces, target }: { replaces: boolean; target: number },
  { facts, learnt, times }: Context,
): Effects {
  if (replaces) {
    // An identical one would have been replaced: so none of ours is there.
    slot.doubt = 'none'
    slot.isGone = slot.id !== undefined
    slot.isTaken = slot.isGone
    slot.goneSince = times.answeredSince
    learnt.overlappedTargets.add(target)
    return { mustSave: true }
  }
  learnt.takenTargets.add(target)
  const mustSave = hasStoredIntent(slot, { replaces }, facts)
  // What stands in the place of one in doubt may be our own.
  slot.isTaken = slot.isGone && slot.doubt === 'none'
  record.takenSince = times.sentSince
  // In doubt it may be another one that stands there: a proof by id tells, where there can be one.
  const isDoubtful = slot.doubt === 'unanswered' || (slot.doubt === 'loaded' && facts.hasParameters)
  const isProof = slot.id !== undefined && !slot.isGone && !isDoubtful
  if (isProof && !record.isRemoved && target === facts.target) {
    learnt.isProven = true
    slot.provenAt = times.sentAt
    record.provenSince = times.sentSince
    record.hasConflict = false
    const gap = gapBeforeProof(record, slot, times)
    if (gap !== undefined) return { gap, mustSave: true }
  }
  return { mustSave: mustSave || slot.isTaken }
}

/** A subscription that another process had made was replaced by this one, which is proven now: that was a gap. */
function gapBeforeProof(record: UserRecord, { id }: Slot, { answeredAt }: CallTimes): KeeperGap | undefined {
  const { interruption, username } = record
  if (interruption === undefined || id === undefined) return undefined
  record.interruption = undefined
  const lastProvenAt = pastStamp(interruption.lastProvenAt, answeredAt)
  return { username, subscriptionId: id, lastProvenAt, restoredAt: answeredAt, cause: 'replaced' }
}

function applyUpdate(
  record: UserRecord,
  slot: Slot,
  answer: Answer,
  { facts, learnt, times }: Context,
): Effects {
  if (answer.kind === 'not-found') {
    slot.isGone = true
    slot.goneSince = times.answeredSince
    learnt.isMissing = true
    return { mustSave: true }
  }
  if (answer.kind === 'lost') noteLateUpdate(slot, facts, times)
  if (answer.kind !== 'ok') return { mustSave: false }
  const isNews = slot.generation !== facts.generation || slot.doubt === 'unanswered'
  slot.isGone = false
  slot.provenAt = times.sentAt
  const { generation } = facts
  const isForGood = !mayBeUndone(slot, generation, times.sentSince)
  // What had to vanish is still there.
  if (isForGood && !facts.hasSurplus(slot.generation)) slot.generation = generation
  if (slot.lateUpdate && times.sentSince >= slot.lateUpdate.settledFrom) slot.lateUpdate = undefined
  if (times.sentSince >= slot.settledFrom) slot.doubt = 'none'
  learnt.isProven = true
  record.provenSince = times.sentSince
  record.hasConflict = false
  const gap = slot.target === facts.target ? gapBeforeProof(record, slot, times) : undefined
  return gap === undefined ? { mustSave: isNews } : { gap, mustSave: true }
}

/** An update without an answer may still take effect. Two are noted as one, with the older parameters and the longer time. */
function noteLateUpdate(slot: Slot, { generation }: Facts, { sentSince, answeredSince }: CallTimes): void {
  const { lateUpdate } = slot
  const isStillLate = lateUpdate !== undefined && sentSince < lateUpdate.settledFrom
  slot.lateUpdate = {
    generation: isStillLate ? Math.min(lateUpdate.generation, generation) : generation,
    settledFrom: answeredSince + settlingMs,
  }
}

function applyUnsubscribe(
  record: UserRecord,
  slot: Slot,
  answer: Answer,
  { facts, learnt, times }: Context,
): Effects {
  if (answer.kind !== 'ok' && answer.kind !== 'not-found') return { mustSave: false }
  learnt.takenTargets.clear()
  // The roster has brought the user back while the call was in flight.
  const wasWanted = !record.isRemoved && slot.target === facts.target
  const lastProvenAt = pastStamp(slot.provenAt, times.answeredAt)
  const existedAfterAll = answer.kind === 'ok' && times.sentSince >= slot.settledFrom
  if (slot.doubt === 'none' || existedAfterAll) {
    record.slots = record.slots.filter((each) => each !== slot)
  } else {
    slot.id = undefined
    slot.isGone = false
    slot.isTaken = false
    slot.doubt = 'unanswered'
  }
  if (record.isRemoved) return { mustSave: true }
  if (wasWanted || facts.isInTheWay(slot.target)) {
    record.interruption ??= { lastProvenAt }
    return { mustSave: true }
  }
  const successor = slotOf(record, facts.target)
  if (answer.kind === 'ok' || successor?.id === undefined) return { mustSave: true }
  // The subscription had ended before its successor was there.
  const gap: KeeperGap = {
    username: record.username,
    subscriptionId: successor.id,
    lastProvenAt,
    restoredAt: times.answeredAt,
    cause: 'ended',
  }
  return { gap, foundEnd: true, mustSave: true }
}
