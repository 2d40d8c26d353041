import { once } from 'notification-subscriber/once'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { deferred } from '../support/deferred.js'
import { NaiveStore, storeWith } from '../support/naive-store.js'

const inProgress = { name: 'InProgressError' }

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

test('work is done once, and a repetition is recognised', async () => {
  const store = new NaiveStore()
  const work = vi.fn()
  expect(await once(store, 'n-1', work)).toBe(true)
  expect(await once(store, 'n-1', work)).toBe(false)
  expect(await once(store, 'n-2', work)).toBe(true)
  expect(work).toHaveBeenCalledTimes(2)
})

test('a repetition is recognised for `keepMs`', async () => {
  const store = new NaiveStore()
  await once(store, 'n-1', () => {}, { keepMs: 1_000 })
  vi.advanceTimersByTime(999)
  expect(await once(store, 'n-1', () => {})).toBe(false)
  vi.advanceTimersByTime(1)
  expect(await once(store, 'n-1', () => {})).toBe(true)
})

test('one of several calls at the same moment works, and the others reject until it is done', async () => {
  const store = new NaiveStore()
  const working = deferred<void>()
  const work = vi.fn(() => working.promise)
  const calls = [1, 2, 3].map(() => once(store, 'n-1', work))
  const [first, ...others] = calls
  for (const other of others) await expect(other).rejects.toMatchObject(inProgress)
  await expect(once(store, 'n-1', work)).rejects.toMatchObject(inProgress)
  working.resolve()
  expect(await first).toBe(true)
  expect(await once(store, 'n-1', work)).toBe(false)
  expect(work).toHaveBeenCalledOnce()
})

test('work that failed is done again at once', async () => {
  const store = new NaiveStore()
  const error = new Error('no database')
  await expect(once(store, 'n-1', () => Promise.reject(error))).rejects.toBe(error)
  const work = vi.fn()
  expect(await once(store, 'n-1', work)).toBe(true)
  expect(work).toHaveBeenCalledOnce()
})

test('the claim of a process that died ends after `claimMs`', async () => {
  const store = new NaiveStore()
  void once(store, 'n-1', () => new Promise(() => {}), { claimMs: 1_000 })
  await vi.advanceTimersByTimeAsync(999)
  await expect(once(store, 'n-1', () => {})).rejects.toMatchObject(inProgress)
  await vi.advanceTimersByTimeAsync(1)
  expect(await once(store, 'n-1', () => {})).toBe(true)
})

test('work that fails late does not end the claim of the call that took over', async () => {
  const store = new NaiveStore()
  const slow = deferred<void>()
  const first = once(store, 'n-1', () => slow.promise, { claimMs: 1_000 })
  first.catch(() => {})
  await vi.advanceTimersByTimeAsync(1_000)
  void once(store, 'n-1', () => new Promise(() => {}))
  await vi.advanceTimersByTimeAsync(0)
  slow.reject(new Error('too late'))
  await expect(first).rejects.toThrow('too late')
  await expect(once(store, 'n-1', () => {})).rejects.toMatchObject(inProgress)
})

describe('a store', () => {
  test('that answers false to a write which it made is read', async () => {
    const store = new NaiveStore()
    const compareAndSet: typeof store.compareAndSet = async (...args) => {
      await store.compareAndSet(...args)
      return false
    }
    const work = vi.fn()
    expect(
      await once(
        storeWith(() => ({ compareAndSet }), store),
        'n-1',
        work,
      ),
    ).toBe(true)
    expect(work).toHaveBeenCalledOnce()
  })

  test('that fails: the call rejects, and no work is left out', async () => {
    const store = new NaiveStore()
    const fail = () => Promise.reject(new Error('the store is away'))
    const work = vi.fn()
    const failing = (name: 'get' | 'set' | 'compareAndSet') => storeWith(() => ({ [name]: fail }), store)
    await expect(once(failing('get'), 'n-1', work)).rejects.toThrow('away')
    await expect(once(failing('compareAndSet'), 'n-1', work)).rejects.toThrow('away')
    expect(work).not.toHaveBeenCalled()
    const notMarked = once(failing('set'), 'n-1', work, { claimMs: 10_000 })
    const refused = expect(notMarked).rejects.toThrow('away')
    await vi.advanceTimersByTimeAsync(5_000)
    await refused
    expect(work).toHaveBeenCalledOnce()
    vi.advanceTimersByTime(10_000)
    expect(await once(store, 'n-1', work)).toBe(true)
  })

  test('that fails for a moment after the work was done is asked again, and the work is not done twice', async () => {
    const store = new NaiveStore()
    let failures = 2
    const set: typeof store.set = (...args) => {
      failures -= 1
      if (failures >= 0) throw new Error('the store is away')
      return store.set(...args)
    }
    const work = vi.fn()
    const call = once(
      storeWith(() => ({ set }), store),
      'n-1',
      work,
    )
    await vi.advanceTimersByTimeAsync(2_000)
    expect(await call).toBe(true)
    expect(await once(store, 'n-1', work)).toBe(false)
    expect(work).toHaveBeenCalledOnce()
  })

  test('that holds a value of another program for the id is named: the work would wait for ever', async () => {
    const store = new NaiveStore()
    await store.set('once:n-1', '1')
    const call = once(store, 'n-1', () => {})
    await expect(call).rejects.toMatchObject({
      code: 'CONFIGURATION',
      issues: [{ path: ['store'], message: expect.stringContaining('once:n-1') }],
    })
  })

  test('that fails together with the work does not hide the error of the work', async () => {
    const store = new NaiveStore()
    const compareAndSet: typeof store.compareAndSet = (key, expected, value, ttlMs) => {
      if (value === 'failed') throw new Error('the store is away')
      return store.compareAndSet(key, expected, value, ttlMs)
    }
    const call = once(
      storeWith(() => ({ compareAndSet }), store),
      'n-1',
      () => Promise.reject(new Error('no database')),
    )
    await expect(call).rejects.toThrow('no database')
  })
})

test.each([
  ['store', [new Map(), 'n-1']],
  ['store', [undefined, 'n-1']],
  ['id', [new NaiveStore(), '']],
  ['id', [new NaiveStore(), undefined]],
  ['id', [new NaiveStore(), 'n-\ud83d']],
  ['claimMs', [new NaiveStore(), 'n-1'], { claimMs: 0 }],
  ['keepMs', [new NaiveStore(), 'n-1'], { keepMs: Number.POSITIVE_INFINITY }],
])('what cannot work is refused: %s', async (name, args, options: object = {}) => {
  const call = Reflect.apply(once, undefined, [...args, () => {}, options])
  await expect(call).rejects.toMatchObject({ code: 'CONFIGURATION', issues: [{ path: [name] }] })
})
