/** The store on a file system that fails, waits, takes notes, or has damaged what it was given. */
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs/promises'
import { readdir, readFile, unlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { type SpoolDamage, SpoolError } from 'notification-subscriber/spool'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import { type SpoolFiles, systemFiles } from '../../src/spool/folder.js'
import { type FileFields, fileOf, lineOf, nameOf } from '../../src/spool/format.js'
import { recordingLogger } from '../support/recording-logger.js'
import {
  callBack,
  idsOf,
  keep,
  keepInvalid,
  lettersOf,
  never,
  numbered,
  openSpool,
  realTime,
  recorder,
  spoolFolder,
  until,
} from './support.js'

interface Faults {
  /** Called before each operation, with its name and the file: may throw, or wait. */
  before?(operation: string, file: string): unknown
}

/** The real files, with something before each operation. */
function filesWith(faults: Faults): SpoolFiles {
  const wrap =
    <Args extends readonly unknown[], T>(operation: string, run: (...args: Args) => Promise<T>) =>
    async (...args: Args): Promise<T> => {
      await faults.before?.(operation, String(args[0]))
      return run(...args)
    }
  const open = async (...args: Parameters<typeof fs.open>) => {
    const path = String(args[0])
    const handle = await wrap('open', fs.open)(...args)
    return new Proxy(handle, {
      get(target, property) {
        const value = Reflect.get(target, property, target)
        if (typeof value !== 'function') return value
        return async (...given: unknown[]) => {
          await faults.before?.(String(property), path)
          return value.apply(target, given)
        }
      },
    })
  }
  return {
    open,
    readFile: wrap('readFile', systemFiles.readFile),
    readdir: wrap('readdir', fs.readdir) as typeof fs.readdir,
    rename: wrap('rename', fs.rename),
    unlink: wrap('unlink', fs.unlink),
  }
}

/** The name of a file of deliveries, unless the fields say otherwise. */
function fileName(fields: Partial<FileFields> & { readonly id: number }): string {
  return nameOf({ kind: 'batch', dueAt: 0, attempts: 0, reportedAt: 0, count: 1, bytes: 9, ...fields })
}

/** A disk on which an operation fails while the disk is broken, on files whose paths match. */
function diskThatFailsTo(operation: string, file = /./, code = 'EIO') {
  const disk = { isBroken: true, failures: 0, files: filesWith({ before: failTo }) }
  function failTo(name: string, path: string): void {
    if (!disk.isBroken || name !== operation || !file.test(path)) return
    disk.failures += 1
    throw Object.assign(new Error(`${code}: as the test says`), { code })
  }
  return disk
}

/** A logger, and the fields of its lines about the disk. */
function diskLog() {
  const { lines, ...logger } = recordingLogger()
  const isAboutDisk = (fields: object) =>
    'event' in fields && /(read|write)-failed$/.test(String(fields.event))
  return { logger, failures: () => lines.map(([fields]) => fields).filter(isAboutDisk) }
}

const err = expect.objectContaining({ reason: 'disk' })
const writeFailed = { event: 'spool.write-failed', err }

test('the process does other work while a folder of very many names is opened', async () => {
  await using folder = await spoolFolder()
  let turns = 0
  let isCounting = false
  const count = () => {
    turns += 1
    if (isCounting) setImmediate(count)
  }
  const real = filesWith({})
  const names = Array.from({ length: 20_000 }, (_, id) => fileName({ id, kind: 'stuck' }))
  const files: SpoolFiles = {
    ...real,
    readdir: (async () => {
      isCounting = true
      count()
      return names.map((name) => ({ name, isFile: () => true }))
    }) as unknown as typeof fs.readdir,
  }
  await using _spool = await folder.open({ deliver: never }, files)
  isCounting = false
  expect(turns).toBeGreaterThan(15)
})

test('many small files are read at a time', async () => {
  await using folder = await spoolFolder()
  const deliveries = Array.from({ length: 20 }, (_, id) => numbered(id))
  await folder.leave(...deliveries)
  let running = 0
  let most = 0
  const files: SpoolFiles = {
    ...systemFiles,
    readFile: async (path) => {
      running += 1
      most = Math.max(most, running)
      return systemFiles.readFile(path).finally(() => (running -= 1))
    },
  }
  const { deliver, delivered } = recorder()
  await using spool = await folder.open({ deliver, concurrency: 1 }, files)
  await until(() => spool.size === 0)
  expect(delivered).toEqual(deliveries)
  expect(most).toBe(20)
})

test('a new folder, and each new folder above it, is synced into the one above', async () => {
  await using folder = await spoolFolder()
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
  test('after the file was written and synced, then its name, and not before', async () => {
    await using folder = await spoolFolder()
    const notes: string[] = []
    const files = filesWith({
      before: (operation, file) => {
        const kind = file === folder.path ? 'folder' : /\.batch(\.new)?$/.test(file) ? 'file' : 'other'
        notes.push(`${kind} ${operation}`)
      },
    })
    const spool = await folder.open({ deliver: never }, files)
    notes.length = 0
    const kept = Promise.all([1, 2, 3].map((id) => keep(spool, numbered(id))))
    await kept.then(() => notes.push('resolved'))
    expect(notes.slice(0, notes.indexOf('resolved') + 1)).toEqual([
      'file open',
      'file writeFile',
      'file sync',
      'file close',
      'file rename',
      'folder open',
      'folder sync',
      'folder close',
      'resolved',
    ])
    await spool.close({ timeoutMs: 0 })
  })

  test.each([
    ['open', /\.batch\.new$/],
    ['writeFile', /\.batch\.new$/],
    ['sync', /\.batch\.new$/],
    ['rename', /\.batch\.new$/],
    ['sync', /spool$/],
  ])(
    'not at all if %s of %s fails: all keeps of the file reject, and nothing of it stays',
    async (operation, file) => {
      await using folder = await spoolFolder()
      const disk = diskThatFailsTo(operation, file)
      const { deliver, delivered } = recorder()
      await using spool = await folder.open({ deliver }, disk.files)
      const results = await Promise.allSettled([1, 2].map((id) => keep(spool, numbered(id))))
      for (const result of results) {
        expect(result).toMatchObject({
          status: 'rejected',
          reason: { code: 'SPOOL', reason: 'disk', cause: { code: 'EIO' } },
        })
      }
      expect(spool.size).toBe(0)
      expect(await folder.names()).toEqual([])
      disk.isBroken = false
      await keep(spool, numbered(3))
      await until(() => spool.size === 0)
      expect(idsOf(delivered)).toEqual(['n3'])
    },
  )
})

describe.concurrent('a disk that is slow', () => {
  test('delays no answer, does not block the process, and bounds the waiting deliveries', async () => {
    await using folder = await spoolFolder()
    let isSlow = false
    const files = filesWith({
      before: async (operation) => {
        while (isSlow && operation === 'sync') await realTime(5)
      },
    })
    const spool = await folder.open({ deliver: never, maxBytes: 2 ** 40 }, files)
    isSlow = true
    expect(await callBack(spool, numbered(1), { ackTimeoutMs: 50 })).toBe(204)
    const large = numbered(2, { text: 'x'.repeat(2 ** 20) })
    const results = Array.from({ length: 70 }, () => keep(spool, large))
    await expect(results.at(-1)).rejects.toMatchObject({ code: 'SPOOL', reason: 'disk' })
    isSlow = false
    const settled = await Promise.allSettled(results)
    const kept = settled.filter(({ status }) => status === 'fulfilled').length
    expect(kept).toBeGreaterThan(60)
    expect(await spool.close({ timeoutMs: 0 })).toBe(1 + kept)
  })
})

describe.concurrent('a read that is slow', () => {
  test('is waited for by `close`, and what was read is left to the next process', async () => {
    await using folder = await spoolFolder()
    await folder.leave(numbered(1))
    let endHang = () => {}
    const hang = new Promise<void>((resolve) => (endHang = resolve))
    let isReading = false
    const files = filesWith({
      before: (operation) => {
        if (operation !== 'readFile') return
        isReading = true
        return hang
      },
    })
    const { deliver, delivered } = recorder()
    const spool = await folder.open({ deliver }, files)
    await until(() => isReading)
    const closed = spool.close()
    endHang()
    expect(await closed).toBe(1)
    expect(delivered).toEqual([])
  })
})

describe.concurrent('a removal that is slow', () => {
  test('is waited for by `close`, so that the next process delivers nothing twice', async () => {
    await using folder = await spoolFolder()
    let endHang = () => {}
    const hang = new Promise<void>((resolve) => (endHang = resolve))
    const files = filesWith({
      before: (operation, file) => (operation === 'unlink' && file.endsWith('.batch') ? hang : undefined),
    })
    const { deliver, delivered } = recorder()
    const spool = await folder.open({ deliver }, files)
    await keep(spool, numbered(1))
    await until(() => delivered.length === 1)
    const closed = spool.close()
    await realTime(20)
    endHang()
    expect(await closed).toBe(0)
  })
})

describe.concurrent('a disk that fails', () => {
  test('while a delivered entry cannot be removed, the entry still counts, and is not delivered twice', async () => {
    await using folder = await spoolFolder()
    const disk = diskThatFailsTo('unlink', /\.batch$/)
    const { deliver, delivered } = recorder()
    const { logger, failures } = diskLog()
    await using spool = await folder.open({ deliver, logger }, disk.files)
    await keep(spool, numbered(1))
    await until(() => failures().length === 1)
    expect(disk.failures).toBe(1)
    await until(() => disk.failures === 2)
    expect(spool.size).toBe(1)
    disk.isBroken = false
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n1'])
    expect(failures()).toEqual([writeFailed])
  })

  test('while a delivered entry cannot be removed delays a close by `timeoutMs`, not for ever', async () => {
    await using folder = await spoolFolder()
    const disk = diskThatFailsTo('unlink', /\.batch$/)
    const spool = await folder.open({}, disk.files)
    await keep(spool, numbered(1))
    await until(() => disk.failures === 1)
    expect(await spool.close({ timeoutMs: 20 })).toBe(1)
  })

  test('while it is read delays no readable delivery', async () => {
    await using folder = await spoolFolder()
    await folder.leave(numbered(1), numbered(2))
    const [bad = ''] = await folder.names()
    const { deliver, delivered } = recorder()
    const { logger, failures } = diskLog()
    const { files } = diskThatFailsTo('readFile', new RegExp(bad))
    const spool = await folder.open({ deliver, logger }, files)
    await until(() => delivered.length === 1)
    expect(idsOf(delivered)).toEqual(['n2'])
    expect(await spool.close()).toBe(1)
    expect(failures()).toEqual([{ event: 'spool.read-failed', file: join(folder.path, bad), err }])
  })

  test('while a file is renamed repeats its delivery all the same', async () => {
    await using folder = await spoolFolder()
    const { deliver, delivered } = recorder(() => {
      if (delivered.length === 1) throw new Error('away')
    })
    const { logger, failures } = diskLog()
    const { files } = diskThatFailsTo('rename', /\.batch$/)
    await using spool = await folder.open({ deliver, logger }, files)
    await keep(spool, numbered(1))
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n1', 'n1'])
    expect(failures()).toEqual([writeFailed])
  })

  test('while a spool is opened is a ConfigurationError, and leaves no lock', async () => {
    await using folder = await spoolFolder()
    const opened = folder.open({}, diskThatFailsTo('readdir').files)
    await expect(opened).rejects.toMatchObject({ code: 'CONFIGURATION', cause: { code: 'EIO' } })
    await using _spool = await folder.open()
  })

  test('makes dead letters that cannot be read a SpoolError', async () => {
    await using folder = await spoolFolder()
    await using spool = await folder.open({}, diskThatFailsTo('readFile').files)
    await keepInvalid(spool, 'x')
    await expect(lettersOf(spool)).rejects.toBeInstanceOf(SpoolError)
  })

  test('while an old body makes room for a new one makes a SpoolError, and the new one is kept', async () => {
    await using folder = await spoolFolder()
    const disk = diskThatFailsTo('unlink')
    await using spool = await folder.open({}, disk.files)
    const keepLarge = (body: string) => keepInvalid(spool, body.repeat(10 * 2 ** 20))
    await keepLarge('a')
    await expect(keepLarge('b')).rejects.toMatchObject({
      code: 'SPOOL',
      reason: 'disk',
      cause: { code: 'EIO' },
    })
    expect((await lettersOf(spool)).map(({ body }) => String(body)[0])).toEqual(['a', 'b'])
    disk.isBroken = false
    await keepLarge('c')
    expect((await lettersOf(spool)).map(({ body }) => String(body)[0])).toEqual(['c'])
  })

  test('and lists names in any order still drops the oldest body first', async () => {
    await using folder = await spoolFolder()
    const keepLarge = (spool: Parameters<typeof keepInvalid>[0], body: string) =>
      keepInvalid(spool, body.repeat(6 * 2 ** 20))
    {
      await using spool = await folder.open()
      for (const body of ['a', 'b']) await keepLarge(spool, body)
    }
    const real = filesWith({})
    const readdir = async (path: string) =>
      (await fs.readdir(path, { withFileTypes: true })).toSorted((a, b) => (a.name > b.name ? -1 : 1))
    await using spool = await folder.open({}, { ...real, readdir: readdir as never })
    await keepLarge(spool, 'c')
    expect((await lettersOf(spool)).map(({ body }) => String(body)[0])).toEqual(['b', 'c'])
  })

  test('after a dead letter that is put back was removed: the next start delivers it', async () => {
    await using folder = await spoolFolder()
    const files: SpoolFiles = {
      ...filesWith({}),
      unlink: async (path) => {
        await fs.unlink(path)
        throw new Error('as the test says')
      },
    }
    const first = await folder.open({}, files)
    await keepInvalid(first, numbered(1))
    const [{ id } = { id: 0 }] = await lettersOf(first)
    await expect(first.retry(id)).rejects.toBeInstanceOf(SpoolError)
    await first.close()
    const { deliver, delivered } = recorder()
    await using _second = await folder.open({ deliver })
    await until(() => delivered.length === 1)
    expect(idsOf(delivered)).toEqual(['n1'])
  })

  test('while a dead letter is put back or discarded makes a SpoolError: the letter stays, and nothing is put back', async () => {
    await using folder = await spoolFolder()
    const disk = diskThatFailsTo('unlink')
    const { deliver, delivered } = recorder()
    await using spool = await folder.open({ deliver }, disk.files)
    await keepInvalid(spool, numbered(1))
    const [{ id } = { id: 0 }] = await lettersOf(spool)
    const refused = { code: 'SPOOL', reason: 'disk', cause: { code: 'EIO' } }
    await expect(spool.discard(id)).rejects.toMatchObject(refused)
    await expect(spool.retry(id)).rejects.toMatchObject(refused)
    await expect(spool.retry(id)).rejects.toMatchObject(refused)
    disk.isBroken = false
    expect(spool.size).toBe(0)
    expect(await lettersOf(spool)).toMatchObject([{ id }])
    expect(await spool.retry(id)).toBe(true)
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n1'])
    expect(folder.damages).toEqual([])
    await spool.close()
    expect(await readdir(folder.path)).toEqual([])
  })

  test('leaves no file open: not while deliveries run, not after a mark that failed', async () => {
    await using folder = await spoolFolder()
    let openFiles = 0
    let failures = 0
    const files = filesWith({
      before: (operation) => {
        if (operation === 'open') openFiles += 1
        if (operation === 'close') openFiles -= 1
        if (operation === 'write' && failures++ < 1) throw new Error('as the test says')
      },
    })
    const { deliver, delivered } = recorder(({ notification }) =>
      notification.id === 'n1' ? undefined : never(),
    )
    const spool = await folder.open({ deliver }, files)
    await Promise.all([1, 2, 3].map((id) => keep(spool, numbered(id))))
    await until(() => delivered.length === 3 && failures === 1)
    await realTime(20)
    expect(openFiles).toBe(0)
    await until(() => spool.size === 2)
    expect(openFiles).toBe(0)
    await spool.close({ timeoutMs: 0 })
    expect(openFiles).toBe(0)
  })
})

describe.concurrent('a disk that has no room', () => {
  test('repeats the entries of a file together, and gives them files of their own later', async () => {
    await using folder = await spoolFolder()
    const disk = diskThatFailsTo('writeFile', /./, 'ENOSPC')
    disk.isBroken = false
    let isWorking = false
    const { deliver, delivered } = recorder(() => {
      if (!isWorking) throw new Error('away')
    })
    const { logger, failures } = diskLog()
    const spool = await folder.open({ deliver, logger }, disk.files)
    await Promise.all([1, 2, 3].map((id) => keep(spool, numbered(id))))
    disk.isBroken = true
    await until(() => delivered.length >= 3)
    await expect(keep(spool, numbered(4))).rejects.toMatchObject({ reason: 'disk' })
    // Their second attempts come after a second.
    await until(() => delivered.length >= 6)
    disk.isBroken = false
    isWorking = true
    await until(() => spool.size === 0)
    expect(new Set(idsOf(delivered))).toEqual(new Set(['n1', 'n2', 'n3']))
    expect(failures()).toContainEqual(writeFailed)
    await spool.close()
    expect(await readdir(folder.path)).toEqual([])
  })
})

describe.concurrent('a dead letter for which there is no room', () => {
  test('is the file of its delivery, without why', async () => {
    await using folder = await spoolFolder()
    await folder.leave(numbered(1))
    const payloads = { cxScoreUpdated: z.object({ score: z.number() }) }
    const { lines, ...logger } = recordingLogger()
    const full = diskThatFailsTo('writeFile', /./, 'ENOSPC')
    const broken = diskThatFailsTo('rename')
    await using spool = await folder.open(
      { payloads, logger },
      { ...full.files, rename: broken.files.rename },
    )
    // While the file cannot be renamed either, the delivery waits.
    await until(() => broken.failures > 1)
    expect([spool.size, await lettersOf(spool)]).toEqual([1, []])
    const unreadable = expect.objectContaining({ event: 'spool.unreadable' })
    expect(lines.map(([fields]) => fields)).not.toContainEqual(unreadable)
    broken.isBroken = false
    await until(() => spool.size === 0)
    expect(lines.map(([fields]) => fields)).toContainEqual(writeFailed)
    expect(lines.map(([fields]) => fields)).toContainEqual(unreadable)
    const [letter, ...others] = await lettersOf(spool)
    expect(letter).toMatchObject({ body: JSON.stringify(numbered(1)), reason: 'invalid' })
    expect([letter?.issues, others]).toEqual([undefined, []])
  })
})

describe.concurrent('a dead letter of several deliveries in a file, without room', () => {
  test('is written when there is room again: until then its delivery waits, and is not reported', async () => {
    await using folder = await spoolFolder()
    const first = await folder.open({ deliver: never })
    await Promise.all([1, 2].map((id) => keep(first, numbered(id))))
    await first.close({ timeoutMs: 0 })
    const payloads = { cxScoreUpdated: z.object({ score: z.number() }) }
    const { lines, ...logger } = recordingLogger()
    const reported = () => lines.filter(([fields]) => Object(fields).event === 'spool.unreadable').length
    const disk = diskThatFailsTo('writeFile', /./, 'ENOSPC')
    await using spool = await folder.open({ payloads, logger }, disk.files)
    await until(() => disk.failures >= 4)
    expect([spool.size, reported(), await lettersOf(spool)]).toEqual([2, 0, []])
    disk.isBroken = false
    await until(() => spool.size === 0)
    expect(reported()).toBe(2)
    expect(await lettersOf(spool)).toHaveLength(2)
  })
})

describe.concurrent('after a process was killed', () => {
  test('between writing a file of its own for an entry and marking the entry: it is delivered once', async () => {
    await using folder = await spoolFolder()
    let endHang = () => {}
    const hang = new Promise<void>((resolve) => (endHang = resolve))
    const files = filesWith({ before: (operation) => (operation === 'write' ? hang : undefined) })
    await using first = await folder.open(
      {
        deliver: ({ notification }) => (notification.id === 'n1' ? Promise.reject(new Error('no')) : never()),
      },
      files,
    )
    await Promise.all([1, 2].map((id) => keep(first, numbered(id))))
    const batches = () => folder.names(/\.batch$/)
    while ((await batches()).length < 2) await realTime(5)
    // What a kill leaves: the files, and a lock that no process listens on.
    const copy = `${folder.path}-copy`
    await fs.mkdir(copy, { mode: 0o700 })
    for (const name of await batches()) await fs.copyFile(join(folder.path, name), join(copy, name))
    const { deliver, delivered } = recorder(({ notification }) =>
      notification.id === 'n1' ? undefined : never(),
    )
    const second = await openSpool({ path: copy, deliver })
    await until(() => second.size === 1 && delivered.length === 2)
    expect(await second.close({ timeoutMs: 0 })).toBe(1)
    expect(idsOf(delivered).toSorted()).toEqual(['n1', 'n2'])
    const last = recorder()
    await using third = await openSpool({ path: copy, deliver: last.deliver })
    await until(() => third.size === 0)
    expect(idsOf(last.delivered)).toEqual(['n2'])
    endHang()
    await first.close({ timeoutMs: 0 })
  })

  test('and the clock was set back: a new body is after the dead letters that were there', async () => {
    await using folder = await spoolFolder()
    await (await folder.open()).close()
    const line = lineOf(2 ** 52, '{"body":"old"}')
    const name = fileName({ id: 2 ** 52, kind: 'invalid', bytes: line.length })
    await writeFile(join(folder.path, name), line)
    await using spool = await folder.open()
    await keepInvalid(spool, 'new')
    expect((await lettersOf(spool)).map(({ body }) => body)).toEqual(['old', 'new'])
  })

  test('while it wrote: what has no name yet was not acknowledged, and is removed', async () => {
    await using folder = await spoolFolder()
    await (await folder.open()).close()
    const names = [fileName({ id: 1 }), fileName({ id: 2, kind: 'stuck' })]
    for (const name of names) await writeFile(join(folder.path, `${name}.new`), 'half')
    await writeFile(join(folder.path, '0123456789abcdef.lock.new'), '')
    await using spool = await folder.open()
    expect(spool.size).toBe(0)
    expect(await folder.names()).toEqual([])
    expect(folder.damages).toEqual([])
  })

  test.each([
    ['a letter was written and its delivery not removed', 10, 'unreadable'],
    ['a letter was put back and not removed', 0, 'stuck'],
  ] as const)('when %s: the letter is kept, and the delivery not repeated', async (_when, attempts, kind) => {
    await using folder = await spoolFolder()
    await (await folder.open()).close()
    const line = lineOf(5, JSON.stringify(numbered(1)))
    const name = fileName({ id: 5, dueAt: attempts, attempts, bytes: line.length })
    await writeFile(join(folder.path, name), line)
    const letter = Buffer.concat([line, lineOf(6, '{}')])
    await writeFile(join(folder.path, fileName({ id: 5, kind, count: 2, bytes: letter.length })), letter)
    const { deliver, delivered } = recorder()
    await using spool = await folder.open({ deliver })
    expect(spool.size).toBe(0)
    expect(await folder.names(/\.batch$/)).toEqual([])
    expect(await lettersOf(spool)).toMatchObject([{ id: 5, body: JSON.stringify(numbered(1)) }])
    expect(await spool.retry(5)).toBe(true)
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n1'])
  })

  test('before the first delivery of a file, now a letter, was marked: only the others are delivered', async () => {
    await using folder = await spoolFolder()
    await (await folder.open()).close()
    const texts = [1, 2].map((id) => JSON.stringify(numbered(id)))
    for (const { name, content } of [
      fileOf('batch', 1_000, texts),
      fileOf('stuck', 1_000, [texts[0] ?? '', '{}']),
    ]) {
      await writeFile(join(folder.path, name), content)
    }
    const { deliver, delivered } = recorder()
    await using spool = await folder.open({ deliver })
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n2'])
    expect(await lettersOf(spool)).toMatchObject([{ id: 1_000, body: texts[0] }])
  })

  test('with marks in a file: what is left is delivered, and `size` is exact once the file is read', async () => {
    await using folder = await spoolFolder()
    const { deliver, delivered } = recorder(({ notification }) =>
      Number(notification.id.slice(1)) % 2 ? undefined : never(),
    )
    const first = await folder.open({ deliver, concurrency: 20 })
    await Promise.all(Array.from({ length: 20 }, (_, id) => keep(first, numbered(id))))
    await until(() => first.size === 10)
    expect(await first.close({ timeoutMs: 0 })).toBe(10)
    delivered.length = 0
    const again = recorder()
    await using second = await folder.open({ deliver: again.deliver })
    expect(second.size).toBe(20)
    await until(() => second.size <= 10)
    await until(() => second.size === 0)
    expect(again.delivered).toHaveLength(10)
    expect(folder.damages).toEqual([])
  })
})

describe.concurrent('damage', () => {
  // What the disk may do to the lines of a file: format.test.ts, at random.
  const zeros = Buffer.alloc(40)
  test.each<[string, (name: string, bytes: Buffer) => [string, Buffer], string[]]>([
    ['a byte', (name, bytes) => [name, Buffer.from(bytes.toString().replace('n4', 'n5'))], ['n3', 'n5']],
    [
      'zeros over two lines',
      (name, bytes) => [name, Buffer.concat([bytes.subarray(0, 100), zeros, bytes.subarray(140)])],
      ['n5'],
    ],
    ['the end cut off', (name, bytes) => [name, bytes.subarray(0, -20)], ['n3', 'n4']],
    ['the name', (name, bytes) => [name.replace('0', '1'), bytes], []],
  ])(
    'of %s: the start succeeds, what is whole is delivered, and the rest reported and kept',
    async (_what, damage, left) => {
      await using folder = await spoolFolder()
      await fs.mkdir(folder.path, { mode: 0o700 })
      for (const [group, ids] of [
        [0, 1, 2],
        [3, 4, 5],
        [6, 7, 8],
      ].entries()) {
        const texts = ids.map((id) => JSON.stringify(numbered(id)))
        const { name, content } = fileOf('batch', (group + 1) * 1_000, texts)
        const [newName, bytes] = group === 1 ? damage(name, content) : [name, content]
        await writeFile(join(folder.path, newName), bytes)
      }
      const { deliver, delivered } = recorder()
      const spool = await folder.open({ deliver })
      await until(() => spool.size === 0)
      await spool.close()
      expect(idsOf(delivered).toSorted()).toEqual(['n0', 'n1', 'n2', ...left, 'n6', 'n7', 'n8'])
      expect(folder.damages.length).toBeGreaterThan(0)
      expect(await readdir(folder.path)).toHaveLength(1)
    },
  )

  test('is reported once, also if the file is read again', async () => {
    await using folder = await spoolFolder()
    await fs.mkdir(folder.path, { mode: 0o700 })
    const { name, content } = fileOf(
      'batch',
      1_000,
      [1, 2, 3].map((id) => JSON.stringify(numbered(id))),
    )
    await writeFile(join(folder.path, name), content.toString().replace('n2', 'N2'))
    // On a full disk the whole file is repeated.
    const { files } = diskThatFailsTo('writeFile', /./, 'ENOSPC')
    const { deliver, delivered } = recorder(() => {
      if (delivered.length <= 2) throw new Error('away')
    })
    await using spool = await folder.open({ deliver }, files)
    await until(() => spool.size === 0)
    expect(idsOf(delivered).toSorted()).toEqual(['n1', 'n1', 'n3', 'n3'])
    expect(folder.damages).toHaveLength(1)
  })

  test('of a dead letter is reported, and the letter kept as `….damaged`', async () => {
    await using folder = await spoolFolder()
    await using spool = await folder.open()
    await keepInvalid(spool, 'first')
    await keepInvalid(spool, 'second')
    const [name = ''] = await folder.names(/\.invalid$/)
    const file = join(folder.path, name)
    await writeFile(file, (await readFile(file, 'utf8')).replace('first', 'fIrst'))
    expect((await lettersOf(spool)).map(({ body }) => body)).toEqual(['second'])
    expect(folder.damages).toEqual([{ file, offset: expect.any(Number) }])
    expect(await readdir(folder.path)).toContain(`${name}.damaged`)
  })

  test('a dead letter that is discarded while it is read is no damage; one that another program removed is', async () => {
    await using folder = await spoolFolder()
    let whenRead: (file: string) => unknown = () => {}
    const files = filesWith({
      before: (operation, file) => (operation === 'readFile' ? whenRead(file) : undefined),
    })
    await using spool = await folder.open({}, files)
    await keepInvalid(spool, 'x')
    const [{ id } = { id: 0 }] = await lettersOf(spool)
    whenRead = () => spool.discard(id)
    expect(await lettersOf(spool)).toEqual([])
    expect(folder.damages).toEqual([])
    whenRead = () => {}
    await keepInvalid(spool, 'x')
    const [name = ''] = await folder.names(/\.invalid$/)
    const file = join(folder.path, name)
    await unlink(file)
    expect(await lettersOf(spool)).toEqual([])
    expect(folder.damages).toEqual([{ file, offset: 0 }])
  })

  test('a file that another program removed is reported, and waits no longer', async () => {
    await using folder = await spoolFolder()
    await folder.leave(numbered(1))
    const [name = ''] = await folder.names()
    const files = filesWith({
      before: async (operation, file) => {
        if (operation === 'readFile') await unlink(file).catch(() => {})
      },
    })
    await using spool = await folder.open({}, files)
    await until(() => spool.oldestReceivedAt === undefined)
    expect(spool.size).toBe(0)
    expect(folder.damages).toEqual([{ file: join(folder.path, name), offset: 0 }])
  })

  test('a file that another program removes while its deliveries are delivered delays none of them', async () => {
    await using folder = await spoolFolder()
    const { deliver, delivered } = recorder(async () => {
      for (const name of await folder.names(/\.batch$/)) await unlink(join(folder.path, name))
    })
    await using spool = await folder.open({ deliver, concurrency: 1 })
    await Promise.all([1, 2, 3].map((id) => keep(spool, numbered(id))))
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n1', 'n2', 'n3'])
  })

  test('files of other programs are reported and left alone, whatever they are called', async () => {
    await using folder = await spoolFolder()
    await (await folder.open()).close()
    const [aFolder = '', aLink = '', aPipe = ''] = [1, 2, 3].map((id) => fileName({ id, bytes: 9 }))
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
    const byFile = (a: SpoolDamage, b: SpoolDamage) => (a.file < b.file ? -1 : 1)
    expect(folder.damages.toSorted(byFile)).toStrictEqual(reported.toSorted(byFile))
    await keep(spool, numbered(1))
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n1'])
    expect(await readdir(folder.path)).toEqual(expect.arrayContaining([...files, aFolder, aLink, aPipe]))
  })

  test.each([false, true])('is an error line of the log, also if `onDamaged` throws: %s', async (throws) => {
    await using folder = await spoolFolder()
    await (await folder.open()).close()
    await writeFile(join(folder.path, 'notes.txt'), '')
    const { lines, ...logger } = recordingLogger()
    const err = new Error('broken')
    const onDamaged = () => {
      throw err
    }
    await using _spool = await folder.open({ logger, onDamaged: throws ? onDamaged : undefined })
    await nextTurn()
    expect(lines.map(([fields]) => fields)).toEqual([
      { event: 'spool.damaged', file: join(folder.path, 'notes.txt') },
      ...(throws ? [{ event: 'spool.callback-failed', callback: 'onDamaged', err }] : []),
      expect.objectContaining({ event: 'spool.opened' }),
    ])
    expect(await readdir(folder.path)).toContain('notes.txt')
  })
})
