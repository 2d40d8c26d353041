/** What is to be done next, as one table. */
import { expect, test } from 'vitest'
import {
  type Conclusion,
  decide,
  type Facts,
  type Findings,
  type PlannedRequest,
} from '../../../src/keeper/rules/decide.js'
import type { UserRecord } from '../../../src/keeper/rules/record.js'
import { create, day, facts, fresh, old, recreate, recreateOld, unsubscribe, update } from './facts.js'

/** A subscription that is as it should be. */
const kept: UserRecord = { ...fresh, id: 5, names: ['token'], generation: 7, provenAt: 1 }
const id = undefined
const provenAt = undefined
const idUnsure = true
/** Just now, and not for the first time. */
const restored = { restores: 1, restoredAt: facts.at }

const taken = { isTaken: true }
const open = { inconclusive: 'update' } as const
const openEnd = { inconclusive: 'unsubscribe' } as const

const due = { wantsProof: true }
const report = { replacesExisting: false }
const noUpdate = { mayUpdate: false }
const noUnsubscribe = { mayUnsubscribe: false }

const done = 'done'
const wait = 'waiting'
const conflict = 'conflict'
const forget = 'forget'
const blocked = 'blocked'

type Row = [string, Partial<UserRecord>, Findings, Partial<Facts>, PlannedRequest | Conclusion]

const wantedRows: Row[] = [
  ['new: create', { ...fresh, id }, {}, {}, create],
  ['new, and restores have to wait', { id, ...restored }, {}, {}, wait],
  ['in the way: replace', { id }, taken, {}, recreate],
  ['in the way with `report`', { id }, taken, report, conflict],
  ['in the way, replaced today', { id, replacedAt: 9.5 * day }, taken, {}, conflict],
  ['in the way, replaced by a clock ahead', { id, replacedAt: 10.5 * day }, taken, {}, conflict],
  ['in the way, replaced a day ago', { id, replacedAt: 9 * day }, taken, {}, recreate],
  ['in the way, maybe the own', { id, idUnsure, replacedAt: 9.9 * day }, taken, {}, recreate],
  ['with `report`, maybe the own', { id, idUnsure }, taken, report, recreate],
  ['with `report`, maybe the own, never proven', { id, idUnsure, provenAt }, taken, report, conflict],
  ['ended by the keeper, and restores have to wait', { id, endedByUs: true, ...restored }, {}, {}, create],
  ['of an old spec, maybe of another program', { id, idUnsure, spec: old, provenAt }, {}, report, create],
  ['in the way, tried lately', { id, conflictAt: 1 }, {}, {}, conflict],
  ['in the way, tried an interval ago', { id, conflictAt: 1 }, {}, due, create],
  ['in the way once, and known now', { conflictAt: 1 }, {}, {}, done],
  ['all is well', {}, {}, {}, done],
  ['a proof is due', {}, {}, due, create],
  ['a proof of the id is due', {}, {}, { ...due, wantsProofById: true }, update],
  ['a proof is due, and the id is not proven', {}, {}, { ...due, isIdKnown: false }, update],
  ['a proof is due, and restores have to wait', restored, {}, due, update],
  ['a proof is due, nothing to update', {}, {}, { ...due, ...noUpdate, wantsProofById: true }, create],
  ['no update, and restores have to wait', restored, {}, { ...due, ...noUpdate }, wait],
  ['restored just now, on a wrong route', restored, { ...open, isIdNew: true }, noUpdate, done],
  ['no proof of the id before its time', {}, {}, { wantsProofById: true }, done],
  ['ended on purpose, or not: a proof', { endedByUs: true }, {}, {}, create],
  ['older values', { generation: 6 }, {}, {}, update],
  ['newer values: the store lost the configuration', { generation: 8 }, {}, {}, update],
  ['older values, nothing to update', { generation: 6 }, {}, noUpdate, done],
  ['a parameter whose name goes', { names: ['team', 'token'] }, {}, {}, recreate],
  ['a name that comes', { names: [], generation: 6 }, {}, {}, update],
  ['an unsure id', { idUnsure }, {}, {}, update],
  ['an unsure id, nothing to update', { idUnsure }, {}, noUpdate, create],
  ['an unsure id, taken', { idUnsure }, taken, noUpdate, recreate],
  ['an unsure id, taken, `report`', { idUnsure }, taken, { ...noUpdate, ...report }, recreate],
  ['an unsure id that an update does not find', { idUnsure }, open, {}, create],
  ['an unsure id that is not found, taken', { idUnsure }, { ...open, ...taken }, {}, recreate],
  ['a new id tests a route that did not find the one before', {}, { ...open, isIdNew: true }, {}, update],
  ['a new id, on a wrong route', {}, { ...open, ...taken, isIdNew: true }, noUpdate, done],
  ['an id that an update does not find', {}, open, {}, create],
  ['an id that is not found, and lives', {}, { ...open, ...taken }, {}, done],
  ['older values, and no route to update', { generation: 6 }, { ...open, ...taken }, {}, done],
]

const endRows: Row[] = [
  ['nothing exists', { id }, {}, {}, forget],
  ['a subscription', {}, {}, {}, unsubscribe],
  ['an unsure id is learnt', { idUnsure }, {}, {}, recreate],
  ['an unknown id is learnt', { id, idUnsure }, {}, {}, recreate],
  ['maybe of another program', { id, idUnsure, provenAt }, {}, report, forget],
  ['of an old spec', { spec: old, idUnsure }, {}, {}, recreateOld],
  ['not found on a route that is not proven: a new id', {}, openEnd, {}, recreate],
  ['the new id', {}, { ...openEnd, isIdNew: true }, {}, unsubscribe],
  ['seemingly ended on a route that is not proven', {}, { seemsEnded: true }, {}, create],
  ['an update was not found before', {}, open, {}, unsubscribe],
  ['the route is wrong', {}, {}, noUnsubscribe, blocked],
  ['the route is wrong, unsure', { idUnsure }, {}, noUnsubscribe, blocked],
  ['the route is wrong, nothing exists', { id }, {}, noUnsubscribe, forget],
]

test.each(wantedRows)('a user who is wanted: %s', (_what, change, findings, others, step) => {
  expect(decide({ ...kept, ...change }, findings, { ...facts, ...others })).toEqual(step)
})

test.each(endRows)('a user who is not wanted: %s', (_what, change, findings, others, step) => {
  expect(decide({ ...kept, ...change }, findings, { ...facts, isWanted: false, ...others })).toEqual(step)
})

test.each([
  ['is ended', { id: 5 }, unsubscribe],
  ['of an unsure id is learnt', { id, idUnsure }, recreateOld],
  ['that is no more makes room', { id }, create],
] as const)('what has an old spec %s', (_what, change, step) => {
  expect(decide({ ...kept, spec: old, ...change }, {}, facts)).toEqual(step)
})
