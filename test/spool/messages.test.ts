import * as fs from 'node:fs/promises'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { SpoolFiles } from '../../src/spool/folder.js'
import { expectPage } from '../support/message-page.js'
import { eventLog, keep, keepInvalid, lettersOf, never, numbered, openSpool, test, until } from './support.js'

const fail = () => Promise.reject(Object.assign(new Error('EIO: i/o error'), { code: 'EIO' }))

test('messages of a spool that cannot keep or read a delivery, or aborts `deliver`', async (folder) => {
  const messages: Record<string, string> = {}
  const note = async (cause: string, work: Promise<unknown>) => {
    const message = await work.then(String, ({ message }) => String(message))
    messages[cause] = message.replaceAll(folder.path, '<folder>').replace(/\d+ bytes too/, '… bytes too')
  }
  await (await folder.open()).close()
  const openWith = (files: Partial<SpoolFiles>) => folder.open({}, { ...fs, ...files })
  {
    await using spool = await openWith({ open: fail })
    await note('a disk that cannot be written', keep(spool, numbered(1)))
  }
  {
    await using spool = await openWith({ readFile: fail })
    await keepInvalid(spool, 'x')
    await note('a disk that cannot be read', lettersOf(spool))
  }
  await note('a folder that cannot be listed', openWith({ readdir: fail }))
  await note('a long path', openSpool({ path: join(folder.path, 'x'.repeat(90)) }))
  const { logger, logged } = eventLog(/lock-lost|failed/)
  const spool = await folder.open({ maxBytes: 0, logger })
  await note('maxBytes', keep(spool, numbered(1)))
  await note('an invalid body', keepInvalid(spool, 'x'.repeat(2 ** 24)))
  await note('a folder that is open', folder.open())
  await rm(await folder.lock())
  await until(() => logged().length > 0)
  await note('a lock that is gone', keep(spool, numbered(1)))
  await spool.close()
  await note('after `close`', keep(spool, numbered(1)))
  {
    const signals: AbortSignal[] = []
    const deliver = (_delivery: unknown, { signal }: { signal: AbortSignal }) => {
      signals.push(signal)
      return never()
    }
    const slow = await folder.open({ deliver, deliverTimeoutMs: 1_000, logger })
    await keep(slow, numbered(1))
    await until(() => logged().length > 1)
    await note('`deliver` that takes too long', Promise.reject(signals[0]?.reason))
    await until(() => signals.length === 2)
    await slow.close({ timeoutMs: 0 })
    await note('`deliver` during `close`', Promise.reject(signals[1]?.reason))
  }
  await expectPage('spool', messages)
})
