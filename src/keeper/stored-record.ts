/** What the store is told of one user, and what a process makes of that. */
import * as z from 'zod'
import { newUser, type UserRecord } from './user-record.js'

/** Short names: they stand in the store once for each user. */
const slotSchema = z.object({
  t: z.int(),
  g: z.int(),
  i: z.int().optional(),
  /** 2: and somebody else's stood in its place. */
  gone: z.literal([1, 2]).optional(),
  /** 1: `unanswered`, 2: `loaded`. */
  doubt: z.literal([1, 2]).optional(),
  p: z.number().optional(),
  /** Generation of an update without an answer. */
  l: z.int().optional(),
})

export const storedRecordSchema = z.object({
  u: z.string(),
  s: z.array(slotSchema),
  x: z.literal(1).optional(),
  n: z.int().optional(),
  since: z.int().optional(),
  r: z.number().optional(),
  d: z.number().optional(),
  /** When the user was met, without a gap. */
  m: z.number().optional(),
  /** Added by a roster that was not believed. */
  a: z.literal(1).optional(),
  gap: z.object({ p: z.number().optional() }).optional(),
})

export type StoredRecord = z.output<typeof storedRecordSchema>

/** @param now - monotonic */
export function toStored(record: UserRecord, now: number): StoredRecord {
  return {
    u: record.username,
    s: record.slots.map((slot) => ({
      t: slot.target,
      g: slot.generation,
      i: slot.id,
      gone: slot.isGone ? (slot.isTaken ? 2 : 1) : undefined,
      doubt: slot.doubt === 'unanswered' || slot.isCreating ? 1 : slot.doubt === 'loaded' ? 2 : undefined,
      p: slot.provenAt,
      l: slot.lateUpdate && now < slot.lateUpdate.settledFrom ? slot.lateUpdate.generation : undefined,
    })),
    x: record.isRemoved ? 1 : undefined,
    n: record.restoredCount || undefined,
    since: record.restoresSinceDelivery || undefined,
    r: record.restoredAt,
    d: record.deliveryAt,
    m: record.metAt,
    a: record.isTentative ? 1 : undefined,
    gap: record.interruption && { p: record.interruption.lastProvenAt },
  }
}

/** What a record that was read depends on. */
export interface LoadFacts {
  /** Whether the process that wrote it ended cleanly. */
  readonly wasClosed: boolean
  /** From when on no create of that process can still take effect; monotonic. */
  readonly settledFrom: number
  /** How long the next restore has to wait, in milliseconds. */
  readonly restoreWaitMs: (record: Pick<UserRecord, 'restoresSinceDelivery' | 'restoredAt'>) => number
  /** Monotonic. */
  readonly now: number
}

export function fromStored(stored: StoredRecord, facts: LoadFacts): UserRecord {
  const record = newUser(stored.u)
  record.isRemoved = stored.x === 1
  record.restoredCount = stored.n ?? 0
  record.restoresSinceDelivery = stored.since ?? 0
  record.restoredAt = stored.r
  record.deliveryAt = stored.d
  record.metAt = stored.m
  record.isTentative = stored.a === 1
  record.interruption = stored.gap && { lastProvenAt: stored.gap.p }
  record.restorableFrom = facts.now + facts.restoreWaitMs(record)
  record.slots = stored.s.map((slot) => {
    // A later process that ended cleanly does not make up for one that did not.
    const isClear = slot.doubt === undefined && (facts.wasClosed || slot.i === undefined)
    // Without an id, or where somebody else's stands, no create is sent before its intent is stored.
    const hasIntents = slot.doubt === undefined && slot.gone === 2
    const doubt = slot.doubt === 1 ? 'unanswered' : isClear || hasIntents ? 'none' : 'loaded'
    // A process that did not end cleanly may have had an update in flight, of this generation or a later one.
    const lateGeneration = slot.l ?? (isClear ? undefined : slot.g)
    return {
      target: slot.t,
      generation: slot.g,
      id: slot.i,
      isGone: slot.gone !== undefined,
      isTaken: slot.gone === 2,
      goneSince: facts.now,
      doubt,
      isCreating: false,
      settledFrom: doubt === 'none' ? 0 : facts.settledFrom,
      provenAt: slot.p,
      lateUpdate:
        lateGeneration === undefined
          ? undefined
          : { generation: lateGeneration, settledFrom: facts.settledFrom },
      isUnwritten: false,
    }
  })
  return record
}
