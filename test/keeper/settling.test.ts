/** When it is certain what a create without an answer has done. */
import { describe, expect, test } from 'vitest'
import { minute, second, settledWorld, useVirtualProcesses } from './model/setup.js'
import type { Node } from './model/world.js'

useVirtualProcesses()

describe('a create without an answer', () => {
  test('that can no longer take effect since a visit began is settled at once, and not in turn', async () => {
    const world = await settledWorld({ users: 1 })
    const [{ process, keeper }] = world.nodes as [Node]
    world.want('newcomer')
    world.nextFates.push({ kind: 'answered' }, { kind: 'status', status: 500 })
    process.receive(0, () => void keeper.sweep())
    await world.time.advance(10 * second)
    const lost = world.requests.find(({ username }) => username === 'newcomer')
    expect(world.requests.at(-1)).toMatchObject({ username: 'newcomer', effect: 201 })
    // The next proof is sent before the two minutes are over, and answered after them.
    await world.time.advance((lost?.atMs ?? 0) + 119 * second - world.time.nowMs)
    world.nextFates.push(
      { kind: 'slow', effectAfterMs: 100, answerAfterMs: 3 * second },
      { kind: 'slow', effectAfterMs: 100, answerAfterMs: 3 * second },
    )
    process.receive(0, () => void keeper.sweep())
    await world.time.advance(minute)
    expect(process.run(() => keeper.status()).counts).toMatchObject({ active: 2, unproven: 0 })
    expect(world.violations).toEqual([])
  })
})
