import { inspect } from 'node:util'
import { describe, expect, test } from 'vitest'
import { KeeperStore, KeyFailure, StoreUnavailable } from '../../src/keeper/keeper-store.js'
import { Problems } from '../../src/keeper/reporter.js'
import type { KeyValueStore } from '../../src/stores/key-value-store.js'

const parse = (text: string) => (text.startsWith('good') ? text : undefined)

/** A store whose faults can be chosen. */
function storeWith(faults: { get?: Set<string>; set?: Set<string>; all?: boolean; forgets?: boolean } = {}) {
  const map = new Map<string, string>()
  const reported: string[] = []
  const refuse = (isBroken: boolean | undefined) => {
    if (isBroken || faults.all) throw new Error('broken')
  }
  const store: KeyValueStore = {
    get(key) {
      refuse(faults.get?.has(key))
      return map.get(key)
    },
    set(key, value) {
      refuse(faults.set?.has(key))
      if (!faults.forgets) map.set(key, value)
    },
    delete: (key) => map.delete(key),
  }
  const problems = new Problems(({ code, message, resolved }) => {
    const about = /"(name:[^"]*)"/.exec(message)?.[1] ?? ''
    reported.push([code, about, resolved ? 'resolved' : ''].filter((word) => word !== '').join(' '))
  })
  return { map, reported, faults, store: new KeeperStore(store, 'name', problems), raw: store, problems }
}

describe('a store that fails', () => {
  test('refuses every operation until it works again, and is reported once', async () => {
    const { faults, reported, store } = storeWith({ all: true })
    for (const key of ['one', 'two']) await expect(store.read(key, parse)).rejects.toThrow(StoreUnavailable)
    expect(store.isFailing).toBe(true)
    faults.all = false
    await expect(store.read('one', parse)).rejects.toThrow(StoreUnavailable)
    await store.checkAgain()
    expect(store.isFailing).toBe(false)
    expect(await store.read('one', parse)).toMatchObject({ text: undefined, value: undefined })
    expect(reported).toEqual(['STORE', 'STORE resolved'])
  })

  test('is one that confirms and forgets, as soon as something is verified', async () => {
    const { store } = storeWith({ forgets: true })
    await expect(store.compareAndSet('one', undefined, 'good')).rejects.toThrow(StoreUnavailable)
  })

  test('is not believed when it answers with nothing where something must be', async () => {
    const { store } = storeWith({ forgets: true })
    await expect(store.read('one', parse, { isExpected: true })).rejects.toThrow(StoreUnavailable)
  })
})

describe('a fault of one key', () => {
  test('that has passed when the store is looked at is none', async () => {
    const { faults, map, reported, store } = storeWith({ get: new Set(['name:one']), set: new Set() })
    map.set('name:one', 'good')
    // The store is looked at with a key of the keeper's own.
    const { set } = map
    map.set = (key, value) => {
      faults.get?.clear()
      return set.call(map, key, value)
    }
    expect(await store.read('one', parse)).toMatchObject({ text: 'good', value: 'good' })
    expect(reported).toEqual([])
  })

  test('is reported with its name, and all others go on', async () => {
    const { faults, map, reported, store } = storeWith({ get: new Set(['name:bad']) })
    await expect(store.read('bad', parse)).rejects.toThrow(KeyFailure)
    map.set('name:fine', 'good')
    expect(await store.read('fine', parse)).toMatchObject({ text: 'good', value: 'good' })
    expect(store.isFailing).toBe(false)
    faults.get?.clear()
    await store.read('bad', parse)
    expect(reported).toEqual(['STORE name:bad', 'STORE name:bad resolved'])
  })

  test('that cannot be read is the copy from memory, which can be written over it', async () => {
    const { map, store } = storeWith()
    map.set('name:bad', 'garbage')
    await expect(store.read('bad', parse)).rejects.toThrow(KeyFailure)
    const stored = await store.read('bad', parse, { copy: 'good' })
    expect(stored).toEqual({ text: 'garbage', value: 'good', isDamaged: true })
  })

  test('puts nothing of what it holds into a log', async () => {
    const { map, store } = storeWith()
    map.set('name:bad', 'agent-007')
    const error: unknown = await store.read('bad', parse).catch((error: unknown) => error)
    expect(error).toBeInstanceOf(KeyFailure)
    expect(`${inspect(error)} ${JSON.stringify(error)}`).not.toContain('agent-007')
  })

  test('that cannot be written is not resolved because it can be read', async () => {
    const { reported, store } = storeWith({ set: new Set(['name:bad']) })
    await expect(store.compareAndSet('bad', undefined, 'good')).rejects.toThrow(KeyFailure)
    await store.read('bad', parse)
    expect(reported).toEqual(['STORE name:bad'])
    store.resolve('bad')
    expect(reported).toEqual(['STORE name:bad', 'STORE name:bad resolved'])
  })

  test('that cannot be written is resolved when nothing is to be written any more', async () => {
    const { reported, store } = storeWith({ set: new Set(['name:bad']) })
    const write = () => store.compareAndSet('bad', undefined, 'good')
    await expect(store.untilStored('bad', write)).rejects.toThrow(KeyFailure)
    // Another process has written it.
    await store.untilStored('bad', async () => true)
    expect(reported).toEqual(['STORE name:bad', 'STORE name:bad resolved'])
  })

  test('that cannot be written is not resolved because it holds another value', async () => {
    const { map, reported, store } = storeWith({ set: new Set(['name:bad']) })
    await expect(store.compareAndSet('bad', undefined, 'good')).rejects.toThrow(KeyFailure)
    map.set('name:bad', 'good of another process')
    expect(await store.compareAndSet('bad', undefined, 'good')).toBe(false)
    expect(reported).toEqual(['STORE name:bad'])
  })

  test('whose value is another one at every attempt is given up', async () => {
    const { store } = storeWith()
    let attempts = 0
    const attempt = async () => {
      attempts++
      return false
    }
    await expect(store.untilStored('one', attempt)).rejects.toThrow(KeyFailure)
    expect(attempts).toBeLessThan(20)
  })
})

describe('a store without compareAndSet', () => {
  test('is compared in this process, and one writer wins', async () => {
    const { map, problems, raw, store } = storeWith()
    const other = new KeeperStore(raw, 'name', problems)
    const wins = await Promise.all(
      [store, other, store].map((each, index) => each.compareAndSet('one', undefined, `good ${index}`)),
    )
    expect(wins.filter(Boolean)).toHaveLength(1)
    expect(map.get('name:one')).toBe(`good ${wins.indexOf(true)}`)
    expect(store.isForOneProcess).toBe(true)
  })
})
