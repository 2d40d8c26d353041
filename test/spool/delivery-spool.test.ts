import { AsyncLocalStorage } from 'node:async_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { DeliverySpool } from 'notification-subscriber/spool'
import { describe, expect } from 'vitest'
import * as z from 'zod'
import { deferred } from '../support/deferred.js'
import {
  callBack,
  eventLog,
  idsOf,
  keep,
  keepInvalid,
  lettersOf,
  never,
  numbered,
  recorder,
  test,
  until,
} from './support.js'

describe.concurrent('what was kept is delivered', () => {
  test('each delivery once, unchanged, in the order in which they were kept', async (folder) => {
    const { deliver, delivered } = recorder()
    await using spool = await folder.open({ deliver, concurrency: 1 })
    const deliveries = Array.from({ length: 100 }, (_, id) => ({
      ...numbered(id, { text: 'ü\n\u2028 "', id }),
      unknown: id,
    }))
    await Promise.all(deliveries.map((delivery) => keep(spool, delivery)))
    await until(() => spool.size === 0)
    expect(delivered).toEqual(deliveries)
  })

  test('`payloads` reads each entry, so that `deliver` gets what its schemas make of it', async (folder) => {
    const payloads = { scored: z.object({ at: z.string().transform((text) => new Date(text)) }) }
    const dates: unknown[] = []
    await using spool = await folder.open({
      payloads,
      deliver: ({ notification }) => {
        if (notification.type === 'scored') dates.push(notification.payload.at.getTime())
      },
    })
    const { notification } = numbered(1, { at: '2026-01-01T00:00:00Z' })
    await spool.keep(
      {},
      { delivery: { subscriptionId: 1, notification: { ...notification, type: 'scored' } } },
    )
    await until(() => spool.size === 0)
    expect(dates).toEqual([Date.UTC(2026, 0, 1)])
  })

  test('`deliver` may use the spool that is being opened', async (folder) => {
    await folder.leave(numbered(1))
    const sizes: number[] = []
    const spool: DeliverySpool = await folder.open({ deliver: () => void sizes.push(spool.size) })
    await until(() => spool.size === 0)
    expect(sizes).toEqual([1])
    await spool.close()
  })
})

describe.concurrent('observing', () => {
  test('`deliver`, `onStuck` and the log run in the async context of `open`, and not in that of a callback', async (folder) => {
    const context = new AsyncLocalStorage<string>()
    const seen: unknown[] = []
    const log = () => void seen.push(context.getStore())
    const spool = await context.run('open', () =>
      folder.open({
        logger: { debug: log, info: log, warn: log, error: log },
        concurrency: 2,
        deliver: async () => {
          seen.push(context.getStore())
          await sleep(1)
          if (seen.length < 20) throw new Error('again')
        },
      }),
    )
    await Promise.all(
      Array.from({ length: 10 }, (_, id) => context.run(`callback ${id}`, () => keep(spool, numbered(id)))),
    )
    await until(() => spool.size === 0)
    expect(seen.length).toBeGreaterThan(20)
    expect(new Set(seen)).toEqual(new Set(['open']))
    await context.run('open', () => spool.close())
  })

  test('`oldestReceivedAt` is when the oldest delivery that waits was received, also after a restart', async (folder) => {
    const first = await folder.open({ deliver: never })
    expect(first.oldestReceivedAt).toBeUndefined()
    const startedAt = Date.now()
    await keep(first, numbered(1))
    const oldest = first.oldestReceivedAt ?? 0
    expect(oldest).toBeGreaterThanOrEqual(startedAt)
    expect(oldest).toBeLessThanOrEqual(Date.now())
    await sleep(5)
    await keep(first, numbered(2))
    expect(first.oldestReceivedAt).toBe(oldest)
    await first.close({ timeoutMs: 0 })
    await using second = await folder.open({
      deliver: ({ notification }) => (notification.id === 'n1' ? undefined : never()),
    })
    expect(second.oldestReceivedAt).toBe(oldest)
    await until(() => second.size === 1)
    expect(second.oldestReceivedAt).toBeGreaterThan(oldest)
    await second.close({ timeoutMs: 0 })
  })

  test('the log has opening, each delivery with its attempt, and closing', async (folder) => {
    const { logger, logged } = eventLog()
    const spool = await folder.open({ logger, deliver: () => sleep(5) })
    const startedAt = performance.now()
    await keep(spool, numbered(1))
    await until(() => spool.size === 0)
    const elapsedMs = performance.now() - startedAt
    await Promise.all([spool.close(), spool.close()])
    expect(logged()).toEqual([
      { event: 'spool.opened', path: folder.path, size: 0, deadLetters: 0 },
      {
        event: 'spool.delivered',
        subscriptionId: 1,
        notificationId: 'n1',
        type: 'cxScoreUpdated',
        attempt: 1,
        durationMs: expect.toSatisfy((ms: number) => ms >= 4 && ms <= elapsedMs + 1),
        receivedAt: expect.any(Number),
      },
      { event: 'spool.closed', size: 0 },
    ])
  })
})

describe.concurrent('close', () => {
  test('waits for what is running, begins nothing more, and says how many are left', async (folder) => {
    const running = deferred<void>()
    const { deliver, delivered } = recorder(() => running.promise)
    const spool = await folder.open({ deliver, concurrency: 1 })
    for (const id of [1, 2, 3]) await keep(spool, numbered(id))
    await until(() => delivered.length === 1)
    const closed = spool.close()
    const closedAgain = spool.close()
    await sleep(20)
    running.resolve()
    expect(await Promise.all([closed, closedAgain])).toEqual([2, 2])
    expect(spool.size).toBe(2)
    expect(idsOf(delivered)).toEqual(['n1'])
  })

  test('aborts what takes longer than `timeoutMs`, and leaves it to the next process as if it had not been tried', async (folder) => {
    let isStarted = false
    const reasons: unknown[] = []
    const signals: AbortSignal[] = []
    const spool = await folder.open({
      deliver: ({ notification }, { signal }) => {
        signals.push(signal)
        if (notification.id === 'ndone') return
        return new Promise((_, reject) => {
          isStarted = true
          signal.addEventListener('abort', () => {
            reasons.push(signal.reason.name)
            reject(signal.reason)
          })
        })
      },
    })
    await keep(spool, numbered('done'))
    await until(() => spool.size === 0)
    await keep(spool, numbered(1))
    await until(() => isStarted)
    expect(await spool.close({ timeoutMs: 10 })).toBe(1)
    expect(reasons).toEqual(['AbortError'])
    expect(signals.map(({ aborted }) => aborted)).toEqual([false, true])
    const { logger, logged } = eventLog(/spool.delivered/)
    await folder.drain({ logger })
    expect(logged()).toMatchObject([{ notificationId: 'n1', attempt: 1 }])
  })

  test.for([
    [{ timeout: 5 }, []],
    [{ timeoutMs: Number.POSITIVE_INFINITY }, ['timeoutMs']],
  ])('refuses %o, and the spool stays open', async (folder, [options, path]) => {
    await using spool = await folder.open()
    await expect(spool.close(options as object)).rejects.toMatchObject({
      code: 'CONFIGURATION',
      issues: [{ path }],
    })
    await keep(spool, numbered(1))
  })

  test('waits for what is being kept, and refuses what comes later', async (folder) => {
    const spool = await folder.open({ deliver: never })
    const kept = keep(spool, numbered(1))
    const closed = spool.close({ timeoutMs: 0 })
    await kept
    expect(await closed).toBe(1)
    const refused = { name: 'ClosedError', code: 'CLOSED' }
    await expect(keep(spool, numbered(2))).rejects.toMatchObject(refused)
    await expect(keepInvalid(spool, '')).rejects.toMatchObject(refused)
    await expect(spool.discard(1)).rejects.toMatchObject(refused)
    await expect(spool.retry(1)).rejects.toMatchObject(refused)
    await expect(spool.deadLetters().next()).rejects.toMatchObject(refused)
  })
})

test('options are for `open`: the constructor refuses everything', () => {
  const issues = [{ path: [], message: expect.any(String) }]
  const refusal = expect.objectContaining({ code: 'CONFIGURATION', issues })
  expect(() => Reflect.construct(DeliverySpool, [])).toThrow(refusal)
})

describe.concurrent('quota', () => {
  test('`maxBytes` limits the waiting deliveries: more are refused with 204, and space is free again', async (folder) => {
    const finished = deferred<void>()
    await using spool = await folder.open({ deliver: () => finished.promise, maxBytes: 200_000 })
    const errors: unknown[] = []
    for (let id = 0; id < 50; id += 1) {
      const body = JSON.stringify(numbered(id, { text: 'x'.repeat(5_000) }))
      expect(await callBack(spool, body, { onError: (error) => errors.push(error) })).toBe(204)
    }
    expect(spool.size).toBeGreaterThan(20)
    expect(spool.size).toBeLessThanOrEqual(40)
    expect(errors).toHaveLength(50 - spool.size)
    expect(errors[0]).toMatchObject({ name: 'SpoolError', reason: 'full' })
    finished.resolve()
    await until(() => spool.size === 0)
    await keep(spool, numbered(99))
  })

  test('dead letters of kept deliveries count, until they are discarded', async (folder) => {
    await folder.leave(numbered(1))
    // This process cannot read it.
    const payloads = { cxScoreUpdated: z.object({ score: z.number() }) }
    await using spool = await folder.open({ payloads, maxBytes: 4_096 })
    await until(() => spool.size === 0)
    const kept = () => keep(spool, numbered(2, { score: 1 }))
    for (const body of ['of a quota', 'of its own']) await keepInvalid(spool, body)
    const [letter] = await lettersOf(spool)
    await expect(kept()).rejects.toMatchObject({ code: 'SPOOL', reason: 'full' })
    await spool.discard(letter?.id ?? 0)
    await kept()
  })
})
