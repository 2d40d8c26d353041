import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DueQueue } from '../../src/spool/due-queue.js'

const file = fc.record({ dueAt: fc.nat({ max: 4 }), bytes: fc.constantFrom(0, 2 ** 15) })
const files = fc.array(file, { maxLength: 200, size: 'max' }).chain((given) => {
  const all = given.map((each, id) => ({ fields: { kind: 'batch' as const, ...each, ...rest, id } }))
  return fc.shuffledSubarray(all, { minLength: all.length })
})
const rest = { attempts: 0, reportedAt: 0, count: 1 }

test('due files are taken by due time, then by id, up to 64 of them, until they have 1 MiB', () => {
  fc.assert(
    fc.property(files, fc.nat({ max: 4 }), (added, now) => {
      const sorted = added.toSorted(({ fields: a }, { fields: b }) => a.dueAt - b.dueAt || a.id - b.id)
      const queue = new DueQueue<(typeof added)[number]>()
      for (const each of added) queue.add(each)
      expect([queue.first, queue.last]).toEqual([sorted[0], sorted.at(-1)])
      let bytes = 0
      const expected = sorted.filter(({ fields }, index) => {
        const isTaken = fields.dueAt <= now && index < 64 && bytes < 2 ** 20
        bytes += fields.bytes
        return isTaken
      })
      expect(queue.takeDue(now)).toEqual(expected)
      expect(queue.first).toEqual(sorted[expected.length])
    }),
  )
})
