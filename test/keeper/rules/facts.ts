/** What the tables of rules have in common. */
import type { Facts } from '../../../src/keeper/rules/decide.js'
import { newRecord } from '../../../src/keeper/rules/record.js'

export const day = 24 * 60 * 60 * 1_000
export const spec = 'behavioral https://app.example.com/'
export const old = 'behavioral https://old.example.com/'
export const fresh = newRecord('alice', spec, 1)

/** Nothing is due, everything is allowed. */
export const facts: Facts = {
  spec,
  names: ['token'],
  generation: 7,
  isWanted: true,
  wantsProof: false,
  wantsProofById: false,
  mayUpdate: true,
  mayUnsubscribe: true,
  isUnsubscribeConfirmed: true,
  isIdKnown: true,
  replacesExisting: true,
  at: 10 * day,
}

export const create = { kind: 'create', spec } as const
export const recreate = { kind: 'recreate', spec } as const
export const createOld = { kind: 'create', spec: old } as const
export const recreateOld = { kind: 'recreate', spec: old } as const
export const update = { kind: 'update', id: 5 } as const
export const unsubscribe = { kind: 'unsubscribe', id: 5 } as const
