import type { Delivery } from 'notification-subscriber'
import type { DeliverySpool, StuckDelivery } from 'notification-subscriber/spool'
import { afterEach, beforeEach, describe, expect, vi } from 'vitest'
import { notAttempted } from '../../src/spool/format.js'
import {
  diskThatFailsTo,
  eventLog,
  idsOf,
  keep,
  keepInvalid,
  lettersOf,
  never,
  numbered,
  realTime,
  recorder,
  segmentOf,
  test,
  until,
} from './support.js'

const failing = () => Promise.reject(new Error('the queue is away'))
const second = 1_000
const minute = 60 * second
const hour = 60 * minute

// The disk works in real time, and needs setImmediate.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance', 'Date'] }))
afterEach(() => void vi.useRealTimers())

/** Lets virtual time pass, and the disk do in real time what is due by then. */
async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += second) {
    await vi.advanceTimersByTimeAsync(second)
    await diskDone()
  }
}

/**
 * Resolves when a failure is on the disk, however slow that is: then the spool has set a timer for the repetition.
 * Where nothing is repeated there is no timer to wait for.
 */
async function diskDone(): Promise<void> {
  await realTime(5)
  for (let waitedMs = 0; vi.getTimerCount() === 0 && waitedMs < 500; waitedMs += 5) await realTime(5)
}

/** Lets virtual time pass until the condition holds. */
async function passUntil(condition: () => boolean, stepMs = second): Promise<void> {
  while (!condition()) {
    await vi.advanceTimersByTimeAsync(stepMs)
    await diskDone()
  }
}

describe('a delivery that fails', () => {
  test('is repeated after the backoff and not before, until it succeeds', async (folder) => {
    const triedAt: number[] = []
    await using spool = await folder.open({
      deliver: async () => {
        triedAt.push(Date.now())
        if (triedAt.length < 9) await failing()
      },
    })
    await keep(spool, numbered(1))
    await passUntil(() => spool.size === 0)
    expect(vi.getTimerCount()).toBe(0)
    const waits = triedAt.slice(1).map((at, index) => at - (triedAt[index] ?? 0))
    expect(waits).toHaveLength(8)
    for (const [index, wait] of waits.entries()) {
      expect(wait).toBeGreaterThanOrEqual(Math.min(second * 2 ** index, minute))
    }
  })

  test('keeps its failures, its time to wait and its last report over a restart', async (folder) => {
    const reports: StuckDelivery[] = []
    const { deliver, delivered } = recorder(failing)
    const options = { deliver, onStuck: (stuck: StuckDelivery) => void reports.push(stuck) }
    const keptAt = Date.now()
    {
      await using spool = await folder.open(options)
      await keep(spool, numbered(1))
      await passUntil(() => delivered.length === 9)
      // Until the ninth failure is on the disk.
      await pass(5 * second)
    }
    expect(reports).toEqual([])
    {
      await using _spool = await folder.open(options)
      await pass(30 * second)
      expect(delivered).toHaveLength(9)
      await passUntil(() => reports.length === 1)
      const sinceAt = expect.toSatisfy((at: number) => at >= keptAt && at < keptAt + second)
      const error = new Error('the queue is away')
      expect(reports).toEqual([{ delivery: numbered(1), attempts: 10, sinceAt, error }])
      await pass(5 * second)
    }
    await using _spool = await folder.open(options)
    await passUntil(() => delivered.length === 13)
    expect(reports).toHaveLength(1)
  })

  test.for([
    ['first', 0],
    ['second', 1],
  ])(
    'on a disk that cannot be read before its %s attempt is read again after 10 s, and delays no other',
    async (folder, [_which, done]) => {
      const disk = diskThatFailsTo('read')
      disk.isBroken = done === 0
      const { deliver, delivered } = recorder(({ notification: { id } }) => {
        if (id !== 'n1')
          return new Promise<void>((resolve) => setTimeout(resolve, id === 'n2' ? 12 * second : 0))
        disk.isBroken = delivered.length === done
        if (disk.isBroken) throw new Error('away')
        return undefined
      })
      const { logger, logged } = eventLog(/read-failed/)
      await using spool = await folder.open({ deliver, logger, concurrency: 1 }, disk.files)
      await keep(spool, numbered(1))
      await passUntil(() => disk.failures === 1)
      disk.isBroken = false
      // In the same file, which is read from there on.
      await Promise.all([2, 3].map((id) => keep(spool, numbered(id))))
      await until(() => delivered.length === done + 1)
      await pass(8 * second)
      expect([idsOf(delivered).slice(done), disk.failures]).toEqual([['n2'], 1])
      await pass(6 * second)
      expect([idsOf(delivered).slice(done), spool.size]).toEqual([['n2', 'n1', 'n3'], 0])
      expect(folder.damages).toEqual([])
      expect(logged()).toHaveLength(1)
    },
  )

  test('is reported once an hour from the tenth failure on, and never given up unasked', async (folder) => {
    const reportedAt: number[] = []
    const { deliver, delivered } = recorder(failing)
    await using spool = await folder.open({
      deliver,
      onStuck: ({ attempts }) => {
        if (reportedAt.length === 0) expect(attempts).toBe(10)
        reportedAt.push(Date.now())
      },
    })
    await keep(spool, numbered(1))
    await passUntil(() => reportedAt.length === 3, 10 * second)
    for (const index of [0, 1]) {
      const elapsed = (reportedAt[index + 1] ?? 0) - (reportedAt[index] ?? 0)
      expect(elapsed).toBeGreaterThanOrEqual(hour)
      expect(elapsed).toBeLessThan(hour + 2 * minute)
    }
    expect(delivered.length).toBeGreaterThan(60)
    expect(spool.size).toBe(1)
  })

  test('is tried again although `onStuck` throws, or never ends', async (folder) => {
    const { deliver, delivered } = recorder(failing)
    let reports = 0
    const error = vi.spyOn(console, 'error').mockImplementation(() => {})
    await using spool = await folder.open({
      deliver,
      logger: undefined,
      deliverTimeoutMs: second,
      onStuck: () => {
        reports += 1
        if (reports === 1) throw new Error('broken')
        return new Promise(() => {})
      },
    })
    await keep(spool, numbered(1))
    await passUntil(() => reports === 2, 5 * second)
    const before = delivered.length
    await passUntil(() => delivered.length > before)
    const fields = expect.objectContaining({ callback: 'onStuck' })
    expect(error).toHaveBeenCalledWith(expect.any(String), fields)
    error.mockRestore()
  })

  test('is on console.error without a logger: at once, at most once a minute, and when stuck, without payload', async (folder) => {
    const error = vi.spyOn(console, 'error').mockImplementation(() => {})
    const { deliver, delivered } = recorder(failing)
    await using spool = await folder.open({ deliver, logger: undefined })
    await keep(spool, numbered(1, { private: 'of a person' }))
    await passUntil(() => delivered.length === 10)
    await pass(second)
    const fields = {
      receivedAt: expect.any(Number),
      subscriptionId: 1,
      notificationId: 'n1',
      type: 'cxScoreUpdated',
      err: expect.objectContaining({ message: 'the queue is away' }),
    }
    const failed = { event: 'spool.failed', ...fields, attempts: 1 }
    const lines = error.mock.calls.map(([, line]) => line)
    // After 1, 3, 7, 15 and 31 seconds.
    expect(lines.slice(0, 2)).toEqual([failed, { ...failed, attempts: 7, unreported: 5 }])
    expect(lines.at(-1)).toEqual({ event: 'spool.stuck', ...fields, attempts: 10 })
    expect(JSON.stringify(lines)).not.toContain('of a person')
    error.mockRestore()
  })
})

describe('an outage', () => {
  test('is tested by one delivery at a time, every five seconds, and ends with the first success', async (folder) => {
    let isAway = true
    let attempts = 0
    const { logger, logged } = eventLog(/spool.failed/)
    await using spool = await folder.open({
      logger,
      deliver: () => {
        attempts += 1
        if (isAway) throw new Error('away')
      },
    })
    await Promise.all(Array.from({ length: 500 }, (_, id) => keep(spool, numbered(id))))
    await pass(minute)
    // Those that were in flight when it began, and twelve tests.
    expect(attempts).toBeLessThanOrEqual(32 + 16 + 13)
    await pass(minute)
    expect(attempts).toBeLessThanOrEqual(32 + 16 + 25)
    expect(logged().length).toBeLessThanOrEqual(3)
    isAway = false
    // What has never failed is delivered at once, what has failed in its time.
    await passUntil(() => spool.size < 100)
    await passUntil(() => spool.size === 0)
  })

  test('lets deliveries that failed take turns with new ones, so that a target that fails each first attempt is served', async (folder) => {
    const attempted = new Set<string>()
    await using spool = await folder.open({
      deliver: ({ notification: { id } }) => {
        if (attempted.size === attempted.add(id).size) return
        throw new Error('not at first')
      },
    })
    await Promise.all(Array.from({ length: 200 }, (_, id) => keep(spool, numbered(id))))
    const startedAt = performance.now()
    await passUntil(() => spool.size === 0)
    // One every five seconds would take 1,000 seconds.
    expect(performance.now() - startedAt).toBeLessThan(2 * minute)
  })

  test('is not one delivery of ten that fails: a backlog with such drains without a pause', async (folder) => {
    vi.useRealTimers()
    const isBad = (id: number) => id % 10 === 0
    // All of those that fail are due at once.
    const stateOf = (id: number) => ({ ...notAttempted, attempts: isBad(id) ? 3 : 0 })
    const deliveries = Array.from({ length: 2_000 }, (_, id) => ({ ...numbered(id), state: stateOf(id) }))
    await folder.put(segmentOf(1_000, deliveries))
    let lastAt = performance.now()
    let longestPauseMs = 0
    const deliver = async ({ notification: { id } }: Delivery) => {
      longestPauseMs = Math.max(longestPauseMs, performance.now() - lastAt)
      lastAt = performance.now()
      if (isBad(Number(id.slice(1)))) await failing()
      await realTime(10)
    }
    const spool = await folder.open({ deliver })
    await until(() => spool.size === 200)
    expect(longestPauseMs).toBeLessThan(2 * second)
    await spool.close({ timeoutMs: 0 })
  })
})

test('a delivery that never ends has its signal aborted after `deliverTimeoutMs`, and counts as failed', async (folder) => {
  const signals: AbortSignal[] = []
  await using spool = await folder.open({
    deliverTimeoutMs: 5 * second,
    deliver: (_delivery, attempt) => {
      const { signal } = attempt
      // Each attempt has one, however often it is asked for.
      if (attempt.signal === signal) signals.push(signal)
      return signals.length === 1 ? new Promise(() => {}) : undefined
    },
  })
  await keep(spool, numbered(1))
  await until(() => signals.length === 1)
  await vi.advanceTimersByTimeAsync(5 * second - 1)
  expect(signals[0]?.aborted).toBe(false)
  await vi.advanceTimersByTimeAsync(1)
  expect(signals[0]?.reason).toMatchObject({ name: 'TimeoutError' })
  await passUntil(() => spool.size === 0)
  expect(signals).toHaveLength(2)
  expect(signals[1]?.aborted).toBe(false)
})

describe('deliveries that fail for ever', () => {
  test.for([
    ['by rejecting', failing],
    ['by never ending', () => new Promise(() => {})],
  ])('%s, more of them than `concurrency`, do not hold up others', async (folder, [_how, fail]) => {
    const isPoison = ({ notification }: Delivery) => 'poison' in notification.payload
    const { deliver, delivered } = recorder((delivery) => (isPoison(delivery) ? fail() : undefined))
    await using spool = await folder.open({ deliver, concurrency: 4, deliverTimeoutMs: minute })
    await Promise.all(Array.from({ length: 20 }, (_, id) => keep(spool, numbered(id, { poison: true }))))
    // Each has failed once, and some wait for their turn at any time from now on.
    await passUntil(() => idsOf(delivered).includes('n19'), 5 * second)
    await pass(3 * minute)
    for (let id = 100; id < 110; id += 1) {
      await keep(spool, numbered(id))
      // The first one ends what looked like an outage; then no time passes: a place is free.
      if (id === 100) await passUntil(() => idsOf(delivered).includes('n100'))
      await until(() => delivered.some(({ notification }) => notification.id === `n${id}`))
    }
    const closed = spool.close({ timeoutMs: 1 })
    await vi.advanceTimersByTimeAsync(1)
    await closed
  })

  test.for([
    [1, 1],
    [5, 2],
  ])('with a concurrency of %i have %i repetitions at a time', async (folder, [concurrency, most]) => {
    let failures = 0
    let running = 0
    const deliver = () => {
      if (failures === 18) {
        running += 1
        return never()
      }
      failures += 1
      throw new Error('away')
    }
    await using spool = await folder.open({ deliver, concurrency, deliverTimeoutMs: 24 * hour })
    await Promise.all([1, 2, 3, 4, 5, 6].map((id) => keep(spool, numbered(id))))
    await passUntil(() => running === most)
    await pass(5 * second)
    const timers = vi.getTimerCount()
    const closed = spool.close({ timeoutMs: 1 })
    await vi.advanceTimersByTimeAsync(1)
    await closed
    // The timers are their time limits: one for what is due and must wait would fire again and again.
    expect([running, timers]).toEqual([most, most])
  })

  test('are repeated although new deliveries never cease', async (folder) => {
    let failures = 0
    let next = 0
    const spool: DeliverySpool = await folder.open({
      concurrency: 2,
      deliver: async ({ notification }) => {
        if (notification.id === 'npoison') {
          failures += 1
          await failing()
        }
        next += 1
        await keep(spool, numbered(next))
      },
    })
    await keep(spool, numbered('poison'))
    await Promise.all([1, 2, 3, 4, 5].map((id) => keep(spool, numbered(`x${id}`))))
    await passUntil(() => failures === 5)
    await spool.close()
  })
})

describe('a clock that jumps', () => {
  test('while the spool is open changes nothing', async (folder) => {
    const { deliver, delivered } = recorder(failing)
    await using spool = await folder.open({ deliver })
    await keep(spool, numbered(1))
    await passUntil(() => delivered.length === 3)
    vi.setSystemTime(Date.now() - 30 * 24 * hour)
    await pass(10 * second)
    expect(delivered.length).toBeGreaterThan(3)
    vi.setSystemTime(Date.now() + 90 * 24 * hour)
    const before = delivered.length
    await pass(4 * second)
    // Four failures: at least 8 seconds to wait.
    expect(delivered.length).toBeLessThanOrEqual(before + 1)
  })

  test('back between two processes delays no report by more than an hour', async (folder) => {
    const state = { ...notAttempted, attempts: 12, reportedAt: Date.now() + 30 * 24 * hour }
    await folder.put(segmentOf(1_000, [{ ...numbered(1), state }]))
    const startedAt = Date.now()
    const reportedAt: number[] = []
    const onStuck = () => void reportedAt.push(Date.now())
    await using _spool = await folder.open({ deliver: failing, onStuck })
    await passUntil(() => reportedAt.length === 1, 10 * second)
    expect(reportedAt[0]).toBeLessThan(startedAt + hour + 2 * minute)
  })

  test.for([
    ['30 days back', 0, -30 * 24 * hour],
    ['30 days forward', 0, 30 * 24 * hour],
    ['to 2290 and back', Date.parse('2290-01-01') - Date.now(), -200 * 365 * 24 * hour],
  ])(
    '%s between two processes delays nothing by more than the longest backoff, and mixes up no ids',
    async (folder, [_, before, jump]) => {
      vi.setSystemTime(Date.now() + before)
      {
        const { deliver, delivered } = recorder(failing)
        await using spool = await folder.open({ deliver })
        await keepInvalid(spool, 'old')
        for (const id of [1, 2, 3]) await keep(spool, numbered(id))
        await passUntil(() => delivered.length >= 24)
        await pass(5 * second)
        expect(spool.size).toBe(3)
      }
      vi.setSystemTime(Date.now() + jump)
      const { deliver, delivered } = recorder()
      await using spool = await folder.open({ deliver })
      await keepInvalid(spool, 'new')
      expect((await lettersOf(spool)).map(({ body }) => body)).toEqual(['old', 'new'])
      await keep(spool, numbered(4))
      // What is new waits for nothing.
      await until(() => idsOf(delivered).includes('n4'))
      await vi.advanceTimersByTimeAsync(61 * second)
      await until(() => spool.size === 0)
      expect(idsOf(delivered).toSorted()).toEqual(['n1', 'n2', 'n3', 'n4'])
      expect(folder.damages).toEqual([])
    },
  )
})
