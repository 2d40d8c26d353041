/** What a record says, and what is none. */
import { describe, expect, test } from 'vitest'
import {
  absorb,
  callbackUrlOf,
  newRecord,
  recordSchema,
  restoreLeftMs,
  specOf,
  typesOf,
  type UserRecord,
  union,
} from '../../../src/keeper/rules/record.js'

const spec = specOf(['call-score', 'behavioral'], 'https://app.example.com/a b')
const claim = { nonce: 'a-1', call: 'create' } as const
const full: UserRecord = {
  ...newRecord('alice', spec, 1_000),
  names: ['token'],
  id: -5,
  idUnsure: true,
  endedByUs: true,
  provenAt: 1.5,
  deliveryAt: 2,
  restoredAt: 3,
  replacedAt: 4,
  conflictAt: 5,
  claim,
}

test('a spec is text, from which types and URL can be read', () => {
  expect(spec).toBe('behavioral,call-score https://app.example.com/a b')
  expect(typesOf(spec)).toEqual(['behavioral', 'call-score'])
  expect(callbackUrlOf(spec)).toBe('https://app.example.com/a b')
  expect(union(['b', 'a'], ['c', 'a'])).toEqual(['a', 'b', 'c'])
})

describe('a record', () => {
  test.each([full, newRecord('', spec, 0), { ...full, id: 0 }, { ...full, id: Number.MAX_SAFE_INTEGER }])(
    'is read as it was written',
    (record) => {
      expect(recordSchema.parse(JSON.parse(JSON.stringify(record)))).toEqual(record)
    },
  )

  test.each([
    { version: -1 },
    { version: 2 ** 48 + 1 },
    { username: 5 },
    { spec: 'behavioral' },
    { spec: 'fax https://app.example.com/' },
    { spec: 'call-score,behavioral https://app.example.com/' },
    { names: 'token' },
    { generation: '7' },
    { id: 2 ** 53 },
    { id: 1.5 },
    { idUnsure: false },
    { provenAt: 'now' },
    { restores: null },
    { claim: { ...claim, call: 'delete' } },
    { claim: { nonce: 'a' } },
  ])('does not have %j', (damage) => {
    expect(recordSchema.safeParse({ ...full, ...damage }).success).toBe(false)
  })
})

describe('a delivery', () => {
  const record: UserRecord = {
    ...newRecord('alice', spec, 1),
    id: 5,
    provenAt: 900_000,
    deliveryAt: 500_000,
    restores: 3,
  }

  test('proves the subscription a minute before, and ends the count of restores', () => {
    const delivered = { ...record, provenAt: 940_000, deliveryAt: 1_000_000, restores: 0 }
    expect(absorb(record, { id: 5, at: 1_000_000 })).toEqual(delivered)
    expect(absorb(record, { id: 5, at: 905_000 })).toMatchObject({ provenAt: 900_000, deliveryAt: 905_000 })
    const { provenAt, deliveryAt, ...unproven } = record
    expect(absorb(unproven, { id: 5, at: 1_000_000 })).toEqual(delivered)
  })

  test.each([
    ['of no subscription', undefined],
    ['of another subscription', { id: 6, at: 1_000_000 }],
    ['that is known', { id: 5, at: 500_000 }],
  ])('%s changes nothing', (_what, delivery) => {
    expect(absorb(record, delivery)).toBe(record)
  })
})

test.each([
  ['never restored', { restores: 0 }, 0],
  ['restored just now', { restores: 1, restoredAt: 1_000_000 }, 60_000],
  ['restored for the third time, a minute ago', { restores: 3, restoredAt: 940_000 }, 180_000],
  ['restored often, long ago', { restores: 20, restoredAt: 100_000 }, 0],
  ['restored by a clock that is a day ahead', { restores: 1, restoredAt: 90_000_000 }, 0],
  ['delivered since', { restores: 0, restoredAt: 1_000_000 }, 0],
])('a record that was %s says how long the next restore must wait', (_what, restored, leftMs) => {
  expect(restoreLeftMs({ ...newRecord('alice', spec, 1), ...restored }, 1_000_000)).toBe(leftMs)
})
