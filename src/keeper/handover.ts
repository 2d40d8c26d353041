/**
 * What a process learnt while the store failed and could not write before another one took its turn: who may have a
 * subscription whose id the store does not know. The head carries that to the one at work:
 *
 *   a record that this process may not write -- note, noteAll --> its `Leftovers`, in memory
 *   these -- passOn --> `leftovers` of the head, in the store
 *   these -- takeOver, by the one at work --> putInDoubt: the slot is settled like a create without an answer
 *
 * Of a user without a record they stay in the head until a roster that was asked since tells whether the user is wanted:
 * `unknownUsers`, and membership.ts.
 */
import * as z from 'zod'
import type { RecordStore } from './record-store.js'
import { Overtaken } from './store-access.js'
import { earlierStamp, settlingMs } from './timing.js'
import { isMet, newSlot, type Slot, slotOf, type UserRecord } from './user-record.js'

/** Short names, as in the records. */
export const leftoverSchema = z.object({
  u: z.string(),
  t: z.int(),
  /** When the last proof of the subscription before was sent. */
  p: z.number().optional(),
  /** When the user was met, as in the records: it tells one history of the user from another. */
  m: z.number().optional(),
  /** Whether a create was not answered: whoever noted this cannot have told a gap since that proof. */
  d: z.literal(1).optional(),
})

export type Leftover = z.output<typeof leftoverSchema>

export class Leftovers {
  readonly #byKey = new Map<string, Leftover>()

  get size(): number {
    return this.#byKey.size
  }

  /** Notes what the store does not know of a record that is not written any more. Once: the next call finds nothing. */
  note(record: UserRecord): void {
    for (const slot of record.slots) {
      if (slot.isUnwritten) this.add(leftoverOf(record, slot))
      slot.isUnwritten = false
    }
  }

  /** Notes all of a record that the store has lost. It may be out of date: other ids may have taken the place of these. */
  noteAll(record: UserRecord): void {
    for (const slot of record.slots) if (!slot.isTaken) this.add(leftoverOf(record, slot))
  }

  add(leftover: Leftover): void {
    const key = keyOf(leftover)
    const earlier = this.#byKey.get(key)
    this.#byKey.set(key, { ...leftover, p: earlierStamp(leftover.p, earlier ? earlier.p : leftover.p) })
  }

  remove(leftover: Leftover): void {
    this.#byKey.delete(keyOf(leftover))
  }

  list(): Leftover[] {
    return [...this.#byKey.values()]
  }
}

/**
 * Leaves in the store what this process could not write in its own turn, and forgets it.
 *
 * @throws StoreFailure, Overtaken
 */
export async function passOn({ head, leftovers }: RecordStore): Promise<void> {
  if (leftovers.size === 0 || head.present === undefined) return
  const own = leftovers.list()
  const known = Object.entries(head.targets).filter(([number]) => own.some(({ t }) => t === Number(number)))
  const isNoted = await head.change((present) => {
    if (present === undefined) throw new Overtaken()
    const all = new Leftovers()
    for (const leftover of [...present.leftovers, ...own]) all.add(leftover)
    return {
      ...present,
      targets: { ...present.targets, ...Object.fromEntries(known) },
      leftovers: all.list(),
    }
  })
  if (!isNoted) throw new Overtaken()
  for (const leftover of own) leftovers.remove(leftover)
}

/**
 * Of the process at work: takes over what others, or it itself in an earlier turn, have left.
 *
 * @throws StoreFailure, Overtaken
 */
export async function takeOver(records: RecordStore): Promise<void> {
  await passOn(records)
  const { head } = records
  const taken = (head.present?.leftovers ?? []).filter((each) => putInDoubt(records, each))
  if (taken.length === 0) return
  for (const chunk of new Set(taken.map(({ u }) => records.users.get(u)?.chunk))) {
    if (chunk !== undefined) await records.save(chunk)
  }
  const keys = new Set(taken.map(keyOf))
  await head.change((present) => {
    if (present === undefined) throw new Overtaken()
    return { ...present, leftovers: present.leftovers.filter((each) => !keys.has(keyOf(each))) }
  })
}

/**
 * Who was left over and has no record: another process has met these users, or the process at work has forgotten them
 * meanwhile. Which of the two it is, only a roster that is asked from now on tells.
 */
export function unknownUsers(records: RecordStore): Set<string> {
  return new Set(leftoversOfUnknown(records).map(({ u }) => u))
}

export function leftoversOfUnknown({ head, users }: RecordStore): Leftover[] {
  return (head.present?.leftovers ?? []).filter(({ u }) => !users.has(u))
}

/** @returns false if that has to wait: for a create on its way, or for the roster to tell whether the user is wanted */
export function putInDoubt(records: RecordStore, leftover: Leftover): boolean {
  const record = records.users.get(leftover.u)
  if (record === undefined) return false
  let slot = slotOf(record, leftover.t)
  if (slot === undefined) {
    slot = newSlot(leftover.t, 0)
    record.slots.push(slot)
  }
  if (slot.isCreating) return false
  slot.doubt = 'unanswered'
  slot.settledFrom = performance.now() + settlingMs
  recall(record, leftover)
  record.isQuiet = false
  record.dueFrom = Math.min(record.dueFrom, slot.settledFrom)
  records.place(record).isStale = true
  return true
}

/**
 * Notes the gap since the last proof that another process had: it had lost an answer since, or had met the user before a
 * store was begun anew. The next proof ends that gap.
 */
export function recall(record: UserRecord, { p: provenAt, m: metAt, d: isUnanswered }: Leftover): void {
  const { interruption, metAt: metLast } = record
  const wasMet = isMet(record)
  const isSameHistory = wasMet && (metLast === undefined || metLast === metAt)
  if (isSameHistory && !isUnanswered) return
  // A later proof was of the other subscription: until when there was the earlier one, nobody knows.
  const isBefore = isSameHistory || metLast === undefined || (provenAt !== undefined && provenAt < metLast)
  const lastProvenAt = isBefore ? provenAt : undefined
  record.interruption = {
    lastProvenAt: interruption ? earlierStamp(interruption.lastProvenAt, lastProvenAt) : lastProvenAt,
  }
  record.metAt = wasMet || interruption ? earlierStamp(metLast, metAt) : metAt
}

function leftoverOf(
  { username, interruption, metAt }: UserRecord,
  { target, provenAt, doubt }: Slot,
): Leftover {
  const p = interruption ? earlierStamp(interruption.lastProvenAt, provenAt) : provenAt
  return { u: username, t: target, p, m: metAt, d: doubt === 'unanswered' ? 1 : undefined }
}

function keyOf({ u, t, m, d }: Leftover): string {
  return `${t} ${m ?? ''} ${d ?? ''} ${u}`
}
