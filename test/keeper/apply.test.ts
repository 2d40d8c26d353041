import { describe, expect, test } from 'vitest'
import { type Answer, apply } from '../../src/keeper/apply.js'
import { type Call, type Facts, nothingLearnt } from '../../src/keeper/decide.js'
import { pastStamp, specKey, stateOf, type UserRecord } from '../../src/keeper/record.js'
import { facts, key, known, moved, recordOf, wider } from './fixtures.js'

const times = { sentAt: 1_000, answeredAt: 1_100 }

const create: Call = { kind: 'create', key }
const recreate: Call = { kind: 'recreate', key, isOwn: false }
const update: Call = { kind: 'update', key, id: 5 }
const unsubscribe: Call = { kind: 'unsubscribe', key, id: 5 }
const created: Answer = { kind: 'created', id: 9 }

function applied(record: UserRecord, call: Call, answer: Answer, given: Partial<Facts> = {}) {
  const before = structuredClone(record)
  const result = apply(record, call, answer, { facts: { ...facts, ...given }, learnt: nothingLearnt, times })
  expect(record).toEqual(before)
  return { ...result, state: stateOf(result.record, call.key) }
}

function gap(cause: string, lastProvenAt: number | undefined, subscriptionId = 9) {
  return { username: 'alice', subscriptionId, lastProvenAt, restoredAt: 1_100, cause }
}

describe('a create that is answered with an id', () => {
  test('subscribes a new user, with the present parameters, and is a proof of when it was sent', () => {
    const { isProof, learnt, report, state } = applied(recordOf(), create, created)
    expect(state).toEqual({ ...known, generation: 7, id: 9, provenAt: 1_000 })
    expect(report).toEqual({ isCreated: true })
    expect([isProof, learnt.isProven]).toEqual([true, true])
  })

  test('restores one that had ended: the next restore waits, and others may have ended, too', () => {
    const { record, report, state } = applied({ ...recordOf(known), restoredCount: 3 }, create, created)
    expect(state).toMatchObject({ id: 9, generation: 7 })
    expect(record).toMatchObject({ restoredCount: 4, restoresSinceDelivery: 1, restoredAt: 1_100 })
    expect(report).toEqual({ isRestored: true, gap: gap('ended', 500), end: 'first' })
  })

  test('says that one ends again and again without a delivery', () => {
    const { report } = applied({ ...recordOf(known), restoresSinceDelivery: 1 }, create, created)
    expect(report.end).toBe('again')
  })

  test('after a create without an answer ends a gap whose beginning nobody knows', () => {
    const { id: _, provenAt: __, ...unnamed } = known
    const { report, state } = applied(recordOf({ ...unnamed, isOutcomeUnknown: true }), create, created)
    expect(report).toEqual({ isCreated: true, gap: gap('replaced', undefined) })
    expect(state?.isOutcomeUnknown).toBeUndefined()
  })

  test('of an earlier configuration, without an answer, ends such a gap of its successor', () => {
    const { id: _, provenAt: __, ...unnamed } = { ...known, ...moved }
    const old = { ...unnamed, isOutcomeUnknown: true } as const
    const call: Call = { kind: 'create', key: specKey(moved) }
    expect(applied(recordOf(old, known), call, created).report).toEqual({
      gap: gap('replaced', undefined, 5),
    })
    // Without a successor, or as the old one was there until now, nothing is known to be missing.
    expect(applied(recordOf(old), call, created).report).toEqual({})
    expect(applied(recordOf(old, known), { ...recreate, key: call.key }, created).report).toEqual({})
  })

  test('after an unsubscribe that made room ends the gap that this began', () => {
    const { record, report } = applied(
      { ...recordOf(), interruption: { lastProvenAt: 400 } },
      create,
      created,
    )
    expect(report).toEqual({ isCreated: true, gap: gap('changed', 400) })
    expect(record.interruption).toBeUndefined()
  })

  test('after an unsubscribe without an answer is a change, and no end', () => {
    const { record, report } = applied(recordOf({ ...known, isEnding: true }), create, created)
    expect(report).toEqual({ isRestored: true, gap: gap('changed', 500) })
    expect(record.restoredCount).toBe(0)
  })

  test('of a user who is wanted no longer reports nothing: the id is there to be ended', () => {
    const { isProof, report, state } = applied(recordOf(), create, created, { isWanted: false })
    expect(state?.id).toBe(9)
    expect([isProof, report]).toEqual([false, {}])
  })
})

describe('a recreate that is answered with an id', () => {
  test('is a gap, and notes when somebody else’s was replaced', () => {
    const { record, report } = applied(recordOf({ ...known, isGone: true }), recreate, created)
    expect(report).toEqual({ isRestored: true, gap: gap('replaced', 500) })
    expect(record).toMatchObject({ replacedAt: 1_100, restoredCount: 0, restoresSinceDelivery: 0 })
  })

  test('of the keeper’s own, by a create without an answer, does not use up the day’s replacement', () => {
    const unsure = recordOf({ ...known, isOutcomeUnknown: true })
    expect(applied(unsure, { ...recreate, isOwn: true }, created).record.replacedAt).toBeUndefined()
  })

  test('of the keeper’s own, to drop a parameter, is a change', () => {
    const surplus = { ...known, parameterNames: ['token', 'old'] }
    const { record, report, state } = applied(recordOf(surplus), { ...recreate, isOwn: true }, created)
    expect(report).toEqual({ isRestored: true, gap: gap('changed', 500) })
    expect(state?.parameterNames).toEqual(['token'])
    expect(record.replacedAt).toBeUndefined()
  })
})

describe('a 409', () => {
  test('to a plain create proves the recorded subscription', () => {
    const { isProof, learnt, state } = applied(recordOf(known), create, { kind: 'conflict' })
    expect(state).toEqual({ ...known, provenAt: 1_000 })
    expect(learnt).toMatchObject({ taken: [key], isProven: true })
    expect(isProof).toBe(true)
  })

  test.each([
    ['that is gone', { ...known, isGone: true as const }],
    ['of unknown outcome', { ...known, isOutcomeUnknown: true as const }],
  ])('proves nothing of a subscription %s', (_name, state) => {
    const result = applied(recordOf(state), create, { kind: 'conflict' })
    expect(result.state).toEqual(state)
    expect(result.learnt).toMatchObject({ taken: [key], isProven: false })
  })

  test('to a recreate means that nothing of ours is there', () => {
    const { learnt, record, state } = applied(recordOf({ ...known, isOutcomeUnknown: true }), recreate, {
      kind: 'conflict',
    })
    expect(state).toEqual({ ...known, isGone: true })
    expect(learnt.overlapped).toEqual([key])
    expect(record.replacedAt).toBe(1_100)
    const { id: _, ...unnamed } = { ...known, isOutcomeUnknown: true as const }
    expect(applied(recordOf(unnamed), recreate, { kind: 'conflict' }).record.subscriptions).toEqual([])
  })
})

describe('an update', () => {
  test('brings the present parameters, and settles everything that was unknown', () => {
    const unsure = { ...known, isGone: true, isOutcomeUnknown: true, isEnding: true } as const
    const { isProof, report, state } = applied(
      recordOf(unsure),
      update,
      { kind: 'ok' },
      { names: ['tenant'] },
    )
    expect(state).toEqual({ ...known, generation: 7, parameterNames: ['token', 'tenant'], provenAt: 1_000 })
    expect([isProof, report]).toEqual([true, {}])
  })

  test('that is answered 404 says that the id is gone', () => {
    const { learnt, state } = applied(recordOf(known), update, { kind: 'not-found' })
    expect(state).toEqual({ ...known, isGone: true })
    expect(learnt).toMatchObject({ isMissing: true, isProven: false })
  })
})

describe('an unsubscribe', () => {
  test('of a user who is wanted no longer leaves nothing', () => {
    const { record, report } = applied(recordOf(known), unsubscribe, { kind: 'ok' }, { isWanted: false })
    expect(record).toEqual({ ...recordOf(), born: record.born })
    expect(report).toEqual({})
  })

  test('leaves what a create without an answer may have made', () => {
    const { state } = applied(recordOf({ ...known, isOutcomeUnknown: true }), unsubscribe, { kind: 'ok' })
    expect(state).toMatchObject({ isOutcomeUnknown: true })
    expect(state?.id).toBeUndefined()
  })

  test('that makes room begins a gap, of which the first beginning counts', () => {
    const call: Call = { ...unsubscribe, key: specKey(wider) }
    const { record } = applied(recordOf({ ...known, ...wider }), call, { kind: 'ok' })
    expect(record.interruption).toEqual({ lastProvenAt: 500 })
    const again = applied(
      { ...recordOf({ ...known, ...wider }), interruption: { lastProvenAt: 300 } },
      call,
      {
        kind: 'ok',
      },
    )
    expect(again.record.interruption).toEqual({ lastProvenAt: 300 })
  })

  test('of an old callback URL is no gap, unless that one had ended before', () => {
    const old = { ...known, ...moved, id: 4, provenAt: 200 }
    const record = recordOf(old, known)
    const call: Call = { kind: 'unsubscribe', key: specKey(moved), id: 4 }
    expect(applied(record, call, { kind: 'ok' }).report).toEqual({})
    expect(applied(record, call, { kind: 'not-found' }).report).toEqual({
      gap: gap('ended', 200, 5),
      end: 'first',
    })
    expect(applied(recordOf(old), call, { kind: 'not-found' }).report).toEqual({})
  })

  test('that an unsubscribe without an answer may have ended is no end that was found', () => {
    const old = { ...known, ...moved, id: 4, provenAt: 200, isEnding: true } as const
    const call: Call = { kind: 'unsubscribe', key: specKey(moved), id: 4 }
    expect(applied(recordOf(old, known), call, { kind: 'not-found' }).report).toEqual({
      gap: gap('changed', 200, 5),
    })
  })
})

test('a proof confirms the generation where there are no parameters', () => {
  const generationAfter = (names: string[]) =>
    applied(recordOf(known), create, { kind: 'conflict' }, { names }).state?.generation
  expect([generationAfter([]), generationAfter(['token'])]).toEqual([7, 6])
})

test('a stamp of the future counts as none', () => {
  expect([pastStamp(5, 5), pastStamp(6, 5), pastStamp(undefined, 5)]).toEqual([5, undefined, undefined])
})
