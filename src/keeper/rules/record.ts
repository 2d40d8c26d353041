/**
 * The stored record of one user, never changed in place. The record is a cache, the service is the truth.
 * Times are of the wall clock. A release with another format takes other keys.
 */
import * as z from 'zod'
import { type NotificationType, notificationTypes } from '../../notification-types.js'
import { deliveryLagMs, restoreWaitMs } from '../timing.js'

const maxCount = 2 ** 48
export const countSchema = z.int().min(0).max(maxCount)
/** The next count; the highest stays, so that what is written can be read. */
export const nextCount = (count: number) => Math.min(maxCount, count + 1)
const stampSchema = z.number().optional()
const flagSchema = z.literal(true).optional()

/** The types and callback URL of a subscription, as text: sorted types, a space, the URL. */
export type Spec = string

const specSchema = z.string().refine((spec) => spec === specOf(typesOf(spec), callbackUrlOf(spec)))

export const recordSchema = z.object({
  /** Grows by one with each write. Begins with the time, so that a recreated record does not look older. */
  version: countSchema,
  username: z.string(),
  spec: specSchema,
  /** Names, in lower case, of the parameters and headers that the subscription may have. */
  names: z.array(z.string()).readonly(),
  /** The generation whose values the subscription certainly has; 0: unknown. */
  generation: countSchema,
  /** The service's id, if known. */
  id: z.int().optional(),
  /** A create may have taken effect: the subscription may have another id than the recorded one. */
  idUnsure: flagSchema,
  /** The subscription was, or may have been, ended on purpose, and must be created again. */
  endedByUs: flagSchema,
  /** When the last proof that the subscription exists was sent. */
  provenAt: stampSchema,
  deliveryAt: stampSchema,
  restoredAt: stampSchema,
  /** When a subscription in the way was last replaced, or the attempt was refused. */
  replacedAt: stampSchema,
  /** When another subscription was last found in the way. */
  conflictAt: stampSchema,
  /** Restores since the last delivery. */
  restores: countSchema,
  /** All restores, of any cause. */
  restoredCount: countSchema,
  /** While there is a claim, no process sends anything for this user. */
  claim: z
    .object({
      /** Unique, so that no two claims are one text. */
      nonce: z.string(),
      call: z.enum(['create', 'recreate', 'update', 'unsubscribe']),
    })
    .readonly()
    .optional(),
})

export type UserRecord = Readonly<z.output<typeof recordSchema>>

export function newRecord(username: string, spec: Spec, at: number): UserRecord {
  return { version: at, username, spec, names: [], generation: 0, restores: 0, restoredCount: 0 }
}

const effects = {
  create: { idUnsure: true },
  recreate: { idUnsure: true },
  update: { generation: 0 },
  unsubscribe: { endedByUs: true },
} as const

/** The record without its stale claim: the claimed request may have taken effect. */
export function assumeEffect(claimed: UserRecord): UserRecord {
  const { claim, ...record } = claimed
  return claim === undefined ? claimed : { ...record, ...effects[claim.call] }
}

/** The time of a delivery, by the wall clock. */
export interface LastDelivery {
  readonly id: number
  readonly at: number
}

/** The record with the proof of the last delivery. */
export function absorb(record: UserRecord, delivery: LastDelivery | undefined): UserRecord {
  if (delivery === undefined || delivery.id !== record.id) return record
  if (record.deliveryAt !== undefined && delivery.at <= record.deliveryAt) return record
  const provenAt = Math.max(record.provenAt ?? Number.NEGATIVE_INFINITY, delivery.at - deliveryLagMs)
  return { ...record, provenAt, deliveryAt: delivery.at, restores: 0 }
}

/** How long the next restore must wait, in ms. The last one may have been in the future, by a clock that was ahead. */
export function restoreLeftMs({ restoredAt = 0, restores }: UserRecord, at: number): number {
  return Math.max(0, restoreWaitMs(restores) - Math.abs(at - restoredAt))
}

export function specOf(types: readonly NotificationType[], callbackUrl: string): Spec {
  return `${[...types].sort().join()} ${callbackUrl}`
}

export function typesOf(spec: Spec): NotificationType[] {
  const types = spec.slice(0, spec.indexOf(' ')).split(',')
  return notificationTypes.filter((type) => types.includes(type))
}

export function callbackUrlOf(spec: Spec): string {
  return spec.slice(spec.indexOf(' ') + 1)
}

export function union(names: readonly string[], others: readonly string[]): readonly string[] {
  return [...new Set([...names, ...others])].sort()
}
