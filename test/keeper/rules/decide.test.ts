/** What is to be done next, as one table. */
import { describe, expect, test } from 'vitest'
import { decide, type Facts, type Learnt } from '../../../src/keeper/rules/decide.js'
import { newRecord, type UserRecord } from '../../../src/keeper/rules/record.js'

const spec = 'behavioral https://app.example.com/'
const old = 'behavioral https://old.example.com/'
const day = 24 * 60 * 60 * 1_000

/** Nothing is due, everything is allowed. */
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
  at: 10 * day,
}
const record = newRecord('alice', spec, 1)
/** A subscription that is as it should be. */
const kept: UserRecord = { ...record, id: 5, names: ['token'], generation: 7, provenAt: 1 }
const isTaken = { isTaken: true }
const idUnsure = true
const due = { wantsProof: true }
/** Just now, and not for the first time. */
const restored = { restores: 1, restoredAt: facts.at }

const create = { kind: 'create', spec }
const recreate = { kind: 'recreate', spec }
const update = { kind: 'update', id: 5 }
const unsubscribe = { kind: 'unsubscribe', id: 5 }

type Row = [string, Partial<UserRecord>, Learnt, Partial<Facts>, object]

const wantedRows: Row[] = [
  ['new: create', { ...record, id: undefined }, {}, {}, create],
  ['new, and restores have to wait', { id: undefined, ...restored }, {}, {}, { kind: 'wait' }],
  ['in the way: replace', { id: undefined }, isTaken, {}, recreate],
  ['in the way with `report`', { id: undefined }, isTaken, { replacesExisting: false }, { kind: 'conflict' }],
  ['in the way, replaced today', { id: undefined, replacedAt: 9.5 * day }, isTaken, {}, { kind: 'conflict' }],
  [
    'in the way, replaced by a clock ahead',
    { id: undefined, replacedAt: 10.5 * day },
    isTaken,
    {},
    { kind: 'conflict' },
  ],
  ['in the way, replaced a day ago', { id: undefined, replacedAt: 9 * day }, isTaken, {}, recreate],
  ['in the way, maybe the own', { id: undefined, idUnsure, replacedAt: 9.9 * day }, isTaken, {}, recreate],
  [
    'with `report`, maybe the own',
    { id: undefined, idUnsure },
    isTaken,
    { replacesExisting: false },
    recreate,
  ],
  [
    'with `report`, maybe the own, never proven',
    { id: undefined, idUnsure, provenAt: undefined },
    isTaken,
    { replacesExisting: false },
    { kind: 'conflict' },
  ],
  [
    'ended by the keeper, and restores have to wait',
    { id: undefined, endedByUs: true, ...restored },
    {},
    {},
    create,
  ],
  [
    'of an old spec, maybe of another program',
    { id: undefined, idUnsure, spec: old, provenAt: undefined },
    {},
    { replacesExisting: false },
    create,
  ],
  ['in the way, tried lately', { id: undefined, conflictAt: 1 }, {}, {}, { kind: 'conflict' }],
  ['in the way, tried an interval ago', { id: undefined, conflictAt: 1 }, {}, due, create],
  ['in the way once, and known now', { conflictAt: 1 }, {}, {}, { kind: 'done' }],
  ['all is well', {}, {}, {}, { kind: 'done' }],
  ['a proof is due', {}, {}, due, create],
  ['a proof of the id is due', {}, {}, { ...due, wantsProofById: true }, update],
  ['a proof is due, and restores have to wait', restored, {}, due, update],
  ['a proof is due, nothing to update', {}, {}, { ...due, mayUpdate: false, wantsProofById: true }, create],
  ['no update, and restores have to wait', restored, {}, { ...due, mayUpdate: false }, { kind: 'wait' }],
  ['no proof of the id before its time', {}, {}, { wantsProofById: true }, { kind: 'done' }],
  ['ended on purpose, or not: a proof', { endedByUs: true }, {}, {}, create],
  ['older values', { generation: 6 }, {}, {}, update],
  ['newer values: the store lost the configuration', { generation: 8 }, {}, {}, update],
  ['older values, nothing to update', { generation: 6 }, {}, { mayUpdate: false }, { kind: 'done' }],
  ['a parameter whose name goes', { names: ['team', 'token'] }, {}, {}, recreate],
  ['a name that comes', { names: [], generation: 6 }, {}, {}, update],
  ['an unsure id', { idUnsure }, {}, {}, update],
  ['an unsure id, nothing to update', { idUnsure }, {}, { mayUpdate: false }, create],
  ['an unsure id, taken', { idUnsure }, isTaken, { mayUpdate: false }, recreate],
  [
    'an unsure id, taken, `report`',
    { idUnsure },
    isTaken,
    { mayUpdate: false, replacesExisting: false },
    recreate,
  ],
  ['an unsure id that an update does not find', { idUnsure }, { inconclusive: 'update' }, {}, create],
  [
    'an unsure id that is not found, taken',
    { idUnsure },
    { inconclusive: 'update', isTaken: true },
    {},
    recreate,
  ],
  [
    'an update that finds nothing by a new id, too, is tried: the route is tested',
    {},
    { inconclusive: 'update', isIdNew: true },
    {},
    update,
  ],
  [
    'a new id, on a route that is known to be wrong',
    {},
    { inconclusive: 'update', isIdNew: true, isTaken: true },
    { mayUpdate: false },
    { kind: 'done' },
  ],
  ['an id that an update does not find', {}, { inconclusive: 'update' }, {}, create],
  ['an id that is not found, and lives', {}, { inconclusive: 'update', isTaken: true }, {}, { kind: 'done' }],
  [
    'older values, and no route to update',
    { generation: 6 },
    { inconclusive: 'update', isTaken: true },
    {},
    { kind: 'done' },
  ],
]

const endRows: Row[] = [
  ['nothing exists', { id: undefined }, {}, {}, { kind: 'forget' }],
  ['a subscription', {}, {}, {}, unsubscribe],
  ['an unsure id is learnt', { idUnsure }, {}, {}, recreate],
  ['an unknown id is learnt', { id: undefined, idUnsure }, {}, {}, recreate],
  [
    'maybe of another program',
    { id: undefined, idUnsure, provenAt: undefined },
    {},
    { replacesExisting: false },
    { kind: 'forget' },
  ],
  ['of an old spec', { spec: old, idUnsure }, {}, {}, { kind: 'recreate', spec: old }],
  ['not found on a route that is not proven: a new id', {}, { inconclusive: 'unsubscribe' }, {}, recreate],
  ['the new id', {}, { inconclusive: 'unsubscribe', isIdNew: true }, {}, unsubscribe],
  ['seemingly ended on a route that is not proven', {}, { seemsEnded: true }, {}, create],
  ['an update was not found before', {}, { inconclusive: 'update' }, {}, unsubscribe],
  ['the route is wrong', {}, {}, { mayUnsubscribe: false }, { kind: 'blocked' }],
  ['the route is wrong, unsure', { idUnsure }, {}, { mayUnsubscribe: false }, { kind: 'blocked' }],
  [
    'the route is wrong, nothing exists',
    { id: undefined },
    {},
    { mayUnsubscribe: false },
    { kind: 'forget' },
  ],
]

describe('a user who is wanted', () => {
  test.each(wantedRows)('%s', (_what, change, learnt, others, step) => {
    expect(decide({ ...kept, ...change }, learnt, { ...facts, ...others })).toEqual(step)
  })
})

describe('a user who is not wanted', () => {
  test.each(endRows)('%s', (_what, change, learnt, others, step) => {
    expect(decide({ ...kept, ...change }, learnt, { ...facts, isWanted: false, ...others })).toEqual(step)
  })
})

test.each([
  ['is ended', { id: 5 }, unsubscribe],
  ['of an unsure id is learnt', { id: undefined, idUnsure }, { kind: 'recreate', spec: old }],
  ['that is no more makes room', { id: undefined }, create],
] as const)('what has an old spec %s', (_what, change, step) => {
  expect(decide({ ...kept, spec: old, ...change }, {}, facts)).toEqual(step)
})
