/** The store on a file system that fails, waits, takes notes, or has damaged what it was given. */
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs/promises'
import { readdir, readFile, unlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { Delivery } from 'notification-subscriber'
import { SpoolError } from 'notification-subscriber/spool'
import { describe, expect } from 'vitest'
import * as z from 'zod'
import type { SpoolFiles } from '../../src/spool/folder.js'
import { type FileFields, lineOf, nameOf } from '../../src/spool/format.js'
import { deferred } from '../support/deferred.js'
import { recordingLogger } from '../support/recording-logger.js'
import {
  callBack,
  diskThatFailsTo,
  filesWith,
  idsOf,
  inVirtualTime,
  keep,
  keepInvalid,
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

/** A logger, and the fields of its lines about the disk. */
function diskLog() {
  const { lines, ...logger } = recordingLogger()
  const isAboutDisk = (fields: object) =>
    'event' in fields && /(read|write)-failed$/.test(String(fields.event))
  return { logger, failures: () => lines.map(([fields]) => fields).filter(isAboutDisk) }
}

const err = expect.objectContaining({ code: 'SPOOL' })
const writeFailed = { event: 'spool.write-failed', err }

test('the process does other work while a folder of very many names is opened', async (folder) => {
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
  test('after the line was written and synced, the first time also the name, and not before', async (folder) => {
    const notes: string[] = []
    const files = filesWith({
      before: (operation, file) => {
        const kind = file === folder.path ? 'folder' : file.endsWith('.open') ? 'segment' : 'other'
        if (operation !== 'read') notes.push(`${kind} ${operation}`)
      },
    })
    const spool = await folder.open({ deliver: never }, files)
    const notesOf = async (...ids: number[]) => {
      notes.length = 0
      const kept = Promise.all(ids.map((id) => keep(spool, numbered(id))))
      await kept.then(() => notes.push('resolved'))
      return notes.slice(0, notes.indexOf('resolved') + 1)
    }
    const written = ['segment write', 'segment datasync']
    const named = ['folder open', 'folder sync', 'folder close']
    expect(await notesOf(1, 2, 3)).toEqual(['segment open', ...written, ...named, 'resolved'])
    expect(await notesOf(4, 5)).toEqual([...written, 'resolved'])
    await spool.close({ timeoutMs: 0 })
  })

  test.for([
    ['open', /\.open$/],
    ['write', /\.open$/],
    ['datasync', /\.open$/],
    ['sync', /spool$/],
  ])(
    'not at all if %s of %s fails: all keeps of the write reject, and nothing of it stays',
    async (folder, [operation, file]) => {
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

  test('and a segment whose write failed gets nothing any more, but keeps what was in it before', async (folder) => {
    const disk = diskThatFailsTo('datasync')
    disk.isBroken = false
    const spool = await folder.open({ deliver: never }, disk.files)
    await keep(spool, numbered(1))
    const [open = ''] = await folder.names()
    disk.isBroken = true
    await expect(keep(spool, numbered(2))).rejects.toBeInstanceOf(SpoolError)
    disk.isBroken = false
    const [closed = ''] = await folder.names()
    expect([open, closed]).toEqual([expect.stringMatching(/\.open$/), expect.stringMatching(/\.closed$/)])
    const before = await readFile(join(folder.path, closed))
    expect(before.includes('n2')).toBe(false)
    await keep(spool, numbered(3))
    expect(await folder.names()).toHaveLength(2)
    expect(await readFile(join(folder.path, closed))).toEqual(before)
    await spool.close({ timeoutMs: 0 })
    expect(await folder.drain()).toEqual(['n1', 'n3'])
    expect(folder.damages).toEqual([])
  })
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

describe.concurrent('a read that is slow', () => {
  test('is waited for by `close`, and what was read is left to the next process', async (folder) => {
    await folder.leave(numbered(1))
    const hang = deferred<void>()
    let isReading = false
    const files = filesWith({
      before: (operation) => {
        if (operation !== 'read') return
        isReading = true
        return hang.promise
      },
    })
    const { deliver, delivered } = recorder()
    const spool = await folder.open({ deliver }, files)
    await until(() => isReading)
    const closed = spool.close()
    hang.resolve()
    expect(await closed).toBe(1)
    expect(delivered).toEqual([])
  })
})

test('a read or a write that gives a part is continued, also of what stands between two states', async (folder) => {
  const files = filesWith({
    before: (operation, _file, args) => {
      if (operation === 'read' || operation === 'write') Reflect.set(args, 2, Math.ceil(Number(args[2]) / 2))
    },
  })
  const filling = await folder.open({ deliver: never }, files)
  for (let id = 0; id < 20; id += 1) await keep(filling, numbered(id))
  await filling.close({ timeoutMs: 0 })
  const failing = recorder(({ notification: { id } }) => {
    if (id.endsWith('1')) throw new Error('away')
  })
  const spool = await folder.open({ deliver: failing.deliver }, files)
  await until(() => spool.size === 2)
  await spool.close({ timeoutMs: 0 })
  expect(idsOf(failing.delivered)).toHaveLength(20)
  const { deliver, delivered } = recorder()
  await inVirtualTime(async () => {
    await using next = await folder.open({ deliver }, files)
    await until(() => next.size === 0)
  })
  expect(idsOf(delivered)).toEqual(['n1', 'n11'])
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

test('a file stays open until each state is written, also after one failed', async (folder) => {
  const { name, content } = segmentOf(1, [numbered(1), numbered(2)])
  await fs.mkdir(folder.path, { mode: 0o700 })
  await writeFile(join(folder.path, name), content)
  const operations: string[] = []
  let writes = 0
  const files = filesWith({
    async before(operation) {
      if (operation === 'write') writes += 1
      if (operation === 'write' && writes === 1) throw new Error('as the test says')
      if (operation === 'write' && writes === 2) await realTime(50)
      operations.push(operation)
    },
  })
  await using spool = await folder.open({ deliver: () => {}, logger: false }, files)
  await until(() => spool.size === 0)
  expect(operations.indexOf('close')).toBeGreaterThan(operations.indexOf('write'))
})

test('a segment that is full gets its name while states are written to it, and its name has its highest id', async (folder) => {
  const { logger, failures } = diskLog()
  const writing = deferred<void>()
  const isState = (operation: string, bytes: unknown) => operation === 'write' && Number(bytes) < 100
  const files = filesWith({
    before: (operation, _file, args) => (isHeld && isState(operation, args[2]) ? writing.promise : undefined),
  })
  let isHeld = false
  const ends: (() => void)[] = []
  const spool = await folder.open(
    { deliver: () => new Promise<void>((end) => ends.push(end)), logger },
    files,
  )
  for (const id of [1, 2, 3]) await keep(spool, numbered(id, { text: 'x'.repeat(id === 3 ? 2 ** 20 : 1) }))
  await until(() => ends.length === 3)
  isHeld = true
  for (const end of ends.splice(0, 2)) end()
  await keep(spool, numbered(4))
  const [name = ''] = await folder.names(/\.closed$/)
  const ids = [...(await readFile(join(folder.path, name), 'latin1')).matchAll(/ (\d{16}) 1\d{12} - /g)]
  expect(name.split('-')[1]).toBe(ids.at(-1)?.[1])
  isHeld = false
  writing.resolve()
  await until(() => spool.size === 2)
  await spool.close({ timeoutMs: 0 })
  expect(failures()).toEqual([])
})

describe.concurrent('a removal that is slow', () => {
  test('is waited for by `close`, so that the next process delivers nothing twice', async (folder) => {
    const hang = deferred<void>()
    const { deliver, delivered } = recorder()
    const files = filesWith({
      before: (operation) => (operation === 'write' && delivered.length === 1 ? hang.promise : undefined),
    })
    const spool = await folder.open({ deliver }, files)
    await keep(spool, numbered(1))
    await until(() => delivered.length === 1)
    const closed = spool.close()
    await realTime(20)
    hang.resolve()
    expect(await closed).toBe(0)
  })
})

describe.concurrent('a disk that fails', () => {
  test('while a delivered entry cannot be removed, the entry still counts, and is not delivered twice', async (folder) => {
    const disk = diskThatFailsTo('write')
    disk.isBroken = false
    const { deliver, delivered } = recorder(() => {
      disk.isBroken = true
    })
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

  test('while a delivered entry cannot be removed delays a close by `timeoutMs`, not for ever', async (folder) => {
    const disk = diskThatFailsTo('write')
    disk.isBroken = false
    const deliver = () => {
      disk.isBroken = true
    }
    const spool = await folder.open({ deliver }, disk.files)
    await keep(spool, numbered(1))
    await until(() => disk.failures === 1)
    expect(await spool.close({ timeoutMs: 20 })).toBe(1)
  })

  test('while it is read delays no readable delivery', async (folder) => {
    await folder.leave(numbered(1))
    await folder.leave(numbered(2))
    const [bad = ''] = await folder.names()
    const { deliver, delivered } = recorder()
    const { logger, failures } = diskLog()
    const { files } = diskThatFailsTo('read', new RegExp(bad))
    const spool = await folder.open({ deliver, logger }, files)
    await until(() => delivered.length === 1)
    expect(idsOf(delivered)).toEqual(['n2'])
    expect(await spool.close()).toBe(1)
    expect(failures()).toEqual([{ event: 'spool.read-failed', file: join(folder.path, bad), err }])
  })

  test('while the state of a failed delivery is written repeats the delivery all the same', async (folder) => {
    const { deliver, delivered } = recorder(() => {
      if (delivered.length === 1) throw new Error('away')
      disk.isBroken = false
    })
    const { logger, failures } = diskLog()
    const disk = diskThatFailsTo('write')
    disk.isBroken = false
    await using spool = await folder.open({ deliver, logger }, disk.files)
    await keep(spool, numbered(1))
    disk.isBroken = true
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n1', 'n1'])
    // After the first attempt, and before the second one.
    expect(failures()).toEqual([writeFailed])
  })

  test('while a spool is opened is a ConfigurationError, and leaves no lock', async (folder) => {
    const opened = folder.open({}, diskThatFailsTo('readdir').files)
    await expect(opened).rejects.toMatchObject({ code: 'CONFIGURATION', cause: { code: 'EIO' } })
    await using _spool = await folder.open()
  })

  test('makes dead letters that cannot be read a SpoolError', async (folder) => {
    await using spool = await folder.open({}, diskThatFailsTo('readFile').files)
    await keepInvalid(spool, 'x')
    await expect(lettersOf(spool)).rejects.toBeInstanceOf(SpoolError)
  })

  test('while an old body makes room for a new one makes a SpoolError, and the new one is kept', async (folder) => {
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

  test('and lists names in any order still drops the oldest body first', async (folder) => {
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

  test('while a dead letter is put back or discarded makes a SpoolError, and the letter stays', async (folder) => {
    const disk = diskThatFailsTo('unlink')
    const { deliver, delivered } = recorder()
    await using spool = await folder.open({ deliver }, disk.files)
    await keepInvalid(spool, numbered(1))
    const [{ id } = { id: 0 }] = await lettersOf(spool)
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

  test('while a segment gets its last name leaves its deliveries to the next process', async (folder) => {
    const first = await folder.open({ deliver: never }, diskThatFailsTo('rename', /\.open$/).files)
    await keep(first, numbered(1))
    expect(await first.close({ timeoutMs: 0 })).toBe(1)
    expect(await folder.names(/\.open$/)).toHaveLength(1)
    expect(await folder.drain()).toEqual(['n1'])
    expect(folder.damages).toEqual([])
  })

  test('by reporting a rename that took place leaves no delivery out', async (folder) => {
    const real = filesWith({})
    const rename: SpoolFiles['rename'] = async (...paths) => {
      await real.rename(...paths)
      throw Object.assign(new Error('EIO: as the test says'), { code: 'EIO' })
    }
    const ends: (() => void)[] = []
    const { deliver, delivered } = recorder(() => new Promise<void>((end) => ends.push(end)))
    await using spool = await folder.open({ deliver, concurrency: 1 }, { ...real, rename })
    const text = 'x'.repeat(2 ** 20)
    await Promise.all([keep(spool, numbered(1, { text })), keep(spool, numbered(2, { text }))])
    await keep(spool, numbered(3))
    while (delivered.length < 3) {
      await until(() => ends.length > 0)
      ends.pop()?.()
      await realTime(2)
    }
    ends.pop()?.()
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
    const { deliver, delivered } = recorder()
    const { logger, failures } = diskLog()
    {
      await using spool = await folder.open(
        { deliver, logger },
        diskThatFailsTo('readFile', new RegExp(bad)).files,
      )
      await until(() => spool.size === 0)
    }
    expect(idsOf(delivered)).toEqual(['n2'])
    expect(failures()).toEqual([{ event: 'spool.read-failed', file: join(folder.path, bad), err }])
    expect(await folder.drain()).toEqual(['n1'])
  })

  test('while full segments get their last names keeps no delivery from its end, and no file', async (folder) => {
    await using spool = await folder.open({}, diskThatFailsTo('rename', /\.open$/).files)
    for (const id of [1, 2, 3]) await keep(spool, numbered(id, { text: 'x'.repeat(2 ** 20) }))
    await until(() => spool.size === 0)
    expect(await folder.names()).toHaveLength(1)
  })

  test('or not: deliveries that end together, in any order, are marked, and segments that are full are closed', async (folder) => {
    let openFiles = 0
    const files = filesWith({
      before: (operation, file) => {
        if (file === folder.path) return
        if (operation === 'open') openFiles += 1
        if (operation === 'close') openFiles -= 1
      },
    })
    const ends: (() => void)[] = []
    const deliver = () => new Promise<void>((resolve) => ends.push(resolve))
    const spool = await folder.open({ deliver }, files)
    await Promise.all([1, 2, 3].map((id) => keep(spool, numbered(id))))
    await until(() => ends.length === 3)
    for (const end of ends.splice(0).toReversed()) end()
    await until(() => spool.size === 0)
    for (const id of [4, 5, 6]) await keep(spool, numbered(id, { text: 'x'.repeat(2 ** 20) }))
    await until(() => ends.length === 3 && openFiles === 1)
    await spool.close({ timeoutMs: 0 })
    const { deliver: again, delivered } = recorder()
    await using next = await folder.open({ deliver: again })
    await until(() => next.size === 0)
    expect(idsOf(delivered)).toEqual(['n4', 'n5', 'n6'])
  })

  test('and a write of states that failed leave no file open', async (folder) => {
    let openFiles = 0
    let failures = 0
    const files = filesWith({
      before: (operation, file) => {
        if (operation === 'open') openFiles += 1
        if (operation === 'close') openFiles -= 1
        if (operation === 'write' && file.endsWith('.closed') && failures++ < 1)
          throw new Error('as the test says')
      },
    })
    await folder.leave(numbered(1), numbered(2), numbered(3))
    const { deliver, delivered } = recorder(({ notification }) => {
      if (notification.id === 'n1') return
      throw new Error('away')
    })
    const spool = await folder.open({ deliver }, files)
    await until(() => delivered.length >= 3 && spool.size === 2)
    // What only waits needs no file.
    await until(() => openFiles === 0)
    await keep(spool, numbered(1))
    await until(() => spool.size === 2)
    await spool.close({ timeoutMs: 0 })
    expect(openFiles).toBe(0)
  })
})

describe.concurrent('a disk that has no room', () => {
  test('repeats each delivery for itself, keeps nothing new, and keeps again when there is room', async (folder) => {
    const appends = filesWith({})
    let isFull = false
    const files: SpoolFiles = {
      ...appends,
      open: async (path, ...rest) => {
        const handle = await appends.open(path, ...rest)
        const { write } = handle
        // A write over what is there needs no room.
        const writeIfRoom = async (...args: [Buffer, number, number, number]) => {
          const [, , length, position] = args
          if (isFull && position + length > (await handle.stat()).size) {
            throw Object.assign(new Error('ENOSPC: as the test says'), { code: 'ENOSPC' })
          }
          return Reflect.apply(write, handle, args)
        }
        return new Proxy(handle, {
          get: (target, property) => {
            if (property === 'write') return writeIfRoom
            const value = Reflect.get(target, property, target)
            return typeof value === 'function' ? value.bind(target) : value
          },
        })
      },
    }
    let isWorking = false
    const { deliver, delivered } = recorder(({ notification }) => {
      if (!isWorking && notification.id !== 'n1') throw new Error('away')
    })
    const { logger, failures } = diskLog()
    const spool = await folder.open({ deliver, logger }, files)
    await Promise.all([1, 2, 3].map((id) => keep(spool, numbered(id))))
    isFull = true
    await until(() => delivered.length >= 3)
    await expect(keep(spool, numbered(4))).rejects.toMatchObject({
      reason: 'disk',
      cause: { code: 'ENOSPC' },
    })
    // Their second attempts come after a second.
    await until(() => delivered.length >= 5)
    expect(failures()).toEqual([])
    isFull = false
    isWorking = true
    await until(() => spool.size === 0)
    expect(idsOf(delivered).filter((id) => id === 'n1')).toHaveLength(1)
    await keep(spool, numbered(5))
    await until(() => spool.size === 0)
    await spool.close()
    expect(await readdir(folder.path)).toEqual([])
  })

  test('leaves a delivery where it is that would move once half of its segment is done', async (folder) => {
    await folder.leave(...[1, 2, 3, 4].map((id) => numbered(id)))
    const disk = diskThatFailsTo('open', /\.open$/, 'ENOSPC')
    const { deliver, delivered } = recorder(({ notification: { id } }) => {
      if (disk.failures === 0 && id > 'n2') throw new Error('away')
    })
    await using spool = await folder.open({ deliver }, disk.files)
    await until(() => spool.size === 0)
    expect(disk.failures).toBeGreaterThan(0)
    expect(idsOf(delivered).filter((id) => id === 'n3')).toHaveLength(3)
  })

  test('for a dead letter repeats its delivery, and makes the letter later', async (folder) => {
    await folder.leave(numbered(1), numbered(2, { score: 1 }))
    const payloads = { cxScoreUpdated: z.object({ score: z.number() }) }
    const { lines, ...logger } = recordingLogger()
    const reported = () => lines.filter(([fields]) => Object(fields).event === 'spool.unreadable').length
    const disk = diskThatFailsTo('writeFile', /./, 'ENOSPC')
    await using spool = await folder.open({ payloads, logger }, disk.files)
    await until(() => disk.failures >= 2 && spool.size === 1)
    expect([reported(), await lettersOf(spool)]).toEqual([0, []])
    disk.isBroken = false
    await until(() => spool.size === 0)
    expect(reported()).toBe(1)
    expect(lines.map(([fields]) => fields)).toContainEqual(writeFailed)
    const issues = [expect.objectContaining({ path: ['notification', 'payload', 'score'] })]
    expect(await lettersOf(spool)).toMatchObject([{ bodyText: JSON.stringify(numbered(1)), issues }])
  })
})

describe.concurrent('after a process was killed', () => {
  /** What a kill leaves: the files, and a lock that no process listens on. */
  async function copyOf(
    folder: { readonly path: string },
    damage: (bytes: Buffer) => Buffer = (bytes) => bytes,
  ) {
    const copy = `${folder.path}-copy`
    await fs.mkdir(copy, { mode: 0o700 })
    for (const name of await readdir(folder.path)) {
      if (!name.endsWith('.lock'))
        await writeFile(join(copy, name), damage(await readFile(join(folder.path, name))))
    }
    return copy
  }

  test('and the clock was set back: a new body is after the dead letters that were there', async (folder) => {
    await (await folder.open()).close()
    const id = 2 ** 52
    const lines = ['{"body":"old"}', '{}'].map((text, index) =>
      lineOf(id, { id: id + index, receivedAt: 5, traceparent: undefined, text }),
    )
    const content = lines.join('')
    await writeFile(join(folder.path, fileName({ id, kind: 'invalid', size: content.length })), content)
    await using spool = await folder.open()
    await keepInvalid(spool, 'new')
    const letters = await lettersOf(spool)
    expect(letters.map(({ body }) => body)).toEqual(['old', 'new'])
    // The id only orders: the time is what the clock says.
    expect(letters[1]?.receivedAt).toBeLessThanOrEqual(Date.now())
  })

  test('while it wrote a letter: what has no name yet was not acknowledged, and is removed', async (folder) => {
    await (await folder.open()).close()
    await writeFile(join(folder.path, `${fileName({ id: 2 })}.new`), 'half')
    await writeFile(join(folder.path, '0123456789ab-16.lock.new'), '')
    await using spool = await folder.open()
    expect(spool.size).toBe(0)
    expect(await folder.names()).toEqual([])
    expect(folder.damages).toEqual([])
  })

  test.for([1, 2, 30, 46, 54, 100, 150])(
    'while it added a line, %i bytes of it: what is before is delivered, and that is no damage',
    async (folder, bytes) => {
      const first = await folder.open({ deliver: never })
      await Promise.all([1, 2].map((id) => keep(first, numbered(id))))
      const torn = lineOf(1, {
        id: 3,
        receivedAt: 5,
        traceparent: undefined,
        text: JSON.stringify(numbered(3)),
      })
      const path = await copyOf(folder, (whole) => Buffer.concat([whole, Buffer.from(torn.slice(0, bytes))]))
      await first.close({ timeoutMs: 0 })
      const { deliver, delivered } = recorder()
      await using spool = await folder.open({ path, deliver })
      expect(spool.size).toBe(2)
      await until(() => spool.size === 0)
      expect(idsOf(delivered)).toEqual(['n1', 'n2'])
      expect(folder.damages).toEqual([])
    },
  )

  test('and its open segment was damaged, too: that is reported, and its other deliveries are delivered', async (folder) => {
    const first = await folder.open({ deliver: never })
    for (const id of [1, 2, 3]) await keep(first, numbered(id))
    const path = await copyOf(folder, (bytes) => Buffer.from(bytes.toString().replace('n2', 'N2')))
    await first.close({ timeoutMs: 0 })
    const { deliver, delivered } = recorder()
    await using spool = await folder.open({ path, deliver })
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n1', 'n3'])
    expect(folder.damages).toHaveLength(1)
    expect(await lettersOf(spool)).toEqual([])
  })

  test('before it added anything: nothing is left of the open segment', async (folder) => {
    const first = await folder.open()
    await keep(first, numbered(1))
    await until(() => first.size === 0)
    const path = await copyOf(folder)
    await first.close()
    expect(await readdir(path)).toHaveLength(1)
    await (await openSpool({ path })).close()
    expect(await readdir(path)).toEqual([])
  })

  test('after it wrote a letter: the letter is kept, and the delivery not repeated', async (folder) => {
    const state = { attempts: 10, dueAt: 10, reportedAt: 0, crashes: 0 }
    await (await folder.open()).close()
    const content = { id: 5, receivedAt: 5, traceparent: undefined, text: JSON.stringify(numbered(1)) }
    const segment =
      lineOf(4, content, state) + lineOf(4, { ...content, id: 6, text: JSON.stringify(numbered(2)) })
    const letter = lineOf(5, content) + lineOf(5, { ...content, id: 6, text: '{}' })
    const name = fileName({ kind: 'closed', id: 4, lastId: 6, count: 2, size: segment.length })
    await writeFile(join(folder.path, name), segment)
    await writeFile(join(folder.path, fileName({ id: 5, size: letter.length })), letter)
    expect(await folder.drain()).toEqual(['n2'])
    expect(await folder.names(/\.closed$/)).toEqual([])
    const { deliver, delivered } = recorder()
    await using spool = await folder.open({ deliver })
    expect(await lettersOf(spool)).toMatchObject([{ id: 5, body: content.text }])
    expect(await spool.retry(5)).toBe(true)
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n1'])
  })

  test('with finished entries in a segment: what is left is delivered, and `size` is exact once it is read', async (folder) => {
    const isEven = ({ notification }: Delivery) => Number(notification.id.slice(1)) % 2 === 0
    const first = await folder.open({
      deliver: (delivery) => (isEven(delivery) ? never() : undefined),
      concurrency: 20,
    })
    await Promise.all(Array.from({ length: 20 }, (_, id) => keep(first, numbered(id))))
    await until(() => first.size === 10)
    const path = await copyOf(folder)
    expect(await first.close({ timeoutMs: 0 })).toBe(10)
    const again = recorder()
    await using second = await openSpool({ path, deliver: again.deliver })
    expect(second.size).toBe(10)
    await until(() => second.size === 0)
    expect(again.delivered.every(isEven)).toBe(true)
    expect(again.delivered).toHaveLength(10)
  })
})

describe.concurrent('damage', () => {
  // What the disk may do to the lines of a file: format.test.ts and promises.test.ts, at random.
  test('of both line breaks behind a finished delivery is reported, and so not a silent loss of the next one', async (folder) => {
    await fs.mkdir(folder.path, { mode: 0o700 })
    const { name, content, lines } = segmentOf(1_000, [numbered(1), numbered(2), numbered(3)])
    const doneState = '-'.repeat(content.indexOf(' ', 30))
    content.write(doneState, 1, 'latin1')
    content.fill(0, (lines[0]?.length ?? 0) - 1, (lines[0]?.length ?? 0) + 1)
    await writeFile(join(folder.path, name), content)
    expect(await folder.drain()).toEqual(['n3'])
    expect(folder.damages).toEqual([{ file: join(folder.path, name), offset: 1 }])
  })

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

  test('of the open segment stays for inspection: only a whole one is emptied by the next append', async (folder) => {
    const { deliver, delivered } = recorder(({ notification }) => {
      if (notification.id === 'n2') throw new Error('away')
      return notification.id === 'n3' ? never() : undefined
    })
    const spool = await folder.open({ deliver })
    await keep(spool, numbered(1))
    await until(() => spool.size === 0)
    await keep(spool, numbered(2))
    await until(() => delivered.length === 2)
    const [name = ''] = await folder.names()
    const file = join(folder.path, name)
    const text = await readFile(file, 'utf8')
    expect(text).not.toContain('n1')
    await writeFile(file, text.replace('n2', 'N2'))
    await until(() => spool.size === 0)
    expect(folder.damages).toEqual([{ file, offset: 1 }])
    await keep(spool, numbered(3))
    const after = await readFile(file, 'utf8')
    expect([after.includes('N2'), after.includes('n3')]).toEqual([true, true])
    expect(await spool.close({ timeoutMs: 0 })).toBe(1)
  })

  test('of a dead letter is reported, and the letter kept as `….damaged`', async (folder) => {
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

  test('a dead letter that is discarded while it is read is no damage; one that another program removed is', async (folder) => {
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

  test('a segment that another program removed is reported, and waits no longer', async (folder) => {
    await folder.leave(numbered(1))
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

  test.for(['open', 'closed'])(
    'a segment (%s) that another program removes while its deliveries are delivered delays none of them',
    async (folder, kind) => {
      const three = [1, 2, 3].map((id) => numbered(id))
      if (kind === 'closed') await folder.leave(...three)
      const { deliver, delivered } = recorder(async () => {
        for (const name of await folder.names(/(open|log)$/)) await unlink(join(folder.path, name))
        await realTime(10)
      })
      await using spool = await folder.open({ deliver, concurrency: 1 })
      if (kind === 'open') await Promise.all(three.map((each) => keep(spool, each)))
      await until(() => spool.size === 0)
      expect(idsOf(delivered)).toEqual(['n1', 'n2', 'n3'])
    },
  )

  test('files of other programs are reported and left alone, whatever they are called', async (folder) => {
    await (await folder.open()).close()
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
    expect(await readdir(folder.path)).toEqual(expect.arrayContaining([...files, aFolder, aLink, aPipe]))
  })

  test('is an error line of the log', async (folder) => {
    await (await folder.open()).close()
    await writeFile(join(folder.path, 'notes.txt'), '')
    const { lines, ...logger } = recordingLogger()
    await using _spool = await folder.open({ logger })
    expect(lines.map(([fields]) => fields)).toEqual([
      { event: 'spool.damaged', file: join(folder.path, 'notes.txt') },
      expect.objectContaining({ event: 'spool.opened' }),
    ])
    expect(await readdir(folder.path)).toContain('notes.txt')
  })
})
