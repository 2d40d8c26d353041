/**
 * What to do next for a user: a pure function of what is recorded, of what this chain of calls has learnt, and of the
 * facts of the moment. `apply.ts` turns the answer into a changed record; then it is asked again.
 */
import { unprovenPauseMs } from './timing.js'
import { mayBeUndone, type Slot, slotOf, type UserRecord } from './user-record.js'

/** One request to the service. */
export type Call =
  /** `replaces`: with `recreateIfExists`. */
  | { readonly kind: 'create'; readonly target: number; readonly replaces: boolean }
  | { readonly kind: 'update'; readonly target: number; readonly id: number }
  | { readonly kind: 'unsubscribe'; readonly target: number; readonly id: number }

export type Step =
  | { readonly kind: 'call'; readonly call: Call }
  /** Look whether another process has written the record meanwhile. */
  | { readonly kind: 'reread' }
  /** Nothing of ours can be there: drop the slot. */
  | { readonly kind: 'forget'; readonly slot: Slot }
  /** Nothing may be done before that time, or (`store`) while the store fails. */
  | { readonly kind: 'wait'; readonly until: number | 'store' }
  | { readonly kind: 'conflict' }
  | { readonly kind: 'done' }

/** What a chain of calls for one user has learnt so far. Each chain begins with nothing. */
export interface Learnt {
  /** The targets for which a plain create was answered 409. */
  readonly takenTargets: Set<number>
  /** The targets for which even a create with `recreateIfExists` was answered 409. */
  readonly overlappedTargets: Set<number>
  /** Whether the subscription of the present configuration was proven to exist. */
  isProven: boolean
  /** Whether an update was answered that there is no subscription with the recorded id. */
  isMissing: boolean
  /** Whether the store still says what this process knows. */
  wasReread: boolean
}

export function nothingLearnt(): Learnt {
  return {
    takenTargets: new Set(),
    overlappedTargets: new Set(),
    isProven: false,
    isMissing: false,
    wasReread: false,
  }
}

export interface Facts {
  /** Monotonic. */
  readonly now: number
  /** The target of the present configuration. */
  readonly target: number
  /** The present generation. */
  readonly generation: number
  /** Whether there are parameters or headers: without any there is nothing to update, and no proof by id. */
  readonly hasParameters: boolean
  /** Whether a subscription of another target cannot exist next to one of the present target. */
  readonly isInTheWay: (target: number) => boolean
  /** Whether a subscription of an earlier generation has a parameter that is no longer wanted. */
  readonly hasSurplus: (generation: number) => boolean
  readonly isStoreWorking: boolean
  /** Whether nobody else can have brought newer parameters, which an update would undo. */
  readonly mayUpdate: boolean
  /** What stands at the first meeting with a user is replaced. */
  readonly replacesExisting: boolean
  /** Whether this visit is to prove that the subscription exists. */
  readonly wantsProof: boolean
  /** Whether that proof is to go by id. */
  readonly wantsProofById: boolean
  /** Whether it may have ended together with another one. */
  readonly suspectsEnd: boolean
}

const done: Step = { kind: 'done' }
const conflict: Step = { kind: 'conflict' }

export function decide(record: UserRecord, learnt: Learnt, facts: Facts): Step {
  if (!record.isRemoved) {
    const step = keep(record, learnt, facts)
    if (step.kind === 'conflict') {
      // What is in the way may be our own, by a create that was never answered.
      const hidden = record.slots.find((slot) => slot.id === undefined && facts.isInTheWay(slot.target))
      if (hidden !== undefined) return end(hidden, learnt, facts)
    }
    if (step.kind !== 'done') return step
  }
  const surplus = record.slots.find((slot) => record.isRemoved || slot.target !== facts.target)
  return surplus === undefined ? done : end(surplus, learnt, facts)
}

/** Towards a proven subscription of the present configuration. */
function keep(record: UserRecord, learnt: Learnt, facts: Facts): Step {
  const inTheWay = record.slots.find((slot) => slot.id !== undefined && facts.isInTheWay(slot.target))
  if (inTheWay !== undefined) return end(inTheWay, learnt, facts)
  const slot = slotOf(record, facts.target)
  if (slot === undefined)
    return facts.isStoreWorking ? create(facts.target) : { kind: 'wait', until: 'store' }
  if (slot.id === undefined) return meet(slot, learnt, facts)
  if (slot.isGone) return restore(record, slot, slot.id, learnt, facts)
  if (slot.doubt === 'unanswered') return settle(record, slot, slot.id, learnt, facts)
  if (facts.hasSurplus(slot.generation)) return replace(slot, learnt, facts)
  if (slot.generation < facts.generation && facts.hasParameters && facts.mayUpdate) {
    return renew(slot, slot.id, learnt, facts)
  }
  return prove(record, slot, slot.id, learnt, facts)
}

/** A user without an id: new, or one whose first create was not answered. */
function meet(slot: Slot, learnt: Learnt, facts: Facts): Step {
  if (!learnt.takenTargets.has(slot.target)) return create(slot.target)
  const mayBeOurs = slot.doubt !== 'none'
  return mayBeOurs || facts.replacesExisting ? replace(slot, learnt, facts) : conflict
}

/** The recorded id is gone. 201 to a plain create restores the subscription; 409 means that another one stands there. */
function restore(record: UserRecord, slot: Slot, id: number, learnt: Learnt, facts: Facts): Step {
  if (learnt.takenTargets.has(slot.target)) {
    if (slot.doubt !== 'none') return replace(slot, learnt, facts)
    // It may be the recorded one after all: the 404 of an earlier visit may have been a gateway's.
    if (facts.hasParameters && facts.mayUpdate && !learnt.isMissing) return update(slot, id)
    return learnt.wasReread ? conflict : { kind: 'reread' }
  }
  return facts.now < record.restorableFrom
    ? { kind: 'wait', until: record.restorableFrom }
    : create(slot.target)
}

/** A create was not answered. The recorded id may be the real one still, or another subscription has taken its place. */
function settle(record: UserRecord, slot: Slot, id: number, learnt: Learnt, facts: Facts): Step {
  if (facts.hasParameters && facts.mayUpdate) return learnt.isProven ? done : update(slot, id)
  // Without a proof by id only a recreate tells which id is the real one.
  if (learnt.takenTargets.has(slot.target)) return replace(slot, learnt, facts)
  const earliest = Math.max(slot.settledFrom, record.restorableFrom)
  return facts.now < earliest ? { kind: 'wait', until: earliest } : create(slot.target)
}

/** Its parameters are of an earlier generation, or may become so again: then they are brought a second time. */
function renew(slot: Slot, id: number, learnt: Learnt, facts: Facts): Step {
  const { lateUpdate } = slot
  const isWaitedFor = learnt.isProven && mayBeUndone(slot, facts.generation, facts.now)
  return isWaitedFor && lateUpdate ? { kind: 'wait', until: lateUpdate.settledFrom } : update(slot, id)
}

function prove(record: UserRecord, slot: Slot, id: number, learnt: Learnt, facts: Facts): Step {
  if (learnt.isProven || !facts.wantsProof) return done
  // A plain create would restore at once what has to wait: until then only a proof by id is possible.
  const mayRestore = facts.now >= record.restorableFrom
  const isById = facts.hasParameters && (slot.doubt === 'loaded' || facts.wantsProofById || !mayRestore)
  if (isById && facts.mayUpdate && !(facts.suspectsEnd && mayRestore)) return update(slot, id)
  if (isById && learnt.takenTargets.has(slot.target)) {
    // What has ended is restored by a single call; a proof by id of what has not is left to the next visit.
    return facts.mayUpdate ? done : { kind: 'wait', until: facts.now + unprovenPauseMs }
  }
  return mayRestore ? create(slot.target) : { kind: 'wait', until: record.restorableFrom }
}

/** Towards no subscription in this slot. */
function end(slot: Slot, learnt: Learnt, facts: Facts): Step {
  if (slot.id === undefined && (slot.doubt === 'none' || learnt.overlappedTargets.has(slot.target))) {
    return { kind: 'forget', slot }
  }
  if (!facts.isStoreWorking) return { kind: 'wait', until: 'store' }
  if (slot.id !== undefined) {
    return { kind: 'call', call: { kind: 'unsubscribe', target: slot.target, id: slot.id } }
  }
  // What an unanswered create has made can only be ended by its id, which creating it again tells.
  if (facts.now < slot.settledFrom) return { kind: 'wait', until: slot.settledFrom }
  return learnt.takenTargets.has(slot.target) ? replace(slot, learnt, facts) : create(slot.target)
}

/** With `recreateIfExists`, which must not happen while an earlier create may still take effect. */
function replace(slot: Slot, learnt: Learnt, facts: Facts): Step {
  if (learnt.overlappedTargets.has(slot.target)) return conflict
  if (!facts.isStoreWorking) return { kind: 'wait', until: 'store' }
  if (facts.now < slot.settledFrom) return { kind: 'wait', until: slot.settledFrom }
  return { kind: 'call', call: { kind: 'create', target: slot.target, replaces: true } }
}

function create(target: number): Step {
  return { kind: 'call', call: { kind: 'create', target, replaces: false } }
}

function update({ target }: Slot, id: number): Step {
  return { kind: 'call', call: { kind: 'update', target, id } }
}
