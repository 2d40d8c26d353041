/** What an answer means, as one table. */
import { describe, expect, test } from 'vitest'
import { type Applied, apply, type Reply } from '../../../src/keeper/rules/apply.js'
import type { Facts, Findings, PlannedRequest } from '../../../src/keeper/rules/decide.js'
import type { UserRecord } from '../../../src/keeper/rules/record.js'
import { create, createOld, facts, fresh, old, recreate, recreateOld, unsubscribe, update } from './facts.js'

const kept: UserRecord = { ...fresh, id: 5, names: ['token'], generation: 6, provenAt: 50, restoredCount: 2 }
const conflict = { kind: 'conflict' } as const
const created = { kind: 'created', id: 9 } as const
const ok = { kind: 'ok' } as const
const gone = { kind: 'gone' } as const
const notFound = { kind: 'not-found' } as const
const unreadable = { kind: 'unreadable' } as const

function applied(
  record: UserRecord,
  request: PlannedRequest,
  reply: Reply,
  others: Partial<Facts> = {},
  findings: Findings = {},
): Applied {
  return apply(record, {
    request,
    reply,
    sentAt: 100,
    answeredAt: 101,
    findings,
    facts: { ...facts, ...others },
  })
}

const without = (record: UserRecord, ...keys: (keyof UserRecord)[]) =>
  Object.fromEntries(Object.entries(record).filter(([key]) => !keys.some((each) => each === key)))
/** Without its id. */
const lost = without(kept, 'id') as UserRecord
const made = { ...fresh, id: 9, names: ['token'], generation: 7, provenAt: 100 }

const unsure = { ...kept, idUnsure: true } as const
const freshUnsure = { ...fresh, idUnsure: true } as const
const endedByUs = { ...kept, endedByUs: true } as const
const outdated = { ...kept, spec: old }
const outdatedUnsure = { ...unsure, spec: old }
const lostOld = { ...lost, spec: old }
const updated = { ...kept, names: ['team', 'token'], generation: 7, provenAt: 100 }
const exists = { proven: 'existence' } as const
const taken = { findings: { isTaken: true } }

type Row = [string, UserRecord, PlannedRequest, Reply, UserRecord, Partial<Applied>?]

describe('the record after', () => {
  test.each<Row>([
    ['a first create', fresh, create, created, made, { proven: 'id' }],
    ['a create after a conflict', { ...fresh, conflictAt: 40 }, create, created, made, { proven: 'id' }],
    ['409 of a new user', fresh, create, conflict, fresh, taken],
    ['409', endedByUs, create, conflict, { ...kept, provenAt: 100 }, { ...taken, ...exists }],
    ['409 of an old spec, which proves nothing for a gap', outdated, createOld, conflict, outdated, exists],
    ['409 of an unsure one', unsure, create, conflict, unsure, taken],
    ['409 of a recreate', unsure, recreate, conflict, { ...lost, replacedAt: 101 }, taken],
    [
      '409 of a recreate of an old spec',
      outdatedUnsure,
      recreateOld,
      conflict,
      { ...lostOld, replacedAt: 101 },
    ],
    ['a create that cannot be read', kept, create, unreadable, { ...lost, idUnsure: true }, taken],
    [
      'a first create that cannot be read',
      fresh,
      create,
      unreadable,
      { ...freshUnsure, provenAt: 100 },
      taken,
    ],
    ['such a create after one without an answer', freshUnsure, create, unreadable, freshUnsure, taken],
    ['an update', { ...unsure, names: ['team'], endedByUs: true }, update, ok, updated, { proven: 'id' }],
    ['an update that finds nothing', unsure, update, gone, { ...lost, idUnsure: true }],
    ['an unsubscribe', kept, unsubscribe, ok, { ...lost, endedByUs: true }],
    ['an unsubscribe that finds nothing', kept, unsubscribe, gone, { ...lost, endedByUs: true }],
  ])('%s', (_what, before, request, answer, record, findings = {}) => {
    const { isCreated, gap, confirms, ...result } = applied(before, request, answer)
    expect(result).toEqual({
      record,
      findings: answer.kind === 'created' ? { isIdNew: true } : {},
      ...findings,
    })
    expect(confirms).toBe(answer.kind === 'ok' ? request.kind : undefined)
    expect(isCreated ?? false).toBe(answer.kind === 'created')
    expect(gap).toBeUndefined()
  })

  test.each([update, unsubscribe])('404 on a route that is not proven is as before', (request) => {
    expect(applied(kept, request, notFound)).toEqual({
      record: kept,
      findings: { inconclusive: request.kind },
    })
  })

  test('a create for a user who is not wanted, which is ended next, is known, and proves nothing', () => {
    expect(applied(endedByUs, create, created, { isWanted: false })).toEqual({
      record: { ...kept, id: 9, generation: 7 },
      findings: { isIdNew: true },
    })
  })
})

describe('the route after', () => {
  const recent = { isIdNew: true }
  const test404 = { inconclusive: 'update' } as const

  test.each([update, unsubscribe])('404 for an id that the service gave just now is wrong', (request) => {
    expect(applied(kept, request, notFound, {}, recent)).toEqual({
      record: kept,
      findings: {},
      refutes: request.kind,
    })
  })

  test('405 is wrong', () => {
    const expected = { record: kept, findings: { inconclusive: 'update' }, refutes: 'update' }
    expect(applied(kept, update, { kind: 'no-route' })).toEqual(expected)
  })

  test('404 to an update of an id that this process knows, and 409 to a create, is wrong', () => {
    expect(applied(kept, create, conflict, {}, test404)).toMatchObject({ refutes: 'update', ...exists })
  })

  test('the same with an id of the store is open: the subscription may have another id', () => {
    const result = applied(kept, create, conflict, { isIdKnown: false }, test404)
    const findings = { ...test404, isTaken: true }
    expect(result).toEqual({ record: { ...kept, idUnsure: true }, findings })
    const next = applied(result.record, recreate, created, { isIdKnown: false }, findings)
    expect(next.findings).toEqual({ isIdNew: true, inconclusive: 'update' })
  })

  test('2xx to the first unsubscribe is open, until a create shows whether the subscription has ended', () => {
    const unproven = { isUnsubscribeConfirmed: false, isWanted: false }
    const findings = { seemsEnded: true }
    const confirmed = { confirms: 'unsubscribe' }
    expect(applied(kept, unsubscribe, ok, unproven)).toEqual({ record: endedByUs, findings })
    expect(applied(endedByUs, create, created, unproven, findings)).toMatchObject(confirmed)
    expect(applied(endedByUs, create, conflict, unproven, findings)).toMatchObject({ refutes: 'unsubscribe' })
    expect(applied(kept, unsubscribe, ok, unproven, recent)).toMatchObject(confirmed)
  })

  test('a refused call with an id is right, and the call has failed if the subscription exists', () => {
    const refused = { kind: 'unclear' } as const
    const { findings } = applied(kept, update, refused)
    expect(applied(kept, create, conflict, {}, findings)).toMatchObject({ isRefused: true, ...exists })
    expect(applied(kept, unsubscribe, refused, {}, recent)).toMatchObject({ isRefused: true })
  })
})

test.each<[string, UserRecord, PlannedRequest, object]>([
  ['an end', kept, create, { cause: 'ended', lastProvenAt: 50 }],
  ['an end before a change', outdated, createOld, { cause: 'ended' }],
  ['a change of the spec', outdated, create, { cause: 'changed', lastProvenAt: 50 }],
  ['an unsubscribe', endedByUs, create, { cause: 'changed' }],
  // They stay if no route ends them, or if the old configuration comes back.
  ['an unsubscribe of an old spec', { ...outdated, endedByUs: true }, createOld, { cause: 'changed' }],
  ['a recreate of an old spec', outdated, recreateOld, { cause: 'replaced' }],
  ['a name that goes', { ...kept, names: ['team'] }, recreate, { cause: 'changed' }],
  ['a recreate of a lost id', unsure, recreate, { cause: 'replaced', lastProvenAt: 50 }],
  ['a recreate of what was in the way', fresh, recreate, { cause: 'replaced', lastProvenAt: undefined }],
  ['an unanswered first create', freshUnsure, create, { cause: 'replaced' }],
  ['a proof in the future', { ...kept, provenAt: 102 }, create, { cause: 'ended', lastProvenAt: undefined }],
  ['a proof of this moment', { ...kept, provenAt: 101 }, create, { cause: 'ended', lastProvenAt: 101 }],
])('the gap after: %s', (_what, record, request, expected) => {
  const { gap, isCreated, proven, record: next } = applied(record, request, created)
  expect(gap).toMatchObject({ username: 'alice', subscriptionId: 9, restoredAt: 101, ...expected })
  expect(isCreated).toBeUndefined()
  expect(proven).toBe('id')
  const isEnd = gap?.cause === 'ended'
  expect(next).toEqual({
    ...without(record, 'idUnsure', 'endedByUs'),
    ...{ id: 9, spec: 'spec' in request && request.spec, names: ['token'], generation: 7, provenAt: 100 },
    restoredCount: record.restoredCount + 1,
    restores: isEnd ? 1 : 0,
    ...(isEnd && { restoredAt: 101 }),
    ...(request.kind === 'recreate' && !record.idUnsure && { replacedAt: 101 }),
  })
})
