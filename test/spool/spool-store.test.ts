/** The store on a file system that fails, waits, takes notes, or has damaged what it was given. */
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs/promises'
import { readdir, readFile, unlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Delivery } from 'notification-subscriber/spool'
import { describe, expect } from 'vitest'
import * as z from 'zod'
import type { SpoolFiles } from '../../src/spool/folder.js'
import { type FileFields, lineOf, nameOf } from '../../src/spool/format.js'
import { deferred } from '../support/deferred.js'
import {
  callBack,
  diskThatFailsTo,
  eventLog,
  filesWith,
  idsOf,
  inVirtualTime,
  keep,
  keepInvalid,
  letterIdOf,
  lettersOf,
  never,
  numbered,
  openSpool,
  realTime,
  recorder,
  segmentOf,
  test,
  until,
} from './support.js'

function fileName(fields: Partial<FileFields> & { readonly id: number }): string {
  return nameOf({ kind: 'stuck', lastId: fields.id, count: 1, size: 9, oldestAt: 5, ...fields })
}

const diskLog = () => eventLog(/(read|write)-failed$/)
const err = expect.objectContaining({ code: 'SPOOL' })
const writeFailed = { event: 'spool.write-failed', err }

test('a new folder, and each new folder above it, is synced into the one above', async (folder) => {
  const synced: string[] = []
  const files = filesWith({
    before: (operation, file) => void (operation === 'sync' && synced.push(file)),
  })
  const path = join(folder.path, 'a', 'b')
  await (await openSpool({ path }, files)).close()
  const above = [join(folder.path, 'a'), folder.path, dirname(folder.path)]
  expect(synced).toEqual(above)
  await (await openSpool({ path }, files)).close()
  expect(synced).toEqual(above)
})

describe.concurrent('keep resolves', () => {
  test('after the line was written and synced, the first time also the name, and not before; so does keepInvalid', async (folder) => {
    const notes: string[] = []
    const files = filesWith({
      before: (operation, file, [, , options]) => {
        const kind = file === folder.path ? 'folder' : file.endsWith('.open') ? 'segment' : 'letter'
        const flushed = Object(options).flush ? ' and sync' : ''
        if (operation !== 'read') notes.push(`${kind} ${operation}${flushed}`)
      },
    })
    const spool = await folder.open({ deliver: never }, files)
    notes.length = 0
    const notesUntil = async (...kept: Promise<void>[]) => {
      await Promise.all(kept).then(() => notes.push('resolved'))
      const noted = notes.splice(0)
      return noted.slice(0, noted.indexOf('resolved') + 1)
    }
    const notesOf = (...ids: number[]) => notesUntil(...ids.map((id) => keep(spool, numbered(id))))
    const written = ['segment write', 'segment datasync']
    const named = ['folder open', 'folder sync', 'folder close']
    expect(await notesOf(1, 2, 3)).toEqual(['segment open', ...written, ...named, 'resolved'])
    expect(await notesOf(4, 5)).toEqual([...written, 'resolved'])
    const letter = ['letter writeFile and sync', 'letter rename', ...named, 'resolved']
    expect(await notesUntil(keepInvalid(spool, 'x'))).toEqual(letter)
    await spool.close({ timeoutMs: 0 })
  })

  test.for<[string, RegExp, number[]]>([
    ['open', /\.open$/, []],
    ['sync', /spool$/, []],
    ['write', /\.open$/, [1]],
    ['datasync', /\.open$/, [1]],
  ])(
    'not at all if %s of %s fails: all keeps of the write reject, and their segment gets nothing any more',
    async (folder, [operation, file, before]) => {
      const disk = diskThatFailsTo(operation, file)
      disk.isBroken = false
      // What was rejected takes nothing of the quota.
      const spool = await folder.open({ deliver: never, maxBytes: 5 * 4_096 }, disk.files)
      const large = (id: number) => numbered(id, { text: 'x'.repeat(4_900) })
      for (const id of before) await keep(spool, large(id))
      disk.isBroken = true
      const rejected = {
        status: 'rejected',
        reason: { code: 'SPOOL', reason: 'disk', cause: { code: 'EIO' } },
      }
      const results = await Promise.allSettled([2, 3].map((id) => keep(spool, large(id))))
      expect(results).toMatchObject([rejected, rejected])
      disk.isBroken = false
      expect(spool.size).toBe(before.length)
      const files = async () =>
        Promise.all((await folder.names()).map((name) => readFile(join(folder.path, name), 'utf8')))
      const [kept = '', ...others] = await files()
      expect(Array.from(kept.matchAll(/"n(\d)"/g), ([, id]) => Number(id))).toEqual(before)
      expect(others).toEqual([])
      await keep(spool, large(4))
      expect((await files()).slice(0, before.length)).toEqual(before.map(() => kept))
      await spool.close({ timeoutMs: 0 })
      expect(await folder.drain()).toEqual([...before, 4].map((id) => `n${id}`))
      expect(folder.damages).toEqual([])
    },
  )
})

describe.concurrent('a disk that is slow', () => {
  test('delays no answer, does not block the process, and bounds the waiting deliveries', async (folder) => {
    let isSlow = false
    const files = filesWith({
      before: async (operation) => {
        while (isSlow && operation === 'datasync') await realTime(5)
      },
    })
    const spool = await folder.open({ deliver: never, maxBytes: 2 ** 40 }, files)
    isSlow = true
    expect(await callBack(spool, numbered(1), { ackTimeoutMs: 50 })).toBe(204)
    const large = numbered(2, { text: 'x'.repeat(2 ** 20) })
    const results = Array.from({ length: 70 }, () => keep(spool, large))
    await expect(results.at(-1)).rejects.toMatchObject({
      code: 'SPOOL',
      reason: 'disk',
      message: expect.stringMatching(/^The disk is too slow: \d{8} bytes wait for it/),
    })
    isSlow = false
    const settled = await Promise.allSettled(results)
    const kept = settled.filter(({ status }) => status === 'fulfilled').length
    expect(kept).toBeGreaterThan(60)
    expect(await spool.close({ timeoutMs: 0 })).toBe(1 + kept)
  })
})

test('a read or a write that gives a part is continued', async (folder) => {
  const files = filesWith({
    before: (operation, _file, args) => {
      if (operation === 'read' || operation === 'write') Reflect.set(args, 2, Math.ceil(Number(args[2]) / 2))
    },
  })
  const filling = await folder.open({ deliver: never }, files)
  for (let id = 0; id < 20; id += 1) await keep(filling, numbered(id))
  await filling.close({ timeoutMs: 0 })
  expect(await folder.drain({}, files)).toHaveLength(20)
  expect(folder.damages).toEqual([])
})

test('after a process of version 0.5 was killed, all that it kept is delivered, or still a dead letter', async (folder) => {
  const left = new URL('folder-of-0.5/', import.meta.url)
  await fs.cp(left, folder.path, { recursive: true })
  await writeFile(join(folder.path, '0123456789ab-16.lock'), '')
  const traces: unknown[] = []
  const { deliver, delivered } = recorder()
  await inVirtualTime(async () => {
    await using spool = await folder.open({
      concurrency: 1,
      deliver(delivery, { traceparent }) {
        traces.push(traceparent)
        deliver(delivery)
      },
    })
    expect([spool.size, spool.oldestReceivedAt]).toEqual([3, 1795960220255])
    await until(() => spool.size === 0)
    expect(await lettersOf(spool)).toMatchObject([{ reason: 'invalid', body: 'no delivery' }])
  })
  expect(idsOf(delivered).toSorted()).toEqual(['n2', 'n3', 'n5'])
  expect(traces[idsOf(delivered).indexOf('n2')]).toBe(`00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`)
  expect(folder.damages).toEqual([])
})

describe.concurrent('a disk that fails', () => {
  test('while a delivered entry cannot be removed, the entry still counts, and is not delivered twice', async (folder) => {
    const disk = diskThatFailsTo('write')
    disk.isBroken = false
    const { deliver, delivered } = recorder(() => {
      disk.isBroken = true
    })
    const { logger, logged } = diskLog()
    const spool = await folder.open({ deliver, logger }, disk.files)
    await keep(spool, numbered(1))
    await until(() => logged().length === 1)
    expect(disk.failures).toBe(1)
    await until(() => disk.failures === 2)
    expect(spool.size).toBe(1)
    disk.isBroken = false
    await until(() => spool.size === 0)
    expect(logged()).toEqual([writeFailed])
    await keep(spool, numbered(2))
    await until(() => disk.failures === 3)
    // A close waits for `timeoutMs`, and not for ever.
    expect(await spool.close({ timeoutMs: 20 })).toBe(1)
    expect(idsOf(delivered)).toEqual(['n1', 'n2'])
  })

  test('while the state of a failed delivery is written repeats the delivery all the same', async (folder) => {
    const { deliver, delivered } = recorder(() => {
      if (delivered.length === 1) throw new Error('away')
      disk.isBroken = false
    })
    const { logger, logged } = diskLog()
    const disk = diskThatFailsTo('write')
    disk.isBroken = false
    await using spool = await folder.open({ deliver, logger }, disk.files)
    await keep(spool, numbered(1))
    disk.isBroken = true
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n1', 'n1'])
    // After the first attempt, and before the second one.
    expect(logged()).toEqual([writeFailed])
  })

  test('while a dead letter is put back or discarded makes a SpoolError, and the letter stays', async (folder) => {
    const disk = diskThatFailsTo('unlink')
    const { deliver, delivered } = recorder()
    await using spool = await folder.open({ deliver }, disk.files)
    await keepInvalid(spool, numbered(1))
    const id = await letterIdOf(spool)
    const refused = { code: 'SPOOL', reason: 'disk', cause: { code: 'EIO' } }
    await expect(spool.discard(id)).rejects.toMatchObject(refused)
    await expect(spool.retry(id)).rejects.toMatchObject(refused)
    expect(await lettersOf(spool)).toMatchObject([{ id }])
    // At least once: it was put back before its letter could not be removed.
    await until(() => spool.size === 0)
    disk.isBroken = false
    expect(await spool.retry(id)).toBe(true)
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n1', 'n1'])
    expect(folder.damages).toEqual([])
    await spool.close()
    expect(await readdir(folder.path)).toEqual([])
  })

  test.for([
    ['is not renamed', false],
    ['is renamed, and a failure is reported', true],
  ])('while a segment that is full %s leaves no delivery out', async (folder, [_what, takesPlace]) => {
    const real = filesWith({})
    const rename: SpoolFiles['rename'] = async (...paths) => {
      if (takesPlace) await real.rename(...paths)
      throw Object.assign(new Error('EIO: as the test says'), { code: 'EIO' })
    }
    const files = { ...real, rename }
    const kept = deferred<void>()
    const { deliver, delivered } = recorder(() => kept.promise)
    await using spool = await folder.open({ deliver, concurrency: 1 }, files)
    for (const id of [1, 2, 3]) await keep(spool, numbered(id, { text: 'x'.repeat(2 ** 20) }))
    // Their files are closed, and opened by their names.
    await realTime(50)
    kept.resolve()
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n1', 'n2', 'n3'])
    expect(folder.damages).toEqual([])
  })

  test('to empty a segment makes a new one for what is kept next', async (folder) => {
    const { deliver, delivered } = recorder()
    const disk = diskThatFailsTo('truncate')
    await using spool = await folder.open({ deliver }, disk.files)
    for (const id of [1, 2, 3]) {
      await keep(spool, numbered(id))
      await until(() => spool.size === 0)
    }
    expect(idsOf(delivered)).toEqual(['n1', 'n2', 'n3'])
    expect(disk.failures).toBe(2)
    expect(await folder.names()).toHaveLength(1)
  })

  test('while a segment is read by a start leaves it to the next one, and says so', async (folder) => {
    await folder.leave(numbered(1))
    await folder.leave(numbered(2))
    const [bad = ''] = await folder.names()
    const { logger, logged } = diskLog()
    const { files } = diskThatFailsTo('readFile', new RegExp(bad))
    expect(await folder.drain({ logger }, files)).toEqual(['n2'])
    expect(logged()).toEqual([{ event: 'spool.read-failed', file: join(folder.path, bad), err }])
    expect(await folder.drain()).toEqual(['n1'])
  })

  test('once while a state is written leaves no file open, but that of the open segment', async (folder) => {
    let openFiles = 0
    let writes = 0
    const files = filesWith({
      before: (operation) => {
        if (operation === 'open') openFiles += 1
        if (operation === 'close') openFiles -= 1
        if (operation === 'write' && writes++ === 0) throw new Error('as the test says')
      },
    })
    await folder.leave(numbered(1), numbered(2))
    const deliver = ({ notification }: Delivery) => (notification.id === 'n2' ? never() : undefined)
    const spool = await folder.open({ deliver }, files)
    // What only waits, or is in flight, needs no file.
    await until(() => spool.size === 1 && openFiles === 0)
    for (const id of [3, 4, 5]) {
      await keep(spool, numbered(id, { text: 'x'.repeat(2 ** 20) }))
      await until(() => spool.size === 1)
    }
    await until(() => openFiles === 1)
    await spool.close({ timeoutMs: 0 })
  })
})

describe.concurrent('a disk that has no room', () => {
  test('for the name of a dead letter leaves nothing of the letter', async (folder) => {
    await using spool = await folder.open({}, diskThatFailsTo('sync', /spool$/, 'ENOSPC').files)
    await expect(keepInvalid(spool, 'x')).rejects.toMatchObject({ code: 'SPOOL', reason: 'disk' })
    expect(await folder.names()).toEqual([])
  })

  test.for([
    ['leaves deliveries where they are', true],
    ['and has it again moves them', false],
  ])('%s once half of their segment is done: none is tried more often', async (folder, [_what, isFull]) => {
    await folder.leave(...[1, 2, 3, 4].map((id) => numbered(id)))
    const disk = diskThatFailsTo('open', /\.open$/, 'ENOSPC')
    disk.isBroken = isFull
    const triesOf = (id: string) => idsOf(delivered).filter((each) => each === id).length
    const { deliver, delivered } = recorder(({ notification: { id } }) => {
      if (id > 'n2' && triesOf(id) < 3) throw new Error('away')
    })
    await using spool = await folder.open({ deliver }, disk.files)
    await until(() => spool.size === 0)
    await realTime(20)
    expect(disk.failures > 0).toBe(isFull)
    expect(['n1', 'n2', 'n3', 'n4'].map(triesOf)).toEqual([1, 1, 3, 3])
    expect(folder.damages).toEqual([])
  })

  test('for a dead letter repeats its delivery, and makes the letter later', async (folder) => {
    await folder.leave(numbered(1), numbered(2, { score: 1 }))
    const payloads = { cxScoreUpdated: z.object({ score: z.number() }) }
    const { logger, logged } = eventLog(/unreadable|failed$/)
    const unreadable = expect.objectContaining({ event: 'spool.unreadable' })
    const disk = diskThatFailsTo('writeFile', /./, 'ENOSPC')
    await using spool = await folder.open({ payloads, logger }, disk.files)
    await until(() => disk.failures >= 2 && spool.size === 1)
    expect([logged(), await lettersOf(spool)]).toEqual([[writeFailed], []])
    disk.isBroken = false
    await until(() => logged().length === 2)
    expect(logged()).toEqual([writeFailed, unreadable])
    const issues = [expect.objectContaining({ path: ['notification', 'payload', 'score'] })]
    expect(await lettersOf(spool)).toMatchObject([{ bodyText: JSON.stringify(numbered(1)), issues }])
  })
})

describe.concurrent('after a process was killed', () => {
  const torn = lineOf(1, { id: 3, receivedAt: 5, text: JSON.stringify(numbered(3)) })
  test.for<[string, (text: string) => string, string[], number]>([
    ...[1, 2, 30, 46, 54, 100, 150].map((bytes): [string, (text: string) => string, string[], number] => [
      `while it added a line, ${bytes} bytes of it: that is no damage`,
      (text) => text + torn.slice(0, bytes),
      ['n1', 'n2', 'n3'],
      0,
    ]),
    ['and its segment was damaged: that is reported', (text) => text.replace('n2', 'N2'), ['n1', 'n3'], 1],
  ])('%s, and what is whole is delivered', async (folder, [_when, change, ids, damages]) => {
    const { name, content } = segmentOf(1_000, [numbered(1), numbered(2), numbered(3)], 'open')
    await folder.put({ name, content: change(String(content)) })
    expect(await folder.drain()).toEqual(ids)
    expect(folder.damages).toHaveLength(damages)
  })

  test('whose clock was ahead: new ids are higher than all in its open segment', async (folder) => {
    const id = Date.parse('2100-01-01') * 1_000
    await folder.put(segmentOf(id, [numbered(1)], 'open'))
    await using spool = await folder.open()
    await keepInvalid(spool, 'x')
    expect(await letterIdOf(spool)).toBeGreaterThan(id + 1)
  })

  test('after it wrote a letter: the letter is kept, and the delivery not repeated', async (folder) => {
    const state = { attempts: 10, dueAt: 10, reportedAt: 0, crashes: 0 }
    await folder.put(segmentOf(4, [{ ...numbered(1), state }, numbered(2)]))
    const fields = { id: 5, receivedAt: 5, text: JSON.stringify(numbered(1)) }
    const content = lineOf(5, fields) + lineOf(5, { ...fields, id: 6, text: '{}' })
    await folder.put({ name: fileName({ id: 5, size: content.length }), content })
    expect(await folder.drain()).toEqual(['n2'])
    expect(await folder.names(/\.closed$/)).toEqual([])
    const { deliver, delivered } = recorder()
    await using spool = await folder.open({ deliver })
    expect(await lettersOf(spool)).toMatchObject([{ id: 5, body: fields.text }])
    expect(await spool.retry(5)).toBe(true)
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n1'])
  })
})

describe.concurrent('damage', () => {
  test.for<[string, (text: string) => string]>([
    ['a byte', (text) => text.replace('n2', 'N2')],
    ['the line of another', (text) => text.replace(/^.*n2.*$/m, /^.*n1.*$/m.exec(text)?.[0] ?? '')],
  ])(
    'of a delivery that waits for its next attempt (%s) is reported once, and the others are repeated',
    async (folder, [_what, damage]) => {
      await folder.leave(numbered(1), numbered(2), numbered(3))
      const [name = ''] = await folder.names()
      const file = join(folder.path, name)
      const { deliver, delivered } = recorder(() => {
        if (delivered.length <= 3) throw new Error('away')
      })
      await using spool = await folder.open({ deliver })
      // Their states are written together, with the bytes between.
      while ((await readFile(file, 'utf8')).split('+00001 ').length <= 3) await realTime(2)
      await writeFile(file, damage(await readFile(file, 'utf8')))
      await until(() => spool.size === 0)
      expect(idsOf(delivered)).toEqual(['n1', 'n2', 'n3', 'n1', 'n3'])
      expect(folder.damages).toEqual([{ file, offset: expect.any(Number) }])
      while ((await folder.names())[0] === name) await realTime(2)
      expect(await folder.names()).toEqual([`${name}.damaged`])
    },
  )

  test('of a dead letter is reported, and the letter kept as `….damaged`; one that is discarded meanwhile is none', async (folder) => {
    let discard: () => unknown = () => {}
    const files = filesWith({
      before: (operation) => (operation === 'readFile' ? discard() : undefined),
    })
    await using spool = await folder.open({}, files)
    await keepInvalid(spool, 'first')
    await keepInvalid(spool, 'second')
    const [name = ''] = await folder.names(/\.invalid$/)
    const file = join(folder.path, name)
    await writeFile(file, (await readFile(file, 'utf8')).replace('first', 'fIrst'))
    const [second, ...others] = await lettersOf(spool)
    expect([second?.body, others]).toEqual(['second', []])
    const damages = [{ file, offset: expect.any(Number) }]
    expect(folder.damages).toEqual(damages)
    expect(await folder.names(/damaged$/)).toEqual([`${name}.damaged`])
    discard = () => spool.discard(second?.id ?? 0)
    expect(await lettersOf(spool)).toEqual([])
    expect(folder.damages).toEqual(damages)
  })

  test('a segment that another program removed is reported once, and waits no longer', async (folder) => {
    await folder.leave(numbered(1), numbered(2))
    const [name = ''] = await folder.names()
    const files = filesWith({
      before: async (operation, file) => {
        if (operation === 'open' && file.endsWith(name)) await unlink(file).catch(() => {})
      },
    })
    await using spool = await folder.open({}, files)
    await until(() => spool.oldestReceivedAt === undefined)
    expect(spool.size).toBe(0)
    expect(folder.damages).toEqual([{ file: join(folder.path, name), offset: 1 }])
  })

  test('files of other programs are reported and left alone, whatever they are called; unfinished ones of a spool go', async (folder) => {
    await (await folder.open()).close()
    for (const name of [`${fileName({ id: 2 })}.new`, '0123456789ab-16.lock.new']) {
      await writeFile(join(folder.path, name), 'half')
    }
    const [aFolder = '', aLink = '', aPipe = ''] = [1, 2, 3].map((id) => fileName({ id, kind: 'closed' }))
    const files = ['half.batch.new', 'my.stuck.new', 'yarn.lock', 'a\nb', 'x'.repeat(255), 'ü.batch']
    for (const name of files) await writeFile(join(folder.path, name), 'theirs')
    await fs.mkdir(join(folder.path, aFolder))
    await fs.mkdir(join(folder.path, 'lost+found'))
    await fs.symlink('nowhere', join(folder.path, aLink))
    execFileSync('mkfifo', [join(folder.path, aPipe)])
    const { deliver, delivered } = recorder()
    await using spool = await folder.open({ deliver })
    expect(spool.size).toBe(0)
    const reported = [...files, aFolder, aLink, aPipe].map((name) => ({ file: join(folder.path, name) }))
    const byFile = (a: { file: string }, b: { file: string }) => (a.file < b.file ? -1 : 1)
    expect(folder.damages.toSorted(byFile)).toStrictEqual(reported.toSorted(byFile))
    await keep(spool, numbered(1))
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n1'])
    const theirs = [...files, aFolder, aLink, aPipe, 'lost+found']
    await spool.close()
    expect((await readdir(folder.path)).toSorted()).toEqual(theirs.toSorted())
  })
})
