/** What begins carefully after a process ended; `killed.test.ts` kills processes. */
import { readFileSync } from 'node:fs'
import { readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Delivery } from 'notification-subscriber/spool'
import { expect, vi } from 'vitest'
import * as z from 'zod'
import { deferred } from '../support/deferred.js'
import {
  eventLog,
  idsOf,
  inVirtualTime,
  keep,
  lettersOf,
  never,
  numbered,
  realTime,
  recorder,
  segmentOf,
  test,
  until,
} from './support.js'

const fatal = new Error('The process ended 3 times during this delivery.')

/** Leaves the lock of a process that was killed with this `concurrency`. */
async function leaveLock(path: string, concurrency: number): Promise<void> {
  await writeFile(join(path, `0123456789ab-${concurrency}.lock`), '')
}

test('after a process was killed, as many as it may have had in flight are delivered one at a time, then `concurrency` together', async (folder) => {
  await folder.leave(...Array.from({ length: 16 }, (_, id) => numbered(id)))
  await leaveLock(folder.path, 4)
  let running = 0
  const counts: number[] = []
  const allStarted = deferred<void>()
  const careful = await folder.open({
    concurrency: 8,
    deliver: async () => {
      running += 1
      counts.push(running)
      if (running === 8) allStarted.resolve()
      if (counts.length > 4) await allStarted.promise
      await realTime(20)
      running -= 1
    },
  })
  await until(() => careful.size === 0)
  await careful.close()
  expect(counts.slice(0, 12)).toEqual([1, 1, 1, 1, 1, 2, 3, 4, 5, 6, 7, 8])
  expect(Math.max(...counts)).toBe(8)
  // A process that ended in order leaves no suspects.
  await folder.leave(numbered(1), numbered(2))
  const { deliver, delivered } = recorder(never)
  const next = await folder.open({ deliver })
  await until(() => delivered.length === 2)
  await next.close({ timeoutMs: 0 })
  // Nor is one what comes later, where fewer waited than may have been in flight.
  await leaveLock(folder.path, 4)
  const isNew = ({ notification: { id } }: Delivery) => id > 'n2'
  const last = await folder.open({ deliver: (delivery) => (isNew(delivery) ? deliver(delivery) : undefined) })
  await until(() => last.size === 0)
  await realTime(20)
  await Promise.all([3, 4].map((id) => keep(last, numbered(id))))
  await until(() => delivered.length === 4)
  await last.close({ timeoutMs: 0 })
})

test('each suspect and each repetition is counted on the disk before its schema and its call, and nothing else', async (folder) => {
  await folder.leave(...['n1', 'n2'].map((id) => numbered(id.slice(1), { id })))
  await leaveLock(folder.path, 1)
  const [name = ''] = await folder.names(/closed$/)
  const counted: string[][] = []
  const payload = z.object({ id: z.string() }).transform(({ id }) => {
    const states = readFileSync(join(folder.path, name), 'latin1').matchAll(/^\+0*(\d+) \d+ \d+ (\d) /gm)
    counted.push([id, ...Array.from(states, ([, attempts, crashes]) => `${attempts} and ${crashes}`)])
  })
  await inVirtualTime(async () => {
    await using spool = await folder.open({
      payloads: { cxScoreUpdated: payload },
      deliver: () => {
        if (counted.length === 1) throw new Error('away')
      },
    })
    await until(() => spool.size === 0)
  })
  expect(counted).toEqual([
    ['n1', '1 and 2', '0 and 0'],
    ['n2', '1 and 0', '0 and 0'],
    ['n1', '2 and 1'],
  ])
})

test('what a killed process was repeating stands alone among the repetitions, wherever it stands', async (folder) => {
  const state = { attempts: 3, dueAt: 7, reportedAt: 0, crashes: 1 }
  await folder.put(segmentOf(1_000, [numbered(1)]))
  await folder.put(segmentOf(2_000, [{ ...numbered(4), state }, { ...numbered(5), state }, numbered(6)]))
  await leaveLock(folder.path, 1)
  const finish: (() => void)[] = []
  const { deliver, delivered } = recorder(({ notification: { id } }) =>
    id === 'n4' || id === 'n5' ? new Promise<void>((resolve) => finish.push(resolve)) : undefined,
  )
  await using spool = await folder.open({ deliver, concurrency: 4 })
  await until(() => spool.size === 2 && delivered.length === 3)
  await new Promise((resolve) => setTimeout(resolve, 50))
  expect(idsOf(delivered).toSorted()).toEqual(['n1', 'n4', 'n6'])
  finish[0]?.()
  await until(() => delivered.length === 4)
  finish[1]?.()
  await until(() => spool.size === 0)
  expect(folder.damages).toEqual([])
})

test('a suspect that fails, or that `close` interrupts, has ended no process', async (folder) => {
  await folder.leave(numbered(1))
  await inVirtualTime(async () => {
    for (const deliver of [never, () => Promise.reject(new Error('away'))]) {
      for (let round = 0; round < 4; round += 1) {
        await leaveLock(folder.path, 16)
        const { delivered, ...options } = recorder(deliver)
        const spool = await folder.open(options)
        await until(() => delivered.length >= 1)
        await realTime(20)
        await spool.close({ timeoutMs: 0 })
      }
    }
    await leaveLock(folder.path, 16)
    expect(await folder.drain()).toEqual(['n1'])
    await using spool = await folder.open()
    expect(await lettersOf(spool)).toEqual([])
  })
})

test.for([
  [undefined, 1],
  ['discard', 0],
])(
  'a delivery that has ended three processes is reported and not delivered: onStuck says %s',
  async (folder, [answer, letters]) => {
    const state = { attempts: 2, dueAt: 0, reportedAt: 0, crashes: 3 }
    const segment = segmentOf(1_000, [{ ...numbered(1), state }])
    await folder.put(segment)
    const deliver = vi.fn()
    const reports: unknown[] = []
    const { logger, logged } = eventLog(/stuck|lettered|discarded/)
    let written = ''
    await using spool = await folder.open({
      deliver,
      logger,
      // A schema that ended the processes is not asked again.
      payloads: { cxScoreUpdated: z.never() },
      onStuck: (stuck) => {
        written = readFileSync(join(folder.path, segment.name), 'latin1')
        reports.push(stuck)
        return answer
      },
    })
    await until(() => spool.size === 0)
    expect(deliver).not.toHaveBeenCalled()
    expect(reports).toEqual([{ delivery: numbered(1), attempts: 3, sinceAt: 5, error: fatal }])
    // The time of the report: if it ends the process, the next one does not repeat it.
    expect(written).toMatch(/^\n\+00002 0{13} [1-9]\d{12} 3 /)
    const ended = letters ? 'spool.dead-lettered' : 'spool.discarded'
    await expect.poll(logged).toMatchObject([{ event: 'spool.stuck' }, { event: ended }])
    expect(await lettersOf(spool)).toHaveLength(letters)
    expect((await readdir(folder.path)).filter((each) => each.endsWith('.closed'))).toEqual([])
  },
)
