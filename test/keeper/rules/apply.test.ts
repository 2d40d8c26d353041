/** What an answer means, as one table. */
import { describe, expect, test } from 'vitest'
import { type Applied, apply, type Reply } from '../../../src/keeper/rules/apply.js'
import type { Facts, Learnt, PlannedCall } from '../../../src/keeper/rules/decide.js'
import { newRecord, type UserRecord } from '../../../src/keeper/rules/record.js'

const spec = 'behavioral https://app.example.com/'
const old = 'behavioral https://old.example.com/'
const facts: Facts = {
  spec,
  names: ['token'],
  generation: 7,
  isWanted: true,
  wantsProof: false,
  wantsProofById: false,
  mayUpdate: true,
  mayUnsubscribe: true,
  isUnsubscribeProven: true,
  isIdProven: true,
  replacesExisting: true,
  at: 0,
}

const fresh = newRecord('alice', spec, 1)
const kept: UserRecord = { ...fresh, id: 5, names: ['token'], generation: 6, provenAt: 50, restoredCount: 2 }
const create = { kind: 'create', spec } as const
const recreate = { kind: 'recreate', spec } as const
const update = { kind: 'update', id: 5 } as const
const unsubscribe = { kind: 'unsubscribe', id: 5 } as const
const conflict = { kind: 'conflict' } as const
const created = { kind: 'created', id: 9 } as const
const ok = { kind: 'ok' } as const
const gone = { kind: 'gone' } as const
const notFound = { kind: 'not-found' } as const
const unreadable = { kind: 'unreadable' } as const

function applied(
  record: UserRecord,
  call: PlannedCall,
  reply: Reply,
  others: Partial<Facts> = {},
  learnt: Learnt = {},
): Applied {
  return apply(record, { call, reply, sentAt: 100, answeredAt: 101, learnt, facts: { ...facts, ...others } })
}

const without = (record: UserRecord, ...keys: (keyof UserRecord)[]) =>
  Object.fromEntries(Object.entries(record).filter(([key]) => !keys.some((each) => each === key)))
const made = { ...fresh, id: 9, names: ['token'], generation: 7, provenAt: 100 }

type Row = [string, UserRecord, PlannedCall, Reply, Partial<Applied>]

describe('the record after', () => {
  test.each<Row>([
    ['a first create', fresh, create, created, { record: made, proven: 'id' }],
    [
      'a conflict that ends with a create',
      { ...fresh, conflictAt: 40 },
      create,
      created,
      { record: made, proven: 'id' },
    ],
    ['409 of a new user', fresh, create, conflict, { record: fresh, learnt: { isTaken: true } }],
    [
      '409 of a known subscription',
      { ...kept, endedByUs: true },
      create,
      conflict,
      { record: { ...kept, provenAt: 100 }, proven: 'existence', learnt: { isTaken: true } },
    ],
    [
      '409 of an old spec, which proves nothing for a later gap',
      { ...kept, spec: old },
      { kind: 'create', spec: old },
      conflict,
      { record: { ...kept, spec: old }, proven: 'existence', learnt: {} },
    ],
    [
      '409 of an unsure one',
      { ...kept, idUnsure: true },
      create,
      conflict,
      { record: { ...kept, idUnsure: true }, learnt: { isTaken: true } },
    ],
    [
      '409 of a recreate',
      { ...kept, idUnsure: true },
      recreate,
      conflict,
      { record: { ...(without(kept, 'id') as UserRecord), replacedAt: 101 }, learnt: { isTaken: true } },
    ],
    [
      '409 of a recreate that is to learn the id of an old spec',
      { ...kept, spec: old, idUnsure: true },
      { kind: 'recreate', spec: old },
      conflict,
      { record: { ...(without(kept, 'id') as UserRecord), spec: old, replacedAt: 101 }, learnt: {} },
    ],
    [
      '409 of a create that is to find out whether the subscription of an old spec lives',
      { ...kept, spec: old },
      { kind: 'create', spec: old },
      conflict,
      { record: { ...kept, spec: old }, learnt: {}, proven: 'existence' },
    ],
    [
      'a create that cannot be read',
      kept,
      create,
      unreadable,
      { record: { ...(without(kept, 'id') as UserRecord), idUnsure: true }, learnt: { isTaken: true } },
    ],
    [
      'a first create that cannot be read',
      fresh,
      create,
      unreadable,
      { record: { ...fresh, idUnsure: true, provenAt: 100 }, learnt: { isTaken: true } },
    ],
    [
      'a create that cannot be read, after one without an answer',
      { ...fresh, idUnsure: true },
      create,
      unreadable,
      { record: { ...fresh, idUnsure: true }, learnt: { isTaken: true } },
    ],
    [
      'an update',
      { ...kept, names: ['team'], idUnsure: true, endedByUs: true },
      update,
      ok,
      {
        record: { ...kept, names: ['team', 'token'], generation: 7, provenAt: 100 },
        proven: 'id',
        learnt: {},
      },
    ],
    [
      'an update that finds nothing',
      { ...kept, idUnsure: true },
      update,
      gone,
      { record: { ...(without(kept, 'id') as UserRecord), idUnsure: true }, learnt: {} },
    ],
    [
      'an unsubscribe',
      kept,
      unsubscribe,
      ok,
      { record: { ...(without(kept, 'id') as UserRecord), endedByUs: true }, learnt: {} },
    ],
    [
      'an unsubscribe that finds nothing',
      kept,
      unsubscribe,
      gone,
      { record: { ...(without(kept, 'id') as UserRecord), endedByUs: true }, learnt: {} },
    ],
  ])('%s', (_what, record, call, answer, expected) => {
    const { isCreated, gap, proves, ...result } = applied(record, call, answer)
    const learnt = answer.kind === 'created' ? { isIdNew: true } : {}
    expect(result).toEqual({ learnt, ...expected })
    expect(proves).toBe(answer.kind === 'ok' ? call.kind : undefined)
    expect(isCreated ?? false).toBe(answer.kind === 'created')
    expect(gap).toBeUndefined()
  })

  test.each([update, unsubscribe])('404 on a route that is not proven is as before', (call) => {
    expect(applied(kept, call, notFound)).toEqual({ record: kept, learnt: { inconclusive: call.kind } })
  })

  test('a create for a user who is not wanted, which is ended next, is known, and proves nothing', () => {
    expect(applied({ ...kept, endedByUs: true }, create, created, { isWanted: false })).toEqual({
      record: { ...kept, id: 9, generation: 7 },
      learnt: { isIdNew: true },
    })
  })
})

describe('the route after', () => {
  const [recent, found] = [{ isIdNew: true }, { kind: 'create', spec } as const]
  const test404 = { inconclusive: 'update' } as const

  test.each([update, unsubscribe])('404 for an id that the service gave just now is wrong', (call) => {
    expect(applied(kept, call, notFound, {}, recent)).toEqual({
      record: kept,
      learnt: {},
      refutes: call.kind,
    })
  })

  test('405 is wrong', () => {
    const expected = { record: kept, learnt: { inconclusive: 'update' }, refutes: 'update' }
    expect(applied(kept, update, { kind: 'no-route' })).toEqual(expected)
  })

  test('404 to an update of an id that this process knows, and 409 to a create, is wrong', () => {
    expect(applied(kept, found, conflict, {}, test404)).toMatchObject({
      refutes: 'update',
      proven: 'existence',
    })
  })

  test('the same with an id of the store is open: the subscription may have another id', () => {
    const result = applied(kept, found, conflict, { isIdProven: false }, test404)
    const learnt = { ...test404, isTaken: true }
    expect(result).toEqual({ record: { ...kept, idUnsure: true }, learnt })
    const { learnt: next } = applied(result.record, recreate, created, { isIdProven: false }, result.learnt)
    expect(next).toEqual({ isIdNew: true, inconclusive: 'update' })
  })

  test('2xx to the first unsubscribe is open, until a create shows whether the subscription has ended', () => {
    const unproven = { isUnsubscribeProven: false, isWanted: false }
    const { record, ...open } = applied(kept, unsubscribe, ok, unproven)
    expect({ record, ...open }).toEqual({
      record: { ...kept, endedByUs: true },
      learnt: { seemsEnded: true },
    })
    expect(applied(record, found, created, unproven, open.learnt)).toMatchObject({ proves: 'unsubscribe' })
    expect(applied(record, found, conflict, unproven, open.learnt)).toMatchObject({ refutes: 'unsubscribe' })
    expect(applied(kept, unsubscribe, ok, unproven, recent)).toMatchObject({ proves: 'unsubscribe' })
  })

  test('a refused call with an id is right, and the call has failed if the subscription exists', () => {
    const refused = { kind: 'refused' } as const
    const { learnt } = applied(kept, update, refused)
    expect(applied(kept, found, conflict, {}, learnt)).toMatchObject({ isRefused: true, proven: 'existence' })
    expect(applied(kept, unsubscribe, refused, {}, recent)).toMatchObject({ isRefused: true })
  })
})

describe('the gap after', () => {
  const ended = { ...kept, spec: old, endedByUs: true } as const
  test.each<[string, UserRecord, PlannedCall, object]>([
    ['an end', kept, create, { cause: 'ended', lastProvenAt: 50 }],
    ['an end before a change', { ...kept, spec: old }, { kind: 'create', spec: old }, { cause: 'ended' }],
    ['a change of the spec', { ...kept, spec: old }, create, { cause: 'changed', lastProvenAt: 50 }],
    ['an unsubscribe', { ...kept, endedByUs: true }, create, { cause: 'changed' }],
    // They stay if no route ends them, or if the old configuration comes back.
    ['an unsubscribe of an old spec', ended, { kind: 'create', spec: old }, { cause: 'changed' }],
    [
      'a recreate of an old spec',
      { ...kept, spec: old },
      { kind: 'recreate', spec: old },
      { cause: 'replaced' },
    ],
    ['a name that goes', { ...kept, names: ['team'] }, recreate, { cause: 'changed' }],
    [
      'a recreate of a lost id',
      { ...kept, idUnsure: true },
      recreate,
      { cause: 'replaced', lastProvenAt: 50 },
    ],
    ['a recreate of what was in the way', fresh, recreate, { cause: 'replaced', lastProvenAt: undefined }],
    ['an unanswered first create', { ...fresh, idUnsure: true }, create, { cause: 'replaced' }],
    [
      'a proof in the future',
      { ...kept, provenAt: 102 },
      create,
      { cause: 'ended', lastProvenAt: undefined },
    ],
    ['a proof of this moment', { ...kept, provenAt: 101 }, create, { cause: 'ended', lastProvenAt: 101 }],
  ])('%s', (_what, record, call, expected) => {
    const { gap, isCreated, proven, record: next } = applied(record, call, created)
    expect(gap).toMatchObject({ username: 'alice', subscriptionId: 9, restoredAt: 101, ...expected })
    expect(isCreated).toBeUndefined()
    expect(proven).toBe('id')
    const isEnd = gap?.cause === 'ended'
    expect(next).toEqual({
      ...without(record, 'idUnsure', 'endedByUs'),
      ...{ id: 9, spec: 'spec' in call && call.spec, names: ['token'], generation: 7, provenAt: 100 },
      restoredCount: record.restoredCount + 1,
      restores: isEnd ? 1 : 0,
      ...(isEnd && { restoredAt: 101 }),
      ...(call.kind === 'recreate' && !record.idUnsure && { replacedAt: 101 }),
    })
  })
})
