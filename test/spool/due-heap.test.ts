import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DueHeap } from '../../src/spool/due-heap.js'

test('items are taken when they are due, the first one first, whatever is added in between', () => {
  const step = fc.oneof(fc.record({ dueAt: fc.nat({ max: 20 }) }), fc.record({ takeAt: fc.nat({ max: 20 }) }))
  fc.assert(
    fc.property(fc.array(step, { maxLength: 100 }), (steps) => {
      const heap = new DueHeap<{ readonly dueAt: number }>()
      const model: { readonly dueAt: number }[] = []
      for (const each of steps) {
        if ('dueAt' in each) {
          heap.add(each)
          model.push(each)
        } else {
          model.sort((a, b) => a.dueAt - b.dueAt)
          const isDue = model[0] !== undefined && model[0].dueAt <= each.takeAt
          const taken = heap.takeDue(each.takeAt)
          expect(taken?.dueAt).toBe(isDue ? model[0]?.dueAt : undefined)
          if (taken) model.splice(model.indexOf(taken), 1)
        }
        expect(heap.first?.dueAt).toBe(
          model.length > 0 ? Math.min(...model.map(({ dueAt }) => dueAt)) : undefined,
        )
      }
    }),
  )
})
