import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { idsOf, lettersOf, recorder, test, until } from './support.js'

const program = fileURLToPath(new URL('programs/keeps-numbers.ts', import.meta.url))

test('everything whose keep resolved before the process was killed, twelve times, is delivered by the next one, or a dead letter', async (folder) => {
  const kept = new Set<string>()
  for (let round = 0; round < 12; round += 1) {
    const args = ['--import', 'tsx', program, folder.path, String(round * 1e6)]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
    const exited = once(child, 'exit')
    const before = kept.size
    let rest = ''
    child.stdout.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk).split('\n')
      rest = lines.pop() ?? ''
      for (const line of lines) kept.add(`n${line}`)
    })
    await until(() => kept.size > before + 200 + 50 * round)
    child.kill('SIGKILL')
    await exited
    if (!child.stdout.readableEnded) await once(child.stdout, 'end')
  }
  const { deliver, delivered } = recorder()
  await using spool = await folder.open({ deliver, concurrency: 200 })
  await until(() => spool.size === 0)
  // The calls of `deliver` that the kills interrupted count as their cause: all of the first one, then two of each.
  const letters = (await lettersOf(spool)).map(({ bodyText }) => JSON.parse(bodyText))
  expect(letters.length).toBeLessThanOrEqual(11 / 2)
  const ids = idsOf([...delivered, ...letters])
  expect(new Set(ids).size).toBe(ids.length)
  expect([...kept].filter((id) => !ids.includes(id))).toEqual([])
})
