import { describe, expect, test } from 'vitest'
import { decide, type Facts, type Learnt, nothingLearnt } from '../../src/keeper/decide.js'
import { type SubscriptionState, specKey } from '../../src/keeper/record.js'
import { facts, key, moved, known as old, recordOf, spec, wider } from './fixtures.js'

const known: SubscriptionState = { ...old, generation: 7 }
const unnamed: SubscriptionState = { ...spec, generation: 7, parameterNames: ['token'] }

function having(learnt: Partial<Learnt>): Learnt {
  return { ...nothingLearnt, ...learnt }
}

const taken = having({ taken: [key] })
const create = { kind: 'call', call: { kind: 'create', key } }
const recreate = { kind: 'call', call: { kind: 'recreate', key, isOwn: false } }
const recreateOwn = { kind: 'call', call: { kind: 'recreate', key, isOwn: true } }
const update = { kind: 'call', call: { kind: 'update', key, id: 5 } }
const unsubscribe = { kind: 'call', call: { kind: 'unsubscribe', key, id: 5 } }
const conflict = { kind: 'conflict' }
const done = { kind: 'done' }
const wait = { kind: 'wait', untilFrom: 2_000 }
const withoutNames = { names: [] as string[] }
const later = { restorableFrom: 2_000 }

type Row = [
  name: string,
  subscriptions: SubscriptionState[],
  given: { facts?: Partial<Facts>; learnt?: Learnt },
  expected: object,
]

const gone: SubscriptionState = { ...known, isGone: true }
const unknown: SubscriptionState = { ...known, isOutcomeUnknown: true }
const unknownUnnamed: SubscriptionState = { ...unnamed, isOutcomeUnknown: true }

describe('a wanted user', () => {
  test.each<Row>([
    ['without a subscription is subscribed', [], {}, create],
    ['in whose way another one stands replaces it', [], { learnt: taken }, recreate],
    [
      'who has replaced one today is in conflict',
      [],
      { learnt: taken, facts: { mayReplace: false } },
      conflict,
    ],
    ['with `report` is in conflict', [], { learnt: taken, facts: { replacesExisting: false } }, conflict],
    [
      'with another one that only overlaps is in conflict',
      [],
      { learnt: having({ taken: [key], overlapped: [key] }) },
      conflict,
    ],
    ['who is proven has nothing to do', [known], { learnt: having({ isProven: true }) }, done],
    ['whose proof is not due has nothing to do', [known], { facts: { wantsProof: false } }, done],
    ['is proven by a plain create', [known], {}, create],
    ['is proven by id when that is due', [known], { facts: { wantsProofById: true } }, update],
    ['is proven by id while a restore has to wait', [known], { facts: later }, update],
    [
      'waits with the proof where nothing goes by id',
      [{ ...known, parameterNames: [] }],
      { facts: { ...later, ...withoutNames } },
      wait,
    ],
    [
      'with old parameters is updated',
      [{ ...known, generation: 6 }],
      { facts: { wantsProof: false } },
      update,
    ],
    [
      'with an old generation and no parameters has nothing to update',
      [{ ...known, generation: 6, parameterNames: [] }],
      { facts: { ...withoutNames, wantsProof: false } },
      done,
    ],
    [
      'with a parameter too many is recreated',
      [{ ...known, parameterNames: ['token', 'old'] }],
      {},
      recreateOwn,
    ],
    ['whose subscription is gone is restored', [gone], {}, create],
    [
      'whose subscription is gone is restored from the moment on that may be',
      [gone],
      { facts: { restorableFrom: facts.now } },
      create,
    ],
    ['whose subscription is gone waits for the restore', [gone], { facts: later }, wait],
    ['whose id may be right after all is updated', [gone], { learnt: taken }, update],
    [
      'whose id is not right replaces what stands there',
      [gone],
      { learnt: having({ taken: [key], isMissing: true }) },
      recreate,
    ],
    [
      'whose subscription is gone replaces without parameters',
      [gone],
      { learnt: taken, facts: withoutNames },
      recreate,
    ],
    ['of unknown outcome is settled by an update', [unknown], { facts: { wantsProof: false } }, update],
    ['of unknown outcome without parameters creates', [unknown], { facts: withoutNames }, create],
    ['of unknown outcome waits for the restore', [unknown], { facts: { ...withoutNames, ...later } }, wait],
    [
      'of unknown outcome replaces its own, however often',
      [unknown],
      { learnt: taken, facts: { ...withoutNames, mayReplace: false } },
      recreateOwn,
    ],
    [
      'of unknown outcome replaces what may be its own, with `report`, too',
      [unknown],
      { learnt: taken, facts: { ...withoutNames, replacesExisting: false } },
      recreateOwn,
    ],
    [
      'whose first create was not answered is in conflict, with `report`',
      [unknownUnnamed],
      { learnt: taken, facts: { replacesExisting: false } },
      conflict,
    ],
    [
      'whose first create was not answered replaces, however often',
      [unknownUnnamed],
      { learnt: taken, facts: { mayReplace: false } },
      recreateOwn,
    ],
    ['whose old subscription has another URL is subscribed first', [{ ...known, ...moved }], {}, create],
    [
      'whose old subscription has another URL unsubscribes that then',
      [{ ...known, ...moved, id: 4 }, known],
      { learnt: having({ isProven: true }) },
      { kind: 'call', call: { kind: 'unsubscribe', key: specKey(moved), id: 4 } },
    ],
    [
      'whose old subscription overlaps unsubscribes that first',
      [{ ...known, ...wider, id: 4 }],
      {},
      { kind: 'call', call: { kind: 'unsubscribe', key: specKey(wider), id: 4 } },
    ],
    [
      'in whose way an unanswered create of its own may stand is subscribed first',
      [{ ...unknownUnnamed, ...wider }],
      {},
      create,
    ],
    [
      'in conflict leaves alone an unanswered create of its own that is in nobody’s way',
      [{ ...unknownUnnamed, ...moved }],
      { learnt: having({ taken: [key], overlapped: [key] }) },
      conflict,
    ],
    [
      'in whose way an unanswered create of its own stands replaces that, to learn the id',
      [{ ...unknownUnnamed, ...wider }],
      { learnt: having({ taken: [key, specKey(wider)], overlapped: [key] }) },
      { kind: 'call', call: { kind: 'recreate', key: specKey(wider), isOwn: true } },
    ],
    [
      'in whose way an unanswered create of its own may stand settles that',
      [{ ...unknownUnnamed, ...wider }],
      { learnt: having({ taken: [key], overlapped: [key] }) },
      { kind: 'call', call: { kind: 'create', key: specKey(wider) } },
    ],
  ])('%s', (_name, subscriptions, { facts: given, learnt = nothingLearnt }, expected) => {
    expect(decide(recordOf(...subscriptions), learnt, { ...facts, ...given })).toEqual(expected)
  })
})

describe('a user who is wanted no longer', () => {
  const unwanted = { isWanted: false }
  test.each<Row>([
    ['and has nothing is done', [], {}, done],
    ['is unsubscribed', [known], {}, unsubscribe],
    ['is unsubscribed also where the id was called gone', [gone], {}, unsubscribe],
    ['whose create was not answered is created, to learn the id', [unknownUnnamed], {}, create],
    [
      'whose create was not answered, and exists, is recreated',
      [unknownUnnamed],
      { learnt: taken },
      recreateOwn,
    ],
  ])('%s', (_name, subscriptions, { learnt = nothingLearnt }, expected) => {
    expect(decide(recordOf(...subscriptions), learnt, { ...facts, ...unwanted })).toEqual(expected)
  })
})

test('nothing that is given is changed', () => {
  const record = recordOf(unknown)
  const before = structuredClone(record)
  decide(record, taken, facts)
  expect(record).toEqual(before)
})
