import { expect, test, vi } from 'vitest'
import { GuardedStore, StoreFailure } from '../../src/stores/guarded-store.js'

const values = new Map<string, string>()
const working = { get: (key: string) => values.get(key), set: () => {}, delete: () => {} }

test('a value that is no text counts as none', async () => {
  const store = new GuardedStore({ ...working, get: () => 5 }, 100)
  await expect(store.get('key')).resolves.toBeUndefined()
})

test('a store that throws, rejects or hangs is one kind of error with its cause', async () => {
  const failure = new Error('down')
  const throwing = new GuardedStore(
    {
      ...working,
      get: () => {
        throw failure
      },
    },
    100,
  )
  const rejecting = new GuardedStore({ ...working, get: () => Promise.reject(failure) }, 100)
  const hanging = new GuardedStore({ ...working, get: () => new Promise(() => {}) }, 1)
  for (const store of [throwing, rejecting]) {
    await expect(store.get('key')).rejects.toSatisfy(
      (error) => error instanceof StoreFailure && error.cause === failure,
    )
  }
  await expect(hanging.get('key')).rejects.toBeInstanceOf(StoreFailure)
})

test('times to live become whole milliseconds; a value without one keeps no limit', async () => {
  const set = vi.fn()
  const store = new GuardedStore({ ...working, set }, 100)
  await store.set('key', 'value', 0.2)
  await store.set('key', 'value')
  expect(set.mock.calls).toEqual([
    ['key', 'value', 1],
    ['key', 'value', undefined],
  ])
})

test('only true means that a value was set', async () => {
  const store = new GuardedStore({ ...working, compareAndSet: () => 1 as unknown as boolean }, 100)
  expect(store.canCompareAndSet).toBe(true)
  await expect(store.compareAndSet('key', undefined, 'value')).resolves.toBe(false)
})
