import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { GroupedWrites } from '../../src/spool/grouped-writes.js'

test('items of one turn, and those that arrive during a write, share the next write until it has 1 MiB', async () => {
  const groups: string[] = []
  const added: Promise<void>[] = []
  const writes = new GroupedWrites<string>(async (items) => {
    groups.push('begin')
    if (items.includes('a')) added.push(writes.add('d'))
    await setImmediate()
    groups.push(items.join(' '))
  })
  added.push(writes.add('a', 2 ** 19))
  await new Promise(process.nextTick)
  added.push(writes.add('b', 2 ** 19), writes.add('c'))
  await Promise.all(added)
  await Promise.all(added)
  expect(groups).toEqual(['begin', 'a b', 'begin', 'c d'])
})
