import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { RunningProgram } from '../support/running-program.js'
import { idsOf, lettersOf, recorder, test, until } from './support.js'

const program = fileURLToPath(new URL('programs/keeps-numbers.ts', import.meta.url))

test('everything whose keep resolved before the process was killed, twelve times, is delivered by the next one, or a dead letter', async (folder) => {
  const kept = new Set<string>()
  for (let round = 0; round < 12; round += 1) {
    const before = kept.size
    // A line that is cut in the middle has no end.
    const onLine = (line: string) => void (line.endsWith('.') && kept.add(line.slice(0, -1)))
    const args = ['--import', 'tsx', program, folder.path, String(round * 1e6)]
    await using _running = new RunningProgram(args, { folder: process.cwd(), onLine })
    await until(() => kept.size > before + 200 + 50 * round)
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
