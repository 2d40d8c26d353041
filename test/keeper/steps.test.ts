/** Single decisions that the service shows only in rare moments, one by one. */
import { describe, expect, test } from 'vitest'
import { type Answer, apply, intentStorage, prepare } from '../../src/keeper/apply.js'
import { type Call, decide, type Facts, type Learnt, nothingLearnt } from '../../src/keeper/decide.js'
import { fromStored, toStored } from '../../src/keeper/stored-record.js'
import { newSlot, newUser, type Slot, type UserRecord } from '../../src/keeper/user-record.js'

const now = 1_000_000
const target = 0

const facts: Facts = {
  now,
  target,
  generation: 1,
  hasParameters: true,
  isInTheWay: () => false,
  hasSurplus: () => false,
  isStoreWorking: true,
  mayUpdate: true,
  replacesExisting: true,
  wantsProof: true,
  wantsProofById: false,
  suspectsEnd: false,
}

function userWith(slot: Partial<Slot>): UserRecord {
  return { ...newUser('alice'), slots: [{ ...newSlot(target, 1), ...slot }] }
}

/** A plain create was answered 409. */
function taken(): Learnt {
  return { ...nothingLearnt(), takenTargets: new Set([target]) }
}

const recreate = { kind: 'call', call: { kind: 'create', target, replaces: true } }

describe('the next step', () => {
  test('for a user whom nobody has met waits for a store that fails', () => {
    const step = decide(newUser('alice'), nothingLearnt(), { ...facts, isStoreWorking: false })
    expect(step).toEqual({ kind: 'wait', until: 'store' })
  })

  test('after a first create without an answer replaces what is there, even where nothing else is replaced', () => {
    const reports = { ...facts, replacesExisting: false }
    expect(decide(userWith({ doubt: 'unanswered' }), taken(), reports)).toEqual(recreate)
    expect(decide(userWith({ doubt: 'none' }), taken(), reports)).toEqual({ kind: 'conflict' })
  })

  test('where another stands in the place of what is gone replaces it if a process that died may have made it', () => {
    const gone = { id: 5, isGone: true }
    expect(decide(userWith({ ...gone, doubt: 'loaded' }), taken(), facts)).toEqual(recreate)
  })

  test('where another stands in the place of what is gone asks the store before it tells of a conflict', () => {
    const user = userWith({ id: 5, isGone: true })
    const learnt = { ...taken(), isMissing: true }
    expect(decide(user, learnt, facts)).toEqual({ kind: 'reread' })
    expect(decide(user, { ...learnt, wasReread: true }, facts)).toEqual({ kind: 'conflict' })
  })

  test('while a restore has to wait is a proof by id, which restores nothing', () => {
    const user = { ...userWith({ id: 5 }), restorableFrom: now + 1 }
    expect(decide(user, nothingLearnt(), facts)).toEqual({
      kind: 'call',
      call: { kind: 'update', target, id: 5 },
    })
  })

  test('without a proof by id waits until a create without an answer is settled', () => {
    const user = userWith({ id: 5, doubt: 'unanswered', settledFrom: now + 1 })
    const step = decide(user, nothingLearnt(), { ...facts, hasParameters: false })
    expect(step).toEqual({ kind: 'wait', until: now + 1 })
  })
})

describe('where a create of ours that was never answered is in the way', () => {
  const other = 1
  const overlapped = { ...taken(), overlappedTargets: new Set([target]) }

  test('of what is wanted now it is looked for, to be ended by its id', () => {
    const user = userWith({})
    user.slots.push({ ...newSlot(other, 1), doubt: 'unanswered' })
    const step = decide(user, overlapped, { ...facts, isInTheWay: (each) => each === other })
    expect(step).toEqual({ kind: 'call', call: { kind: 'create', target: other, replaces: false } })
  })

  test('of nothing, because only others are there, it is forgotten', () => {
    const user = { ...userWith({ doubt: 'unanswered' }), isRemoved: true }
    expect(decide(user, overlapped, facts)).toEqual({ kind: 'forget', slot: user.slots[0] })
  })
})

describe('an answer', () => {
  function answered(user: UserRecord, call: Call, answer: Answer, sentSince = now) {
    prepare(user, call, facts)
    const times = { sentSince, sentAt: sentSince, answeredSince: now + 1, answeredAt: now + 1 }
    return apply(user, call, answer, { learnt: nothingLearnt(), facts, times })
  }

  test('409 is no proof of a subscription that is known to be gone', () => {
    const user = userWith({ id: 5, isGone: true, provenAt: 7 })
    answered(user, { kind: 'create', target, replaces: false }, { kind: 'conflict' })
    expect(user.slots[0]).toMatchObject({ provenAt: 7, isGone: true })
  })

  test('409 is somebody else’s where what is gone was in no doubt, and the store has to know', () => {
    const call: Call = { kind: 'create', target, replaces: false }
    const doubtful = userWith({ id: 5, isGone: true, doubt: 'loaded' })
    expect(answered(doubtful, call, { kind: 'conflict' })).toEqual({ mustSave: false })
    expect(doubtful.slots[0]?.isTaken).toBe(false)
    const user = userWith({ id: 5, isGone: true })
    expect(answered(user, call, { kind: 'conflict' })).toEqual({ mustSave: true })
    expect(user.slots[0]?.isTaken).toBe(true)
    expect(intentStorage(user, call, facts)).toBe('read-back')
    expect(answered(user, call, { kind: 'refused' })).toEqual({ mustSave: true })
    expect(answered(user, call, { kind: 'created', id: 6 }).mustSave).toBe(true)
    expect(user.slots[0]?.isTaken).toBe(false)
  })

  test('404 to the end of an earlier subscription tells of an end also if that was known to be gone', () => {
    const user = userWith({ id: 6 })
    user.slots.push({ ...newSlot(target + 1, 1), id: 5, isGone: true, provenAt: 7 })
    const effects = answered(user, { kind: 'unsubscribe', target: target + 1, id: 5 }, { kind: 'not-found' })
    expect(effects).toMatchObject({
      foundEnd: true,
      gap: { cause: 'ended', subscriptionId: 6, lastProvenAt: 7 },
    })
  })

  test('to an update settles no create that may still take effect after it', () => {
    const call: Call = { kind: 'update', target, id: 5 }
    const user = userWith({ id: 5, doubt: 'unanswered', settledFrom: now + 1 })
    answered(user, call, { kind: 'ok' })
    expect(user.slots[0]?.doubt).toBe('unanswered')
    answered(user, call, { kind: 'ok' }, now + 1)
    expect(user.slots[0]?.doubt).toBe('none')
  })

  test('204 to the end of what was the last that could be there leaves nothing to look for', () => {
    const user = { ...userWith({ id: 5, doubt: 'loaded', settledFrom: now - 1 }), isRemoved: true }
    answered(user, { kind: 'unsubscribe', target, id: 5 }, { kind: 'ok' })
    expect(user.slots).toEqual([])
  })
})

test('that somebody else’s stands in the place of what is gone is known to the process after one that died', () => {
  const stored = toStored(userWith({ id: 5, isGone: true, isTaken: true }), now)
  const load = { wasClosed: false, settledFrom: now, restoreWaitMs: () => 0, now }
  const { slots } = fromStored(JSON.parse(JSON.stringify(stored)), load)
  expect(slots).toMatchObject([{ id: 5, isGone: true, isTaken: true, doubt: 'none' }])
})
