import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { expect } from 'vitest'
import { idsOf, lettersOf, numbered, recorder, test, until } from './support.js'

const programOf = (name: string) => fileURLToPath(new URL(`programs/${name}.ts`, import.meta.url))
const fatal = { name: 'Error', message: 'The process ended 3 times during this delivery.' }

test('everything whose keep resolved before the process was killed, twelve times, is delivered by the next one, or a dead letter', async (folder) => {
  const kept = new Set<string>()
  for (let round = 0; round < 12; round += 1) {
    const child = spawn(
      process.execPath,
      ['--import', 'tsx', programOf('keeps-numbers'), folder.path, String(round * 1e6)],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    )
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

test('of 15 deliveries the four that end the process are dead letters after at most 13 starts, and all others are done', async (folder) => {
  const endings = new Map([
    [4, 'exit'],
    [7, 'heap'],
    [9, 'loop'],
    [11, 'schema'],
  ])
  await folder.leave(...Array.from({ length: 15 }, (_, id) => numbered(id, { ending: endings.get(id) })))
  const lines: string[] = []
  let ended = 0
  for (let isEmpty = false; !isEmpty; ended += 1) {
    const args = ['--max-old-space-size=60', '--import', 'tsx', programOf('ends-its-process'), folder.path]
    const child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'ignore'] })
    let output = ''
    child.stdout.on('data', (chunk) => (output += chunk))
    await once(child, 'close')
    lines.push(...output.split('\n'))
    isEmpty = output.includes('empty')
    expect(ended).toBeLessThan(14)
  }
  const count = (line: string) => lines.filter((each) => each === line).length
  for (const id of endings.keys()) {
    expect([count(`done n${id}`), count(`stuck n${id}`)]).toEqual([0, 1])
  }
  for (let id = 0; id < 15; id += 1) if (!endings.has(id)) expect(count(`done n${id}`)).toBe(1)
  // Each process keeps one, unless it ends before, and what was kept is delivered.
  expect(count('kept nmeanwhile')).toBeGreaterThan(0)
  expect(count('done nmeanwhile')).toBeGreaterThanOrEqual(count('kept nmeanwhile'))
  await using spool = await folder.open()
  const letters = await lettersOf(spool)
  expect(letters.map(({ bodyText }) => JSON.parse(bodyText).notification.id).toSorted()).toEqual([
    'n11',
    'n4',
    'n7',
    'n9',
  ])
  for (const letter of letters) expect(letter).toMatchObject({ reason: 'stuck', error: fatal })
})
