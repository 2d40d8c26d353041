/** Who is at work, where operations of one process cross each other. */
import { expect, test } from 'vitest'
import { Configuration } from '../../src/keeper/configuration.js'
import { Lease } from '../../src/keeper/lease.js'
import { Problems } from '../../src/keeper/problems.js'
import { RecordStore } from '../../src/keeper/record-store.js'
import { StoreAccess } from '../../src/keeper/store-access.js'
import { Tenure } from '../../src/keeper/tenure.js'
import { newSlot, newUser } from '../../src/keeper/user-record.js'

const target = { types: ['behavioral'], callbackUrl: 'https://app.example.com/' } as const

/** A store of several processes, whose answers can be held back. */
class SharedStore extends Map<string, string> {
  holdBack: (key: string) => Promise<void> | undefined = () => undefined

  compareAndSet(key: string, expected: string | undefined, value: string): boolean {
    if (this.get(key) !== expected) return false
    this.set(key, value)
    return true
  }
}

function processOn(shared: SharedStore) {
  const slow = {
    get: async (key: string) => {
      const value = shared.get(key)
      await shared.holdBack(key)
      return value
    },
    set: (key: string, value: string) => void shared.set(key, value),
    delete: (key: string) => shared.delete(key),
    compareAndSet: (key: string, expected: string | undefined, value: string) =>
      shared.compareAndSet(key, expected, value),
  }
  const store = new StoreAccess(slow, 'coaching', { onFailure: () => {}, onRecovery: () => {} })
  const records = new RecordStore(store, () => {})
  const problems = new Problems(() => {})
  const parts = { store, lease: new Lease(store), records, problems, log: () => {} }
  return { records, tenure: new Tenure(parts, new Configuration(target, {})) }
}

test('a process that takes over while it reads again what the dead one wrote keeps its turn, and doubts what it read', async () => {
  const shared = new SharedStore()
  const dead = processOn(shared)
  expect(await dead.tenure.enter()).toBe('at-work')
  const alice = {
    ...newUser('alice'),
    slots: [{ ...newSlot(dead.tenure.generation?.target ?? 0, 1), id: 5 }],
  }
  dead.records.users.set('alice', alice)
  await dead.records.save(dead.records.place(alice))
  const { records, tenure } = processOn(shared)
  expect(await tenure.enter()).toBe('standing-by')
  shared.set('coaching:lease', 'free')
  let release = () => {}
  let isFirst = true
  shared.holdBack = (key) => {
    if (!key.includes('chunk') || !isFirst) return undefined
    isFirst = false
    return new Promise((resolve) => {
      release = resolve
    })
  }
  const looking = tenure.lookAgain()
  const entering = tenure.enter()
  await new Promise((resolve) => setTimeout(resolve, 20))
  release()
  await Promise.all([looking, entering])
  expect(records.isOwn).toBe(tenure.standing === 'at-work')
  expect(await tenure.enter()).toBe('at-work')
  expect(records.isOwn).toBe(true)
  expect(records.users.get('alice')?.slots[0]?.doubt).toBe('loaded')
})
