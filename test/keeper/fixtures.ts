/** What the tests of the pure rules begin with. */
import type { Facts } from '../../src/keeper/decide.js'
import { newRecord, type SubscriptionState, specKey, type UserRecord } from '../../src/keeper/record.js'

/** What users are to be subscribed to. */
export const spec = { types: ['behavioral'], callbackUrl: 'https://app.example.com/' } as const
export const key = specKey(spec)
/** Of another callback URL. */
export const moved = { ...spec, callbackUrl: 'https://new.example.com/' } as const
/** Of one more type. */
export const wider = { ...spec, types: ['behavioral', 'call-score'] } as const

export const facts: Facts = {
  now: 1_000,
  isWanted: true,
  spec,
  key,
  generation: 7,
  names: ['token'],
  restorableFrom: 0,
  replacesExisting: true,
  mayReplace: true,
  wantsProof: true,
  wantsProofById: false,
}

/** A subscription of an earlier generation. */
export const known: SubscriptionState = {
  ...spec,
  generation: 6,
  parameterNames: ['token'],
  id: 5,
  provenAt: 500,
}

export function recordOf(...subscriptions: SubscriptionState[]): UserRecord {
  return { ...newRecord('alice'), subscriptions }
}
