/** What the keeper makes of its store: on the model of the service. */
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { StoreAccess } from '../../src/keeper/store-access.js'
import { codes, minute, settledWorld, useVirtualProcesses } from './model/setup.js'
import { type Node, World } from './model/world.js'

useVirtualProcesses()

describe('a head that this version cannot read', () => {
  test('is a STORE problem that names it, until it can be read again', async () => {
    const world = await settledWorld({ users: 2 })
    const [node] = world.nodes as [Node]
    const store = world.store.for(node.process)
    const head = String(await world.settled(node, async () => store.get('coaching:head')))
    await world.settled(node, async () => store.set('coaching:head', '{"version":2}'))
    await world.time.advance(20 * minute)
    expect(codes(world)).toEqual(['STORE'])
    expect(String(world.problems[0]?.what.error)).toContain('"coaching:head" cannot be read')
    await world.settled(node, async () => store.set('coaching:head', head))
    await world.time.advance(2 * minute)
    expect(codes(world)).toEqual(['STORE', 'STORE is over'])
    expect(node.process.run(() => node.keeper.status()).counts).toMatchObject({ active: 2 })
  })
})

test('two processes that begin at the same moment, on an empty store, find that it works', async () => {
  for (let seed = 1; seed <= 20; seed++) {
    const world = new World({ seed, usernames: ['alice'] })
    world.start()
    world.start()
    await world.time.advance(5 * minute)
    expect(codes(world)).toEqual([])
    expect(world.service.activeFor('alice')).toHaveLength(1)
  }
})

test('a store that hung is asked for records again as soon as it has proven to work', async () => {
  vi.useFakeTimers()
  onTestFinished(() => void vi.useRealTimers())
  let isHanging = true
  const kept = new Map<string, string>()
  const store = {
    get: (key: string) => (isHanging ? new Promise(() => {}) : kept.get(key)),
    set: (key: string, value: string) => kept.set(key, value),
    delete: (key: string) => kept.delete(key),
  }
  const access = new StoreAccess(store, 'coaching', { onFailure() {}, onRecovery() {} })
  const read = expect(access.read('chunk:0')).rejects.toThrow('did not answer')
  await vi.advanceTimersByTimeAsync(5_000)
  await read
  await expect(access.read('chunk:0')).rejects.toThrow('asked again in a few seconds')
  isHanging = false
  await access.prove()
  expect(await access.read('chunk:0')).toBeUndefined()
})
