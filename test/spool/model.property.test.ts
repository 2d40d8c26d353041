import fc from 'fast-check'
import { expect, test } from 'vitest'
import { idsOf, keep, numbered, recorder, spoolFolder, until } from './support.js'

type Step =
  | { readonly kind: 'keep'; readonly count: number }
  | { readonly kind: 'restart' }
  | { readonly kind: 'deliver'; readonly isWorking: boolean }

const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ kind: fc.constant('keep' as const), count: fc.integer({ min: 1, max: 12 }) }),
  fc.record({ kind: fc.constant('restart' as const) }),
  fc.record({ kind: fc.constant('deliver' as const), isWorking: fc.boolean() }),
)

test('in any order of keeping, delivering and restarting, each delivery is done once, and none is lost', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(step, { maxLength: 15 }),
      fc.integer({ min: 1, max: 8 }),
      async (steps, concurrency) => {
        await using folder = await spoolFolder()
        const kept: string[] = []
        let isWorking = true
        // One that does not work never ends: it is done by a later process.
        const done = recorder()
        const deliver: typeof done.deliver = (delivery) =>
          isWorking ? done.deliver(delivery) : new Promise(() => {})
        const open = () => folder.open({ deliver, concurrency })
        let spool = await open()
        for (const each of steps) {
          if (each.kind === 'deliver') isWorking = each.isWorking
          if (each.kind === 'restart') {
            const left = await spool.close({ timeoutMs: 0 })
            // The model: what was kept and is not done is left.
            expect(left).toBe(kept.length - done.delivered.length)
            spool = await open()
            expect(spool.size).toBe(kept.length - done.delivered.length)
          }
          if (each.kind === 'keep') {
            const deliveries = Array.from({ length: each.count }, (_, index) => numbered(kept.length + index))
            await Promise.all(deliveries.map((delivery) => keep(spool, delivery)))
            kept.push(...idsOf(deliveries))
          }
        }
        await spool.close({ timeoutMs: 0 })
        isWorking = true
        spool = await open()
        await until(() => spool.size === 0)
        await spool.close()
        expect(idsOf(done.delivered).toSorted()).toEqual(kept.toSorted())
      },
    ),
    { numRuns: 25 },
  )
})
