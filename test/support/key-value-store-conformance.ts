/** What every key-value store does, whatever is behind it. */
import fc from 'fast-check'
import type { KeyValueStore } from 'notification-subscriber'
import type { RedisStore } from 'notification-subscriber/redis'
import { describe, expect, test } from 'vitest'
import { eventually } from './eventually.js'

let keys = 0
export function newKey(): string {
  keys += 1
  return `conformance ${process.pid} ${keys}`
}

const anyText = fc.string({ unit: 'binary', maxLength: 200 })

/** @param expires - whether the store forgets a value after its time */
export function describeKeyValueStore(
  name: string,
  storeNow: () => KeyValueStore,
  { expires = true }: { expires?: boolean } = {},
): void {
  describe(`${name} as a key-value store`, () => {
    test('gives no text for a key that was never set', async () => {
      expect(typeof (await storeNow().get(newKey()))).not.toBe('string')
    })

    test('gives back any text, with and without a time to live', async () => {
      await fc.assert(
        fc.asyncProperty(anyText, fc.option(fc.integer({ min: 60_000, max: 1e12 })), async (text, ttlMs) => {
          const key = newKey()
          await storeNow().set(key, text, ttlMs ?? undefined)
          expect(await storeNow().get(key)).toBe(text)
        }),
        { numRuns: 50 },
      )
    })

    test('overwrites and deletes one key and leaves others alone', async () => {
      const [key, other] = [newKey(), newKey()]
      await storeNow().set(key, 'first')
      await storeNow().set(other, 'other')
      await storeNow().set(key, 'second')
      expect(await storeNow().get(key)).toBe('second')
      await storeNow().delete(key)
      expect(typeof (await storeNow().get(key))).not.toBe('string')
      expect(await storeNow().get(other)).toBe('other')
    })

    if (!expires) return

    test('forgets a value after its time, unless it was written again for good', async () => {
      const [brief, kept] = [newKey(), newKey()]
      await storeNow().set(kept, 'brief', 40)
      await storeNow().set(kept, 'kept')
      await storeNow().set(brief, 'brief', 40)
      await eventually(async () => expect(typeof (await storeNow().get(brief))).not.toBe('string'))
      expect(await storeNow().get(kept)).toBe('kept')
    })
  })
}

/**
 * @param storesNow - several stores on the same data, as several processes have them
 * @param expires - whether the store forgets a value after its time
 * @param patienceMs - how long a few operations may take
 */
export function describeCompareAndSet(
  name: string,
  storesNow: () => readonly [RedisStore, ...RedisStore[]],
  { expires = true, patienceMs = 3_000 }: { expires?: boolean; patienceMs?: number } = {},
): void {
  describe(`compareAndSet of ${name}`, () => {
    test('does with any texts what a plain comparison does', async () => {
      const few = fc.constantFrom('', 'a', 'A', 'ä', '\0', '1', '1.0')
      const step = fc.record({ expected: fc.option(few, { nil: undefined }), value: few })
      await fc.assert(
        fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
          const [store] = storesNow()
          const key = newKey()
          let model: string | undefined
          for (const { expected, value } of steps) {
            const matches = model === expected
            expect(await store.compareAndSet(key, expected, value)).toBe(matches)
            if (matches) model = value
            expect(await store.get(key)).toBe(model)
          }
        }),
        { numRuns: 50 },
      )
    })

    test('has one winner, however many race for a free key', async () => {
      for (let round = 0; round < 20; round += 1) {
        const key = newKey()
        const racers = storesNow().map((store, index) => [store, String(index)] as const)
        const won = await Promise.all(
          racers.map(([store, value]) => store.compareAndSet(key, undefined, value, 60_000)),
        )
        expect(won.filter(Boolean)).toHaveLength(1)
        expect(await storesNow()[0].get(key)).toBe(String(won.indexOf(true)))
      }
    })

    test('loses no step of a counter that many count up', async () => {
      const key = newKey()
      const stepsEach = 20
      const countUp = async (store: RedisStore) => {
        for (let done = 0; done < stepsEach; ) {
          const seen = await store.get(key)
          const before = typeof seen === 'string' ? seen : undefined
          if (await store.compareAndSet(key, before, String(Number(before ?? 0) + 1))) done += 1
        }
      }
      await Promise.all(storesNow().map(countUp))
      expect(await storesNow()[0].get(key)).toBe(String(stepsEach * storesNow().length))
    })

    if (!expires) return

    test('stores for a time or for good, whatever the value before it had', async () => {
      const [store] = storesNow()
      const [brief, replaced, kept, later] = [newKey(), newKey(), newKey(), newKey()]
      expect(await store.compareAndSet(brief, undefined, 'brief', 40)).toBe(true)
      await store.set(replaced, 'first')
      expect(await store.compareAndSet(replaced, 'first', 'brief', 40)).toBe(true)
      await store.set(kept, 'first', patienceMs)
      expect(await store.compareAndSet(kept, 'first', 'kept')).toBe(true)
      // Ends after the time that `kept` had at first.
      await store.set(later, 'later', patienceMs)
      for (const key of [brief, replaced, later]) {
        await eventually(async () => expect(typeof (await store.get(key))).not.toBe('string'))
      }
      expect(await store.get(kept)).toBe('kept')
      // What is forgotten counts as none.
      expect(await store.compareAndSet(brief, undefined, 'again')).toBe(true)
    })
  })
}
