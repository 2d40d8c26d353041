/** What a process that had met a user before says of a gap, one case after the other. */
import { describe, expect, test } from 'vitest'
import { Leftovers, recall } from '../../src/keeper/handover.js'
import { newSlot, newUser, type UserRecord } from '../../src/keeper/user-record.js'

const leftover = { u: 'alice', t: 0 }

function unmet(): UserRecord {
  return { ...newUser('alice'), slots: [newSlot(0, 1)] }
}

function metAt(at: number | undefined): UserRecord {
  return { ...newUser('alice'), slots: [{ ...newSlot(0, 1), id: 5 }], metAt: at }
}

describe('what is left over of a user', () => {
  const cases = [
    {
      what: 'whom nobody has met here is a gap from that proof on',
      record: unmet(),
      p: 10,
      m: 3,
      gap: 10,
      known: 3,
    },
    {
      what: 'who was met here afterwards is a gap from that proof on',
      record: metAt(20),
      p: 10,
      m: 3,
      gap: 10,
      known: 3,
    },
    {
      what: 'who was met here before is a gap of which nobody knows the beginning',
      record: metAt(20),
      p: 30,
      m: 3,
      gap: undefined,
      known: 3,
    },
    {
      what: 'who was never proven is a gap of which nobody knows the beginning',
      record: metAt(20),
      gap: undefined,
    },
  ]
  for (const { what, record, p, m, gap, known } of cases) {
    test(what, () => {
      recall(record, { ...leftover, p, m })
      expect(record.interruption).toEqual({ lastProvenAt: gap })
      expect(record.metAt).toBe(known)
    })
  }

  test('is no gap if it is of the same history, or every gap was told', () => {
    for (const record of [metAt(20), metAt(undefined)]) {
      recall(record, { ...leftover, p: 30, m: 20 })
      expect(record.interruption).toBeUndefined()
    }
  })

  test('is a gap of the same history, too, if an answer was lost', () => {
    const record = metAt(20)
    recall(record, { ...leftover, p: 30, m: 20, d: 1 })
    expect(record.interruption).toEqual({ lastProvenAt: 30 })
  })

  test('by two who had met the user one after the other is one gap from the earlier one on, in any order', () => {
    const earlier = { ...leftover, p: 10 }
    const later = { ...leftover, p: 30, m: 20 }
    for (const [one, other] of [
      [earlier, later],
      [later, earlier],
    ] as const) {
      for (const record of [unmet(), metAt(40)]) {
        recall(record, one)
        recall(record, other)
        expect(record.interruption).toEqual({ lastProvenAt: 10 })
        expect(record.metAt).toBeUndefined()
      }
    }
  })

  test('of one history is one with the earlier proof, and beside that of another, or of a lost answer', () => {
    const leftovers = new Leftovers()
    for (const p of [20, 10]) leftovers.add({ ...leftover, p })
    leftovers.add({ ...leftover, p: 30, m: 20 })
    leftovers.add({ ...leftover, p: 40, d: 1 })
    expect(leftovers.list().map(({ p }) => p)).toEqual([10, 30, 40])
  })

  test('is told once: what comes of the same history later is none', () => {
    const record = metAt(20)
    recall(record, { ...leftover, p: 10, m: 3 })
    record.interruption = undefined
    recall(record, { ...leftover, p: 8, m: 3 })
    expect(record.interruption).toBeUndefined()
  })
})
