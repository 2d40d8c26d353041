/** What an answer means, as one table. */
import { describe, expect, test } from 'vitest'
import { type Answer, type Applied, apply } from '../../../src/keeper/rules/apply.js'
import type { Call } from '../../../src/keeper/rules/decide.js'
import { newRecord, type UserRecord } from '../../../src/keeper/rules/record.js'

const spec = 'behavioral https://app.example.com/'
const old = 'behavioral https://old.example.com/'
const facts = { spec, names: ['token'], generation: 7, isWanted: true }
const times = { sentAt: 100, answeredAt: 101, isRouteProven: true }

const fresh = newRecord('alice', spec, 1)
const kept: UserRecord = { ...fresh, id: 5, names: ['token'], generation: 6, provenAt: 50, restoredCount: 2 }
const create = { kind: 'create', spec } as const
const recreate = { kind: 'recreate', spec } as const
const update = { kind: 'update', id: 5 } as const
const unsubscribe = { kind: 'unsubscribe', id: 5 } as const
const conflict = { kind: 'conflict' } as const
const created = { kind: 'created', id: 9 } as const
const ok = { kind: 'ok' } as const
const notFound = { kind: 'not-found' } as const
const unreadable = { kind: 'unreadable' } as const

function applied(
  record: UserRecord,
  call: Call,
  answer: Answer,
  others: Partial<typeof facts & typeof times> = {},
): Applied {
  return apply(record, call, answer, { ...facts, ...others }, { ...times, ...others })
}

const without = (record: UserRecord, ...keys: (keyof UserRecord)[]) =>
  Object.fromEntries(Object.entries(record).filter(([key]) => !keys.some((each) => each === key)))
const made = { ...fresh, id: 9, names: ['token'], generation: 7, provenAt: 100 }

type Row = [string, UserRecord, Call, Answer, Partial<Applied>]

describe('the record after', () => {
  test.each<Row>([
    ['a first create', fresh, create, created, { record: made, proven: 'id', learnt: {} }],
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
      { ...kept, isInterrupted: true },
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
      { ...kept, isUnsure: true },
      create,
      conflict,
      { record: { ...kept, isUnsure: true }, learnt: { isTaken: true } },
    ],
    [
      '409 of a recreate',
      { ...kept, isUnsure: true },
      recreate,
      conflict,
      { record: { ...(without(kept, 'id') as UserRecord), replacedAt: 101 }, learnt: { isTaken: true } },
    ],
    [
      '409 of a recreate that is to learn the id of an old spec',
      { ...kept, spec: old, isUnsure: true },
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
      { record: { ...(without(kept, 'id') as UserRecord), isUnsure: true }, learnt: { isTaken: true } },
    ],
    [
      'a first create that cannot be read',
      fresh,
      create,
      unreadable,
      { record: { ...fresh, isUnsure: true, provenAt: 100 }, learnt: { isTaken: true } },
    ],
    [
      'a create that cannot be read, after one without an answer',
      { ...fresh, isUnsure: true },
      create,
      unreadable,
      { record: { ...fresh, isUnsure: true }, learnt: { isTaken: true } },
    ],
    [
      'an update',
      { ...kept, names: ['team'], isUnsure: true, isInterrupted: true },
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
      { ...kept, isUnsure: true },
      update,
      notFound,
      { record: { ...(without(kept, 'id') as UserRecord), isUnsure: true }, learnt: {} },
    ],
    [
      'an unsubscribe',
      kept,
      unsubscribe,
      ok,
      { record: { ...(without(kept, 'id') as UserRecord), isInterrupted: true }, learnt: {} },
    ],
    [
      'an unsubscribe that finds nothing',
      kept,
      unsubscribe,
      notFound,
      { record: { ...(without(kept, 'id') as UserRecord), isInterrupted: true }, learnt: {} },
    ],
  ])('%s', (_what, record, call, answer, expected) => {
    const { isCreated, gap, ...result } = applied(record, call, answer)
    expect(result).toEqual({ learnt: {}, ...expected })
    expect(isCreated ?? false).toBe(answer.kind === 'created')
    expect(gap).toBeUndefined()
  })

  test.each([update, unsubscribe])('404 on a route that is not proven is as before', (call) => {
    const result = applied(kept, call, notFound, { isRouteProven: false })
    expect(result).toEqual({ record: kept, learnt: { missing: call.kind } })
  })

  test.each(['no-route', 'refused'] as const)('%s is as before, also on a proven route', (kind) => {
    expect(applied(kept, update, { kind })).toEqual({ record: kept, learnt: { missing: 'update' } })
  })

  test.each([update, unsubscribe])('2xx on a route that is not proven is believed', (call) => {
    expect(applied(kept, call, ok, { isRouteProven: false })).toEqual(applied(kept, call, ok))
  })

  test.each([
    ['of a user who is not wanted', kept, { isWanted: false }, create],
    ['of an old spec', { ...kept, spec: old, replacedAt: 101 }, {}, { kind: 'recreate', spec: old } as const],
  ])('a create %s, which is ended next, is known, and proves nothing', (_what, record, others, call) => {
    expect(applied(record, call, created, others)).toEqual({
      record: { ...record, id: 9, generation: 7 },
      learnt: {},
    })
  })
})

describe('the gap after', () => {
  test.each<[string, UserRecord, Call, object]>([
    ['an end', kept, create, { cause: 'ended', lastProvenAt: 50 }],
    ['an end before a change', { ...kept, spec: old }, { kind: 'create', spec: old }, { cause: 'ended' }],
    ['a change of the spec', { ...kept, spec: old }, create, { cause: 'changed', lastProvenAt: 50 }],
    ['an unsubscribe', { ...kept, isInterrupted: true }, create, { cause: 'changed' }],
    ['a name that goes', { ...kept, names: ['team'] }, recreate, { cause: 'changed' }],
    [
      'a recreate of a lost id',
      { ...kept, isUnsure: true },
      recreate,
      { cause: 'replaced', lastProvenAt: 50 },
    ],
    ['a recreate of what was in the way', fresh, recreate, { cause: 'replaced', lastProvenAt: undefined }],
    ['an unanswered first create', { ...fresh, isUnsure: true }, create, { cause: 'replaced' }],
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
      ...without(record, 'isUnsure', 'isInterrupted'),
      ...{ id: 9, spec: 'spec' in call && call.spec, names: ['token'], generation: 7, provenAt: 100 },
      restoredCount: record.restoredCount + 1,
      restores: isEnd ? 1 : 0,
      ...(isEnd && { restoredAt: 101 }),
      ...(call.kind === 'recreate' && !record.isUnsure && { replacedAt: 101 }),
    })
  })
})
