/** When a user is visited again, enumerated: every way in which a visit can end, in every state of the record. */
import { describe, expect, test } from 'vitest'
import { nothingLearnt } from '../../src/keeper/decide.js'
import { followUp } from '../../src/keeper/follow-up.js'
import { newSlot, newUser, type Slot, type UserRecord } from '../../src/keeper/user-record.js'

const now = 1_000_000
const minute = 60_000
const sweepIntervalMs = 15 * minute
const error = new Error('refused')

type ChainEnd = Parameters<typeof followUp>[1]

const failed = (
  kind: 'SERVICE' | 'REFUSED' | 'CREDENTIALS' | 'INVALID',
  retryAfterMs?: number,
): ChainEnd => ({
  end: 'failed',
  error,
  trouble: { kind, error, retryAfterMs },
})

const ends: readonly ChainEnd[] = [
  { end: 'settled' },
  { end: 'conflict' },
  { end: 'aborted' },
  { end: 'held', error },
  { end: 'broken', error },
  { end: 'waiting', until: now + 5_000 },
  { end: 'waiting', until: 'store', error },
  failed('SERVICE'),
  failed('SERVICE', 3_600_000),
  failed('REFUSED'),
  failed('CREDENTIALS'),
  failed('INVALID'),
]

const records: readonly UserRecord[] = [0, 1, 20].flatMap((failures) =>
  [false, true].flatMap((hasConflict) =>
    [now - 1, now + minute].flatMap((restorableFrom) =>
      (['none', 'loaded', 'unanswered'] as const).flatMap((doubt) =>
        [1, 2].map((slots) => ({
          ...newUser('alice'),
          dueFrom: now - 10,
          isQuiet: true,
          error: failures > 0 ? error : undefined,
          failures,
          hasConflict,
          restorableFrom,
          slots: Array.from({ length: slots }, (_, target) => slotWith({ target, doubt })),
        })),
      ),
    ),
  ),
)

function slotWith(given: Partial<Slot>): Slot {
  return { ...newSlot(0, 1), id: 5, settledFrom: now + 2 * minute, ...given }
}

/** The record as it is after a visit, and what the visit was. */
function visited(record: UserRecord, end: ChainEnd, { isProven = true, suspectsEnd = false } = {}) {
  const learnt = { ...nothingLearnt(), isProven }
  const chain = { record, startedSince: now - 100, suspectsEnd, learnt }
  return { before: record, end, ...record, ...followUp(chain, end, { now, sweepIntervalMs }) }
}

const visits = records.flatMap((record) => ends.map((end) => visited(record, end)))

describe('after every visit', () => {
  test('the user is visited again within an interval, and not before what is waited for', () => {
    expect(visits.filter(({ dueFrom }) => dueFrom < now || dueFrom > now + sweepIntervalMs)).toEqual([])
    for (const { end, dueFrom } of visits) {
      if (end.end === 'waiting') expect(dueFrom).toBe(end.until === 'store' ? now + 10_000 : end.until)
    }
  })

  test('a failure is counted, and forgotten only when the service has answered', () => {
    for (const { end, before, failures, error: present } of visits) {
      const isFailure = end.end === 'failed' || end.end === 'broken'
      const isUntold = end.end === 'held' || end.end === 'aborted'
      const expected = isUntold ? [before.failures, before.error] : [0, undefined]
      expect([failures, present]).toEqual(isFailure ? [before.failures + 1, error] : expected)
    }
  })

  test('a conflict is there if it was met, and stays until an answer says otherwise', () => {
    for (const { end, before, hasConflict } of visits) {
      const isUnanswered = ['failed', 'broken', 'held', 'aborted'].includes(end.end)
      expect(hasConflict).toBe(isUnanswered ? before.hasConflict : end.end === 'conflict')
    }
  })

  test('a delivery may save the next probe only where nothing but that probe is to be done', () => {
    const quiet = visits.filter(({ isQuiet }) => isQuiet)
    expect(quiet.length).toBeGreaterThan(0)
    for (const { end, slots } of quiet) {
      expect([end.end, slots.length]).toEqual(['settled', 1])
      expect(slots[0]?.doubt).not.toBe('unanswered')
    }
  })
})

describe('a user who fails', () => {
  const dueAfter = (failures: number, end: ChainEnd) =>
    visited({ ...newUser('alice'), failures }, end).dueFrom - now

  test('is tried again after a time that doubles, from 5 s to 5 min', () => {
    const waits = [0, 1, 2, 5, 6, 30].map((failures) => dueAfter(failures, failed('SERVICE')))
    expect(waits).toEqual([5_000, 10_000, 20_000, 160_000, 5 * minute, 5 * minute])
  })

  test('is tried again no earlier than the service asks, but for 5 min at most', () => {
    expect(dueAfter(0, failed('SERVICE', 30_000))).toBe(30_000)
    expect(dueAfter(0, failed('SERVICE', 3_600_000))).toBe(5 * minute)
  })

  test('because the client refuses the request, or the keeper is broken, is tried again in turn only', () => {
    expect(dueAfter(0, failed('INVALID'))).toBe(sweepIntervalMs)
    expect(dueAfter(0, { end: 'broken', error })).toBe(sweepIntervalMs)
  })
})

describe('a user whose subscription is proven', () => {
  const settled: ChainEnd = { end: 'settled' }
  const user = (given: Partial<Slot>) => ({ ...newUser('alice'), slots: [slotWith(given)] })

  test('is visited again in turn', () => {
    expect(visited(user({}), settled)).toMatchObject({
      dueFrom: now + sweepIntervalMs,
      isQuiet: true,
      probes: 1,
    })
  })

  test('is visited again as soon as an unanswered create can take effect no longer', () => {
    const doubtful = user({ doubt: 'unanswered' })
    expect(visited(doubtful, settled)).toMatchObject({ dueFrom: now + 2 * minute, isQuiet: false })
    // Since the visit began it has become one that can be settled.
    expect(visited(user({ doubt: 'unanswered', settledFrom: now - 50 }), settled).dueFrom).toBe(now - 50)
    expect(visited(user({ doubt: 'unanswered', settledFrom: now - 200 }), settled).dueFrom).toBe(
      now + sweepIntervalMs,
    )
  })

  test('is visited again as soon as a restore is allowed', () => {
    const waiting = { ...user({}), restorableFrom: now + minute }
    expect(visited(waiting, settled).dueFrom).toBe(now + minute)
  })

  test('is not counted as probed in turn where an end is suspected', () => {
    expect(visited(user({}), settled, { suspectsEnd: true }).probes).toBe(0)
  })

  test('by nothing that was done now is visited when that was due before', () => {
    const known = { ...user({}), dueFrom: now + 7 }
    expect(visited(known, settled, { isProven: false })).toMatchObject({ dueFrom: now + 7, probes: 0 })
  })
})
