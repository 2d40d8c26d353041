import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect } from 'vitest'
import { inspectFolder } from '../../src/spool/inspect.js'
import { keep, keepInvalid, never, numbered, test } from './support.js'

test('an open folder shows how many wait, since when, and its dead letters, and stays as it is', async (folder) => {
  const startedAt = Date.now()
  await using spool = await folder.open({
    deliver: ({ notification }) => (notification.id === 'n1' ? undefined : never()),
  })
  for (const id of [1, 2, 3]) await keep(spool, numbered(id))
  for (const body of ['a', 'b']) await keepInvalid(spool, body)
  const [, name = ''] = await folder.names(/invalid$/)
  const file = join(folder.path, name)
  await writeFile(file, (await readFile(file, 'utf8')).replace('"b"', '"B"'))
  const before = await folder.names()
  const { oldestReceivedAt, ...rest } = await inspectFolder(folder.path)
  expect(rest).toMatchObject({ waiting: 2, letters: [{ body: 'a' }], damaged: [name] })
  expect(oldestReceivedAt).toBe(spool.oldestReceivedAt)
  expect(oldestReceivedAt).toBeGreaterThanOrEqual(startedAt)
  expect(await folder.names()).toEqual(before)
  await spool.close({ timeoutMs: 0 })
})

test('beside a process that keeps and delivers without a pause nothing is damaged, and the folder can be listed', async (folder) => {
  let isRunning = true
  await using spool = await folder.open({ deliver: async () => {} })
  const keeping = (async () => {
    for (let id = 0; isRunning; id += 1) {
      await Promise.all(
        [1, 2, 3, 4].map((each) => keep(spool, numbered(`${id}-${each}`, { text: 'x'.repeat(50_000) }))),
      )
      if (id % 10 === 0)
        await keepInvalid(spool, 'x').then(async () => {
          for await (const { id } of spool.deadLetters()) await spool.discard(id)
        })
    }
  })()
  for (let look = 0; look < 30; look += 1) {
    const { damaged, waiting } = await inspectFolder(folder.path)
    expect(damaged).toEqual([])
    expect(waiting).toBeLessThan(1_000)
  }
  isRunning = false
  await keeping
})

test('a folder in which nothing waits, or that is not there, is no fault of the reader', async (folder) => {
  await expect(inspectFolder(folder.path)).rejects.toMatchObject({ code: 'ENOENT' })
  await (await folder.open()).close()
  const empty = { waiting: 0, oldestReceivedAt: undefined, letters: [], damaged: [] }
  expect(await inspectFolder(folder.path)).toEqual(empty)
})
