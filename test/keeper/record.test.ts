import { describe, expect, test } from 'vitest'
import {
  type Claim,
  continued,
  differsNotably,
  earlierStamp,
  follows,
  laterStamp,
  newRecord,
  overlaps,
  parseRecord,
  type SubscriptionState,
  specKey,
  stateOf,
  type UserRecord,
  withDelivery,
  withIntent,
  withLost,
  withoutUnsent,
  withState,
  withUnknownGeneration,
  withUnknownOutcome,
} from '../../src/keeper/record.js'
import { key, known, moved, recordOf, spec, wider } from './fixtures.js'

const record = recordOf(known)

function claimOf(call: Claim['call']): Claim {
  return { by: 'one', nonce: 'one-1', call, spec: key }
}

describe('the text of a record', () => {
  test('is read back as it was written', () => {
    const full: UserRecord = {
      ...record,
      restoredAt: 1,
      deliveryAt: 2,
      replacedAt: 3,
      triedAt: 4,
      failures: 2,
      interruption: { lastProvenAt: 5 },
      provenBy: 'one',
      claim: claimOf('update'),
    }
    expect(parseRecord(JSON.stringify(full))).toEqual(full)
  })

  test.each<[string, object | string]>([
    ['no JSON', '{"version":1'],
    ['no object', 'null'],
    ['no username', { ...record, username: undefined }],
    ['a version that is no count', { ...record, version: 1e99 }],
    ['a negative count', { ...record, probes: -1 }],
    ['a stamp that is text', { ...record, restoredAt: 'now' }],
    ['a type that does not exist', { ...record, subscriptions: [{ ...known, types: ['weather'] }] }],
    ['a claim of an unknown call', { ...record, claim: { by: '', nonce: '', call: 'wait', spec: key } }],
    ['more than 64 KiB', { ...record, username: 'x'.repeat(70_000) }],
  ])('with %s is none', (_name, value) => {
    expect(parseRecord(typeof value === 'string' ? value : JSON.stringify(value))).toBeUndefined()
  })
})

describe('whoever wrote a record', () => {
  const earlier = { ...record, born: 'one', version: 5 }
  const anew = continued(earlier)

  test('knew the earlier versions of its lineage', () => {
    expect(follows({ ...earlier, version: 6 }, earlier)).toBe(true)
    expect(follows(earlier, earlier)).toBe(true)
    expect(follows({ ...earlier, version: 4 }, earlier)).toBe(false)
  })

  test('knew nothing of another lineage', () => {
    expect(follows({ ...earlier, born: 'other', version: 6 }, earlier)).toBe(false)
  })

  test('anew, after a loss, knew the lineage until then, and proves it by an update', () => {
    expect(follows(anew, earlier)).toBe(true)
    expect(follows(anew, { ...earlier, version: 4 })).toBe(true)
    expect(follows(anew, { ...earlier, version: 6 })).toBe(false)
    expect(follows(earlier, anew)).toBe(false)
    expect(anew.subscriptions).toEqual([{ ...known, generation: 0 }])
  })

  test('anew again and again, knew the first lineage and the last ones', () => {
    let again = anew
    for (let losses = 0; losses < 20; losses++) again = continued(again)
    expect(follows(again, earlier)).toBe(true)
    expect(follows(continued(again), again)).toBe(true)
    expect(again.continues).toHaveLength(8)
  })

  test('knew the same when it left a tombstone', () => {
    expect(follows(newRecord('alice', anew), earlier)).toBe(true)
  })
})

describe('what a lost store said of a subscription', () => {
  const another = { ...known, id: 6 }

  test.each<[string, SubscriptionState, SubscriptionState | undefined, boolean]>([
    ['is tried where the new one says nothing', known, undefined, true],
    ['is tried where the other one is gone', known, { ...another, isGone: true }, true],
    ['is tried where the id of the other one is not known', known, { ...another, id: undefined }, true],
    ['is not tried where another one is there', { ...known, provenAt: 501 }, another, false],
    ['is not tried again where it is gone', known, { ...known, isGone: true }, false],
    ['is nothing if it had ended', { ...known, isGone: true }, undefined, false],
    ['is nothing without an id', { ...known, id: undefined }, undefined, false],
  ])('%s', (_name, lost, present, isTried) => {
    const before = recordOf(...(present ? [present] : []))
    const { subscriptions } = withLost(before, recordOf(lost))
    expect(subscriptions).toEqual(isTried ? [{ ...lost, generation: 0 }] : before.subscriptions)
  })

  test('is tried beside what is there and does not overlap', () => {
    const present = { ...known, ...moved, id: 7 }
    expect(withLost(recordOf(present), record).subscriptions).toEqual([present, { ...known, generation: 0 }])
  })

  test('is not tried where another one that overlaps is there', () => {
    const present = { ...known, ...wider, id: 7 }
    expect(withLost(recordOf(present), record).subscriptions).toEqual([present])
  })

  test('keeps that a create was not answered', () => {
    const unknown = { ...spec, generation: 0, parameterNames: [], isOutcomeUnknown: true } as const
    expect(withLost(recordOf(unknown), record).subscriptions).toEqual([
      { ...known, generation: 0, isOutcomeUnknown: true },
    ])
  })

  test('keeps what it said of calls without an answer', () => {
    const unsettled = { ...known, isOutcomeUnknown: true, isEnding: true } as const
    expect(withLost(recordOf(), recordOf(unsettled)).subscriptions).toEqual([{ ...unsettled, generation: 0 }])
  })

  test('may have been ended by whoever left a tombstone, which is none then', () => {
    const tombstone: UserRecord = { ...recordOf(), isRemoved: true }
    const merged = withLost(tombstone, record)
    expect(merged.isRemoved).toBeUndefined()
    expect(merged.subscriptions).toEqual([{ ...known, generation: 0, isEnding: true }])
    expect(withLost(tombstone, recordOf())).toBe(tombstone)
  })
})

test('subscriptions of one callback URL overlap in a type, those of two never', () => {
  const both = { ...spec, types: ['behavioral', 'call-score'] } as const
  expect(overlaps(spec, both)).toBe(true)
  expect(overlaps(spec, { ...spec, types: ['call-score'] })).toBe(false)
  expect(overlaps(spec, { ...both, callbackUrl: 'https://new.example.com/' })).toBe(false)
})

describe('the intent of a call', () => {
  test('of a create for a new user is a subscription without an id', () => {
    const intended = withIntent(newRecord('alice'), { kind: 'create', key }, { spec, names: ['token'] })
    expect(intended.subscriptions).toEqual([{ ...spec, generation: 0, parameterNames: [] }])
  })

  test('of an update is that its parameters may be there', () => {
    const intended = withIntent(record, { kind: 'update', key }, { spec, names: ['tenant'] })
    expect(stateOf(intended, key)?.parameterNames).toEqual(['token', 'tenant'])
  })

  test('of any other call changes nothing', () => {
    expect(withIntent(record, { kind: 'unsubscribe', key }, { spec, names: ['tenant'] })).toEqual(record)
  })
})

describe('a claim that was left behind means of', () => {
  const left = (call: Claim['call']) => withUnknownOutcome({ ...record, claim: claimOf(call) })

  test.each(['create', 'recreate'] as const)('a %s that another one may exist', (call) => {
    expect(left(call)).toEqual({ ...record, subscriptions: [{ ...known, isOutcomeUnknown: true }] })
  })

  test('a recreate that it may have replaced somebody else’s subscription', () => {
    const claim = { ...claimOf('recreate'), replacesAt: 9 }
    expect(withUnknownOutcome({ ...record, claim }).replacedAt).toBe(9)
  })

  test('a recreate of the keeper’s own that the day’s replacement is as it was', () => {
    const own = { ...record, claim: claimOf('recreate'), replacedAt: 3 }
    expect(withUnknownOutcome(own).replacedAt).toBe(3)
  })

  test('a subscription that the record no longer has nothing', () => {
    const claim = { ...claimOf('create'), spec: 'another' }
    expect(withUnknownOutcome({ ...record, claim })).toMatchObject({ subscriptions: [known] })
  })

  test('an update that its parameters are not known', () => {
    expect(left('update')).toEqual({ ...record, subscriptions: [{ ...known, generation: 0 }] })
  })

  test('an unsubscribe that it may have been the end', () => {
    expect(left('unsubscribe')).toEqual({ ...record, subscriptions: [{ ...known, isEnding: true }] })
  })

  test('a removal nothing', () => {
    expect(left('forget')).toEqual(record)
  })
})

test('a create that was not sent has made nothing, unless an earlier one may have', () => {
  const create = { kind: 'create', key: specKey(moved) } as const
  const unsent = withIntent(record, create, { spec: moved, names: [] })
  expect(withoutUnsent(unsent)).toEqual(record)
  const unsure = withUnknownOutcome({ ...unsent, claim: { ...claimOf('create'), spec: create.key } })
  expect(withoutUnsent(unsure)).toEqual(unsure)
})

test('a lost configuration makes every generation unknown', () => {
  const ahead = { ...record, generation: 9 }
  expect(withUnknownGeneration(ahead)).toEqual({
    ...record,
    generation: 0,
    subscriptions: [{ ...known, generation: 0 }],
  })
})

describe('a delivery', () => {
  const gone = { ...record, restoresSinceDelivery: 2, subscriptions: [{ ...known, isGone: true as const }] }

  test('proves its subscription, and that the receiver works', () => {
    expect(withDelivery(gone, key, { provenAt: 600, deliveryAt: 700 })).toEqual({
      ...record,
      deliveryAt: 700,
      subscriptions: [{ ...known, provenAt: 600 }],
    })
  })

  test('of a subscription that the record does not have proves nothing', () => {
    expect(withDelivery(gone, 'another', { provenAt: 600, deliveryAt: 700 })).toBe(gone)
  })

  test('does not make a later proof earlier', () => {
    const { subscriptions } = withDelivery(record, key, { provenAt: 400, deliveryAt: 700 })
    expect(subscriptions).toEqual([known])
  })
})

test('a record after a tombstone goes on with its lineage and its version', () => {
  const { born, version } = newRecord('alice', { ...record, version: 12, isRemoved: true })
  expect({ born, version }).toEqual({ born: record.born, version: 12 })
})

test('one subscription takes the place of the one of its spec, and of no other', () => {
  const other = { ...known, ...moved }
  const changed = { ...known, id: 6 }
  expect(withState(recordOf(known, other), changed).subscriptions).toEqual([changed, other])
  expect(withState(recordOf(other), known).subscriptions).toEqual([other, known])
})

describe('the store is told', () => {
  const isTold = (next: UserRecord, stored: UserRecord | undefined) =>
    differsNotably(next, stored, { key, provenMs: 100 })
  const at = (provenAt: number | undefined) => recordOf({ ...known, provenAt })

  test.each<[string, UserRecord, UserRecord | undefined, boolean]>([
    ['of a new user', record, undefined, true],
    ['of a user who is met again', record, { ...record, isRemoved: true }, true],
    ['nothing of a user without subscriptions', recordOf(), undefined, false],
    ['nothing if nothing is new', record, record, false],
    ['that a claim has ended', record, { ...record, claim: claimOf('update') }, true],
    ['that a delivery ends the waits', record, { ...record, restoresSinceDelivery: 1 }, true],
    ['that a subscription was ended', record, recordOf(known, { ...known, ...moved }), true],
    ['that a subscription is gone', recordOf({ ...known, isGone: true }), record, true],
    ['of a proof that is much later', at(600), at(500), true],
    ['nothing of a proof that is a little later', at(599), at(500), false],
    ['of the first proof', at(600), at(undefined), true],
    [
      'nothing of a subscription that neither has',
      recordOf({ ...known, ...moved }),
      recordOf({ ...known, ...moved }),
      false,
    ],
  ])('%s', (_name, next, stored, expected) => {
    expect(isTold(next, stored)).toBe(expected)
  })
})

test('of two stamps that both count, the earlier and the later; of one, it is later than none', () => {
  expect([
    earlierStamp(1, 2),
    earlierStamp(2, 1),
    earlierStamp(1, undefined),
    earlierStamp(undefined, 1),
  ]).toEqual([1, 1, undefined, undefined])
  expect([laterStamp(1, 2), laterStamp(2, 1), laterStamp(1, undefined), laterStamp(undefined, 1)]).toEqual([
    2, 2, 1, 1,
  ])
})
