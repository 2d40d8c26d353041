/**
 * What the store holds of one user: one record, complete in itself, and never changed in place. The functions here make
 * the next record of one.
 */
import { randomUUID } from 'node:crypto'
import * as z from 'zod'
import { type NotificationType, notificationTypes } from '../notification-types.js'
import { parseJson } from '../shared/json.js'

/** What can exist once per user. The types are sorted. */
export interface Spec {
  readonly types: readonly NotificationType[]
  readonly callbackUrl: string
}

const maxCount = 2 ** 48
export const countSchema = z.int().min(0).max(maxCount)
const stampSchema = z.number().optional()
const flagSchema = z.literal(true).optional()

const subscriptionStateSchema = z
  .object({
    types: z.array(z.enum(notificationTypes)).readonly(),
    callbackUrl: z.string(),
    /** The generation of the configuration whose parameters the subscription has for certain; 0: not known. */
    generation: countSchema,
    /** Names, in lower case, of the parameters and headers that the subscription may have. */
    parameterNames: z.array(z.string()).readonly(),
    /** The service's id, once known. */
    id: countSchema.optional(),
    /** The service said that no subscription has this id. */
    isGone: flagSchema,
    /** A create was not answered: a subscription with another id than the recorded one may exist. */
    isOutcomeUnknown: flagSchema,
    /** An unsubscribe was not answered. */
    isEnding: flagSchema,
    /** When the last proof that the subscription exists was sent; wall clock. */
    provenAt: stampSchema,
  })
  .readonly()

const claimSchema = z
  .object({
    /** The process that wrote the claim. */
    by: z.string(),
    nonce: z.string(),
    call: z.enum(['create', 'recreate', 'update', 'unsubscribe', 'forget']),
    /** The key of the spec that the call is about. */
    spec: z.string(),
    /** When a call was claimed that may replace somebody else's subscription. */
    replacesAt: stampSchema,
  })
  .readonly()

const recordSchema = z
  .object({
    /** A time in ms, or one more than before: of two texts of one lineage the higher version is right. */
    version: countSchema,
    /** Names the lineage: what is written anew after a loss has another. */
    born: z.string(),
    /** Earlier lineages, the newest first, each up to the version that was known when the record was written anew. */
    continues: z
      .array(z.object({ born: z.string(), version: countSchema }).readonly())
      .readonly()
      .optional(),
    username: z.string(),
    /** The newest generation that any process which wrote the record knew. */
    generation: countSchema,
    /** Usually one; more while a change of types or callback URL is carried out. */
    subscriptions: z.array(subscriptionStateSchema).readonly(),
    restoredCount: countSchema,
    restoresSinceDelivery: countSchema,
    /** Counts proofs, see {@link probesPerIdProof}. */
    probes: countSchema,
    restoredAt: stampSchema,
    deliveryAt: stampSchema,
    /** When what may be somebody else's subscription was replaced last, or may have been. */
    replacedAt: stampSchema,
    /** When the user was tried last, if that ended in a conflict or a failure. */
    triedAt: stampSchema,
    /** Attempts in a row that failed until `triedAt`; none: a conflict. */
    failures: countSchema.optional(),
    /** An earlier subscription was ended to make room: the next proof ends a gap. */
    interruption: z.object({ lastProvenAt: stampSchema }).readonly().optional(),
    /** The process that proved the subscription last. */
    provenBy: z.string().optional(),
    /** While it stands, only the process that wrote it sends anything for this user. */
    claim: claimSchema.optional(),
    /** A tombstone: nothing of this user exists. */
    isRemoved: flagSchema,
  })
  .readonly()

export type SubscriptionState = z.output<typeof subscriptionStateSchema>
export type Claim = z.output<typeof claimSchema>
export type UserRecord = z.output<typeof recordSchema>

/** How many earlier lineages a record names. */
const maxLineages = 8

/** Every so many probes one goes by id. */
export const probesPerIdProof = 4

/** What a keeper writes takes about 500 bytes: what is so much longer was not written by a keeper. */
const maxLength = 2 ** 16

/** @returns `undefined` for a text that is no record */
export function parseRecord(text: string): UserRecord | undefined {
  return parseStored(recordSchema, text)
}

/** @returns `undefined` for a text that is too long, no JSON or of another shape */
export function parseStored<Value>(schema: z.ZodType<Value>, text: string): Value | undefined {
  return text.length > maxLength ? undefined : schema.safeParse(parseJson(text)).data
}

/** @param earlier - a tombstone, whose lineage goes on */
export function newRecord(username: string, earlier?: UserRecord): UserRecord {
  return {
    version: earlier?.version ?? 0,
    born: earlier?.born ?? newLineage(),
    ...(earlier?.continues && { continues: earlier.continues }),
    username,
    generation: earlier?.generation ?? 0,
    subscriptions: [],
    restoredCount: 0,
    restoresSinceDelivery: 0,
    probes: 0,
  }
}

function newLineage(): string {
  return randomUUID().slice(0, 8)
}

/** What this process knows, written anew: whatever else was known is another lineage. Only an update by id proves it now. */
export function continued(known: UserRecord): UserRecord {
  const { born, version, continues = [] } = known
  const lineages = [{ born, version }, ...continues]
  // The oldest stays: a backup, or a replica that stands still, may bring it back again and again.
  const kept = lineages.filter((_, index) => index < maxLineages - 1 || index === lineages.length - 1)
  return { ...withUnknownGeneration(known), born: newLineage(), continues: kept }
}

/** The record's own lineage, and those that it continues. */
export function lineagesOf(
  record: UserRecord,
): readonly { readonly born: string; readonly version: number }[] {
  return [record, ...(record.continues ?? [])]
}

/** Whether the process that wrote the record knew the earlier one. */
export function follows(record: UserRecord, earlier: UserRecord): boolean {
  const known = lineagesOf(record).find(({ born }) => born === earlier.born)
  return known !== undefined && known.version >= earlier.version
}

/** Names a spec in a record. */
export function specKey({ types, callbackUrl }: Spec): string {
  return `${types.join()} ${callbackUrl}`
}

/** Whether subscriptions of both specs cannot exist side by side. */
export function overlaps(one: Spec, other: Spec): boolean {
  return one.callbackUrl === other.callbackUrl && one.types.some((type) => other.types.includes(type))
}

export function stateOf(record: UserRecord | undefined, key: string): SubscriptionState | undefined {
  return record?.subscriptions.find((each) => specKey(each) === key)
}

/** Whether a subscription exists under the recorded id, as far as the record knows. */
export function isThere(
  state: SubscriptionState | undefined,
): state is SubscriptionState & { readonly id: number } {
  return state?.id !== undefined && !state.isGone
}

/** Whether a subscription exists under the recorded id, and no other one that a create without an answer has made. */
export function isSettled(
  state: SubscriptionState | undefined,
): state is SubscriptionState & { readonly id: number } {
  return isThere(state) && !state.isOutcomeUnknown
}

/** The record with this state in place of the one of the same spec. */
export function withState(record: UserRecord, state: SubscriptionState): UserRecord {
  const key = specKey(state)
  const { subscriptions } = record
  if (stateOf(record, key) === undefined) return { ...record, subscriptions: [...subscriptions, state] }
  return { ...record, subscriptions: subscriptions.map((each) => (specKey(each) === key ? state : each)) }
}

export function withoutState(record: UserRecord, key: string): UserRecord {
  return { ...record, subscriptions: record.subscriptions.filter((each) => specKey(each) !== key) }
}

/** What a call may bring about, noted before the call is sent. */
export function withIntent(
  record: UserRecord,
  { kind, key }: { readonly kind: Claim['call']; readonly key: string },
  { spec, names }: { readonly spec: Spec; readonly names: readonly string[] },
): UserRecord {
  const state = stateOf(record, key)
  if (state === undefined) return withState(record, { ...spec, generation: 0, parameterNames: [] })
  if (kind !== 'update') return record
  return withState(record, { ...state, parameterNames: union(state.parameterNames, names) })
}

/** A claim was left behind: the call that it names may have taken effect. */
export function withUnknownOutcome({ claim, ...record }: UserRecord): UserRecord {
  const state = claim && stateOf(record, claim.spec)
  if (state === undefined) return record
  switch (claim?.call) {
    case 'create':
    case 'recreate': {
      const { replacesAt } = claim
      const noted = replacesAt === undefined ? record : { ...record, replacedAt: replacesAt }
      return withState(noted, { ...state, isOutcomeUnknown: true })
    }
    case 'update':
      return withState(record, { ...state, generation: 0 })
    case 'unsubscribe':
      return withState(record, { ...state, isEnding: true })
    default:
      return record
  }
}

/** Without what only claims name under which nothing was sent. */
export function withoutUnsent(record: UserRecord): UserRecord {
  const mayExist = ({ id, isOutcomeUnknown }: SubscriptionState) => id !== undefined || isOutcomeUnknown
  return { ...record, subscriptions: record.subscriptions.filter(mayExist) }
}

/** Something was lost since the record was written: the generations in it mean nothing. */
export function withUnknownGeneration(record: UserRecord): UserRecord {
  const subscriptions = record.subscriptions.map((state) => ({ ...state, generation: 0 }))
  return { ...record, generation: 0, subscriptions }
}

/** With the subscriptions that only the lost store knew. The process that left a tombstone may have ended them. */
export function withLost(record: UserRecord, { subscriptions }: UserRecord): UserRecord {
  const lost = subscriptions.filter((each) => outlasts(each, rivalOf(record, each)))
  if (lost.length === 0) return record
  const { isRemoved, ...others } = record
  return lost.reduce<UserRecord>((merged, state) => {
    const isOutcomeUnknown = state.isOutcomeUnknown ?? stateOf(record, specKey(state))?.isOutcomeUnknown
    const isEnding = state.isEnding ?? isRemoved
    return withState(merged, { ...state, generation: 0, isOutcomeUnknown, isEnding })
  }, others)
}

/** Of the same spec, or of another one that cannot exist beside it. */
export function rivalOf(record: UserRecord | undefined, spec: Spec): SubscriptionState | undefined {
  return stateOf(record, specKey(spec)) ?? record?.subscriptions.find((each) => overlaps(each, spec))
}

/** Whether what a lost store said of a subscription is to be tried: the new one says nothing of it, or that it is gone. */
function outlasts(lost: SubscriptionState, present: SubscriptionState | undefined): boolean {
  return isThere(lost) && !isThere(present) && lost.id !== present?.id
}

/** A delivery proves that its subscription exists, and that the receiver works. */
export function withDelivery(
  record: UserRecord,
  key: string,
  { provenAt, deliveryAt }: { readonly provenAt: number; readonly deliveryAt: number },
): UserRecord {
  const state = stateOf(record, key)
  if (state === undefined) return record
  const { isGone: _, ...present } = state
  return {
    ...withState(record, { ...present, provenAt: laterStamp(state.provenAt, provenAt) }),
    deliveryAt: laterStamp(record.deliveryAt, deliveryAt),
    restoresSinceDelivery: 0,
  }
}

/** Whether the record says more than the stored one, besides how late the last proof was: others should know it then. */
export function differsNotably(
  record: UserRecord,
  stored: UserRecord | undefined,
  { key, provenMs }: { readonly key: string; readonly provenMs: number },
): boolean {
  if (stored === undefined || stored.isRemoved) return record.subscriptions.length > 0
  const before = stateOf(stored, key)
  const present = stateOf(record, key)
  return (
    stored.claim !== undefined ||
    stored.restoresSinceDelivery !== record.restoresSinceDelivery ||
    stored.subscriptions.length !== record.subscriptions.length ||
    before?.isGone !== present?.isGone ||
    (present?.provenAt ?? 0) - (before?.provenAt ?? 0) >= provenMs
  )
}

export function union(names: readonly string[], others: readonly string[]): string[] {
  return [...new Set([...names, ...others])]
}

export function laterStamp(one: number | undefined, other: number | undefined): number | undefined {
  if (one === undefined || other === undefined) return one ?? other
  return Math.max(one, other)
}

/** A stamp of the wall clock, unless it lies in the future: then a clock was wrong, and the stamp counts as none. */
export function pastStamp(stamp: number | undefined, now: number): number | undefined {
  return stamp !== undefined && stamp <= now ? stamp : undefined
}

/** The earlier of two times of a last proof; if one of them is not known, neither is the earlier one. */
export function earlierStamp(one: number | undefined, other: number | undefined): number | undefined {
  return one === undefined || other === undefined ? undefined : Math.min(one, other)
}
