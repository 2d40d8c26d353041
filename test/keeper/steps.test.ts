/** Single decisions that the service shows only in rare moments, one by one. */
import { describe, expect, test } from 'vitest'
import { decide, type Facts, type Learnt, nothingLearnt } from '../../src/keeper/decide.js'
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
    expect(decide(user, taken(), facts)).toEqual({ kind: 'reread' })
    expect(decide(user, { ...taken(), wasReread: true }, facts)).toEqual({ kind: 'conflict' })
  })

  test('while a restore has to wait is a proof by id, which restores nothing', () => {
    const user = { ...userWith({ id: 5 }), restoreAllowedAt: now + 1 }
    expect(decide(user, nothingLearnt(), facts)).toEqual({
      kind: 'call',
      call: { kind: 'update', target, id: 5 },
    })
  })

  test('without a proof by id waits until a create without an answer is settled', () => {
    const user = userWith({ id: 5, doubt: 'unanswered', settlesAt: now + 1 })
    const step = decide(user, nothingLearnt(), { ...facts, hasParameters: false })
    expect(step).toEqual({ kind: 'wait', until: now + 1 })
  })
})
