import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  idsOf,
  keep,
  keepInvalid,
  lettersOf,
  never,
  numbered,
  recorder,
  spoolFolder,
  until,
} from '../spool/support.js'
import { call } from './support.js'

/** A folder with two dead letters: one that is no delivery, and one that is. */
async function folderOfLetters() {
  const folder = await spoolFolder()
  const spool = await folder.open()
  await keepInvalid(spool, 'no JSON\u001b[2J')
  await keepInvalid(spool, numbered(1))
  const [none, delivery] = (await lettersOf(spool)).map(({ id }) => id)
  await spool.close()
  const command = (...args: (string | number | undefined)[]) =>
    call(['spool', folder.path, ...args.map(String)])
  return Object.assign(folder, { none, delivery, command })
}

describe('notification-subscriber spool', () => {
  test('list and show also work beside a running process, and change nothing', async () => {
    await using folder = await folderOfLetters()
    await using running = await folder.open({ deliver: never })
    await keep(running, numbered(2))
    await keep(running, numbered(3))
    const before = await readdir(folder.path)
    const listed = await folder.command('list')
    expect(listed.code).toBe(0)
    expect(listed.stdout.split('\n')).toEqual([
      expect.stringMatching(/^Waiting: 2, the oldest for [\d.]+ m?s\. Dead letters: 2\.$/),
      expect.stringMatching(
        new RegExp(`^${folder.none} {2}\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z {2}invalid {2}\`x\\[0\\]\`: m$`),
      ),
      expect.stringMatching(new RegExp(`^${folder.delivery} `)),
    ])
    const shown = await folder.command('show', folder.none)
    // Nothing that controls a terminal.
    expect(shown.stdout.split('\n')[1]).toBe('no JSON [2J')
    const json = JSON.parse((await folder.command('show', folder.delivery, '--json')).stdout)
    expect(json).toMatchObject({
      event: 'dead-letter',
      id: folder.delivery,
      bodyText: JSON.stringify(numbered(1)),
    })
    expect(await readdir(folder.path)).toEqual(before)
  })

  test('beside a process that works nothing looks damaged, and all that waits is counted', async () => {
    await using folder = await spoolFolder()
    let isWorking = true
    const deliver = () => (isWorking ? undefined : Promise.reject(new Error('later')))
    await using running = await folder.open({ deliver })
    const work = async () => {
      for (let id = 0; id < 300; id += 1) {
        await Promise.all([keep(running, numbered(id)), keepInvalid(running, `no JSON ${id}`)])
        for (const letter of await lettersOf(running)) await running.discard(letter.id)
      }
      isWorking = false
      for (let id = 300; id < 310; id += 1) await keep(running, numbered(id))
    }
    let isDone = false
    const working = work().finally(() => {
      isDone = true
    })
    while (!isDone) {
      const { code, stdout } = await call(['spool', folder.path])
      expect([code, stdout]).toEqual([0, expect.not.stringContaining('damaged')])
    }
    await working
    expect((await call(['spool', folder.path])).stdout).toMatch(/^Waiting: 10, /)
  })

  test('retry puts a letter back for the next process, unless it is no delivery, and discard removes one', async () => {
    await using folder = await folderOfLetters()
    const { code, stderr } = await folder.command('retry', folder.none)
    expect([code, stderr]).toEqual([1, expect.stringMatching(/INVALID_DELIVERY/)])
    expect((await folder.command('retry', folder.delivery)).code).toBe(0)
    expect((await folder.command('discard', folder.none)).code).toBe(0)
    expect((await folder.command('list')).stdout).toMatch(/^Waiting: 1, .* Dead letters: 0\.$/)
    const { deliver, delivered } = recorder()
    await using spool = await folder.open({ deliver })
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n1'])
  })

  test.each(['retry', 'discard'])('%s is refused while a process has the folder open', async (action) => {
    await using folder = await folderOfLetters()
    await using running = await folder.open()
    const { code, stderr } = await folder.command(action, folder.delivery)
    expect([code, stderr]).toEqual([
      2,
      expect.stringContaining(`call spool.${action}(${folder.delivery}) there`),
    ])
    expect(await lettersOf(running)).toHaveLength(2)
  })

  test('after a killed process, the next one still begins carefully', async () => {
    await using folder = await folderOfLetters()
    await writeFile(join(folder.path, '0123456789ab-7.lock'), '')
    await folder.command('discard', folder.none)
    expect(await folder.names(/\.lock$/)).toEqual([expect.stringMatching(/-7\.lock$/)])
    await (await folder.open()).close()
    expect(await folder.names(/\.lock$/)).toEqual([])
  })

  test('a damaged letter is reported, left as it is, and the others are shown', async () => {
    await using folder = await folderOfLetters()
    const [name = ''] = await folder.names()
    const file = join(folder.path, name)
    await writeFile(file, (await readFile(file, 'utf8')).replace('no JSON', 'No JSON'))
    const { code, stdout } = await folder.command('list')
    expect([code, stdout.split('\n')]).toEqual([
      0,
      [
        'Waiting: 0. Dead letters: 1.',
        expect.stringMatching(`^${folder.delivery} `),
        expect.stringContaining(`${name} is damaged`),
      ],
    ])
    expect(await folder.names()).toContain(name)
  })

  test('an empty folder is an empty spool, and an unknown letter is named', async () => {
    await using folder = await spoolFolder()
    await mkdir(folder.path)
    expect((await call(['spool', folder.path])).stdout).toBe('Waiting: 0. Dead letters: 0.')
    expect(await call(['spool', folder.path, 'show', '7'])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('7'),
    })
  })
})
