/** What happens to the store. */
import fc from 'fast-check'
import type { StoreMode } from '../store.js'
import { event, forMs, minute, node, nothing } from './event.js'

/** No value of a keeper. */
const garbage = fc.constantFrom(
  'garbage',
  '',
  'null',
  '[]',
  '{}',
  '0',
  '{"version":1e99,"username":"agent0","subscriptions":[]}',
  'x'.repeat(100_000),
)

export const storeEvents = {
  failingStore: event(
    fc.record({
      mode: fc.constantFrom<StoreMode[]>('failing', 'hanging', 'forgetting', 'stale', 'slow'),
      forMs,
    }),
    (world, { mode, forMs }) => {
      world.store.mode = mode
      world.time.schedule(forMs, () => {
        world.store.mode = 'working'
      })
    },
  ),

  droppedWrites: event(fc.record({ forMs: fc.integer({ min: 10, max: 10_000 }) }), (world, { forMs }) => {
    world.store.mode = 'dropping'
    world.time.schedule(forMs, () => {
      world.store.mode = 'working'
    })
  }),

  cutOff: event(fc.record({ node, forMs }), (world, { node, forMs }) => {
    const cut = world.node(node)
    if (cut === undefined) return
    world.store.cutOff(cut.process)
    world.time.schedule(forMs, () => world.store.reconnect(cut.process))
  }),

  emptyStore: event(nothing, (world) => world.store.forget()),

  /** The primary dies; a moment later the replica, which lacks the last writes, is the store. */
  promoteReplica: event(
    fc.record({
      lackingMs: fc.integer({ min: 1, max: 3_000 }),
      afterMs: fc.integer({ min: 0, max: 15_000 }),
    }),
    (world, { lackingMs, afterMs }) => {
      world.store.mode = 'failing'
      world.time.schedule(afterMs, () => {
        if (world.haveFaultsEnded) return
        world.store.rewind(afterMs + lackingMs)
        world.store.mode = 'working'
      })
    },
  ),

  /** Somebody restores an old dump. */
  restoreDump: event(fc.record({ ageMs: fc.integer({ min: 1_000, max: 40 * minute }) }), (world, { ageMs }) =>
    world.store.rewind(ageMs),
  ),

  /** One key holds something else for a while, or cannot be used. */
  spoilKey: event(
    fc.record({ key: fc.nat(), text: fc.option(garbage, { nil: undefined }), forMs }),
    (world, { key, text, forMs }) => {
      const { keys } = world.store
      if (keys.length === 0) return
      world.store.spoil(keys[key % keys.length] as string, text)
      world.time.schedule(forMs, () => world.store.clean())
    },
  ),
}
