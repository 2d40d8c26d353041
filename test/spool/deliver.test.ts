import { setTimeout as sleep } from 'node:timers/promises'
import { createDeliveryParser, DeliveryReceiver, InvalidDeliveryError } from 'notification-subscriber'
import { DeliverySpool, SpoolError } from 'notification-subscriber/spool'
import { describe, expect, test, vi } from 'vitest'
import * as z from 'zod'
import { idsOf, invalidOf, keep, numbered, openSpool, recorder, spoolFolder, until } from './support.js'

const never = () => new Promise<never>(() => {})

describe('what was kept is delivered', () => {
  test('each delivery once, unchanged, in the order in which they were kept', async () => {
    await using folder = await spoolFolder()
    const { deliver, delivered } = recorder()
    await using spool = await openSpool({ path: folder.path, deliver, concurrency: 1 })
    const deliveries = Array.from({ length: 100 }, (_, id) => numbered(id, { text: 'ü\n\u2028 "', id }))
    await Promise.all(deliveries.map((delivery) => keep(spool, delivery)))
    await until(() => spool.size === 0)
    expect(delivered).toEqual(deliveries)
  })

  test('behind a receiver: the callback is answered when the delivery is on the disk, not when it is delivered', async () => {
    await using folder = await spoolFolder()
    const { deliver, delivered } = recorder(never)
    await using spool = await openSpool({ path: folder.path, deliver })
    const receiver = new DeliveryReceiver({ secrets: { token: 's' }, onInvalid: spool.keepInvalid }).onAny(
      spool.keep,
    )
    const body = JSON.stringify({ ...numbered(1), unknown: 'kept' })
    const answer = await receiver.handle({ method: 'POST', headers: { token: 's' }, body })
    expect(answer.status).toBe(204)
    expect(spool.size).toBe(1)
    await until(() => delivered.length === 1)
    expect(delivered[0]).toEqual(JSON.parse(body))
    await spool.close({ timeoutMs: 0 })
  })

  test('at most `concurrency` at a time, and as many as that', async () => {
    await using folder = await spoolFolder()
    let running = 0
    let most = 0
    const deliver = async () => {
      running += 1
      most = Math.max(most, running)
      await sleep(5)
      running -= 1
    }
    await using spool = await openSpool({ path: folder.path, deliver, concurrency: 3 })
    await Promise.all(Array.from({ length: 30 }, (_, id) => keep(spool, numbered(id))))
    await until(() => spool.size === 0)
    expect(most).toBe(3)
  })

  test('what an earlier process left is delivered by the next, before what is new', async () => {
    await using folder = await spoolFolder()
    const first = await openSpool({ path: folder.path, deliver: never })
    for (const id of [1, 2, 3]) await keep(first, numbered(id))
    expect(await first.close({ timeoutMs: 0 })).toBe(3)
    expect(first.size).toBe(3)
    const { deliver, delivered } = recorder()
    await using second = await openSpool({ path: folder.path, deliver, concurrency: 1 })
    await keep(second, numbered(4))
    await until(() => second.size === 0)
    expect(idsOf(delivered)).toEqual(['n1', 'n2', 'n3', 'n4'])
  })

  test('the parser reads each entry, so that `deliver` gets what its schemas make of it', async () => {
    await using folder = await spoolFolder()
    const parser = createDeliveryParser({
      payloads: { scored: z.object({ at: z.string().transform((text) => new Date(text)) }) },
    })
    const dates: unknown[] = []
    await using spool = await DeliverySpool.open({
      path: folder.path,
      parser,
      deliver: ({ notification }) => {
        if (notification.type === 'scored') dates.push(notification.payload.at.getTime())
      },
    })
    const notification = {
      id: 'x',
      time: 1,
      ver: '1.0',
      type: 'scored',
      payload: { at: '2026-01-01T00:00:00Z' },
    }
    await spool.keep(notification, { delivery: { subscriptionId: 1, notification } })
    await until(() => spool.size === 0)
    expect(dates).toEqual([Date.UTC(2026, 0, 1)])
  })

  test('`deliver` that returns nothing, or throws at once, is like one that is asynchronous', async () => {
    await using folder = await spoolFolder()
    let calls = 0
    await using spool = await openSpool({
      path: folder.path,
      deliver: () => {
        calls += 1
        if (calls === 1) throw new Error('no')
      },
    })
    await keep(spool, numbered(1))
    await until(() => spool.size === 0)
    expect(calls).toBe(2)
  })

  test('`deliver` may use the spool that is being opened', async () => {
    await using folder = await spoolFolder()
    const left = await openSpool({ path: folder.path, deliver: never })
    await keep(left, numbered(1))
    await left.close({ timeoutMs: 0 })
    const sizes: number[] = []
    const spool: DeliverySpool = await openSpool({
      path: folder.path,
      deliver: () => void sizes.push(spool.size),
    })
    await until(() => spool.size === 0)
    expect(sizes).toEqual([1])
    await spool.close()
  })
})

describe('deliveries that can no longer be read', () => {
  const stricter = createDeliveryParser({ payloads: { cxScoreUpdated: z.object({ score: z.number() }) } })

  test('are put among the invalid bodies, told of, and hold up nobody', async () => {
    await using folder = await spoolFolder()
    const before = await openSpool({ path: folder.path, deliver: never })
    await keep(before, numbered(1))
    await keep(before, numbered(2, { score: 1 }))
    await before.close({ timeoutMs: 0 })
    const error = vi.spyOn(console, 'error').mockImplementation(() => {})
    const { deliver, delivered } = recorder()
    await using spool = await DeliverySpool.open({
      path: folder.path,
      deliver: deliver as never,
      parser: stricter,
    })
    await until(() => spool.size === 0 && error.mock.calls.length > 0)
    expect(idsOf(delivered)).toEqual(['n2'])
    const invalid = await invalidOf(spool)
    expect(invalid).toEqual([
      {
        id: expect.any(Number),
        receivedAt: expect.any(Number),
        body: JSON.stringify(numbered(1)),
        issues: [expect.objectContaining({ path: ['notification', 'payload', 'score'] })],
      },
    ])
    expect(error.mock.calls).toEqual([
      [expect.stringContaining('cannot be read any more'), expect.objectContaining({ id: invalid[0]?.id })],
    ])
    error.mockRestore()
  })

  test('can be kept again by a parser that reads them', async () => {
    await using folder = await spoolFolder()
    const first = await DeliverySpool.open({
      path: folder.path,
      deliver: () => {},
      parser: stricter,
      logger: false,
    })
    await first.keep({}, { delivery: numbered(1) })
    await until(() => first.size === 0)
    await first.close()
    const { deliver, delivered } = recorder()
    await using spool = await openSpool({ path: folder.path, deliver })
    for await (const { id, body } of spool.invalid()) {
      await spool.keep({}, { delivery: JSON.parse(String(body)) })
      await spool.discardInvalid(id)
    }
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n1'])
    expect(await invalidOf(spool)).toEqual([])
  })

  test('a parser that throws something else loses nothing either', async () => {
    await using folder = await spoolFolder()
    const safeParse = () => {
      throw new Error('broken parser')
    }
    await using spool = await openSpool({
      path: folder.path,
      deliver: () => {},
      parser: { ...stricter, safeParse } as never,
    })
    await keep(spool, numbered(1))
    await until(() => spool.size === 0)
    const [invalid] = await invalidOf(spool)
    expect(invalid).toMatchObject({ body: JSON.stringify(numbered(1)) })
    expect(invalid?.issues[0]?.message).toContain('broken parser')
  })
})

describe('bodies that are no deliveries', () => {
  const invalidError = (body: unknown) =>
    new InvalidDeliveryError('no', { issues: [{ path: ['x', 0], message: 'm' }], body })

  test('are kept to the letter: text, bytes and values, with when and why, also for the next process', async () => {
    await using folder = await spoolFolder()
    const bodies = [
      '',
      '{"a":',
      'ü\u0000',
      Buffer.from([0, 255, 10]),
      { a: [1, null, 'x'] },
      null,
      5,
      [],
      false,
    ]
    const startedAt = Date.now()
    {
      await using spool = await openSpool({ path: folder.path, deliver: () => {} })
      for (const body of bodies) await spool.keepInvalid(invalidError(body))
      expect(spool.size).toBe(0)
    }
    await using spool = await openSpool({ path: folder.path, deliver: () => {} })
    const kept = await invalidOf(spool)
    expect(kept.map(({ body }) => body)).toEqual(bodies)
    for (const { issues, receivedAt } of kept) {
      expect(issues).toEqual([{ path: ['x', 0], message: 'm' }])
      expect(receivedAt).toBeGreaterThanOrEqual(startedAt)
      expect(receivedAt).toBeLessThanOrEqual(Date.now())
    }
    expect(new Set(kept.map(({ id }) => id)).size).toBe(bodies.length)
  })

  test('come from the receiver by `onInvalid`', async () => {
    await using folder = await spoolFolder()
    await using spool = await openSpool({ path: folder.path, deliver: () => {} })
    const receiver = new DeliveryReceiver({ secrets: { token: 's' }, onInvalid: spool.keepInvalid }).onAny(
      spool.keep,
    )
    await receiver.handle({ method: 'POST', headers: { token: 's' }, body: 'no JSON' })
    expect(await invalidOf(spool)).toMatchObject([{ body: 'no JSON' }])
  })

  test('take 16 MiB at most: the oldest are dropped first, the newest stay', async () => {
    await using folder = await spoolFolder()
    await using spool = await openSpool({ path: folder.path, deliver: () => {} })
    for (let number = 0; number < 20; number += 1) {
      await spool.keepInvalid(invalidError(`${number} `.padEnd(2 ** 20, 'x')))
    }
    const numbers: number[] = []
    for await (const { body } of spool.invalid()) numbers.push(Number.parseInt(String(body), 10))
    expect(numbers.at(-1)).toBe(19)
    expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, index) => 20 - numbers.length + index))
    expect(numbers.length).toBeGreaterThanOrEqual(14)
    expect(numbers.length).toBeLessThanOrEqual(16)
  })

  test('one of more than 16 MiB drops no other', async () => {
    await using folder = await spoolFolder()
    await using spool = await openSpool({ path: folder.path, deliver: () => {} })
    await spool.keepInvalid(invalidError('small'))
    await expect(spool.keepInvalid(invalidError('x'.repeat(2 ** 24 + 1)))).rejects.toThrow(SpoolError)
    expect(await invalidOf(spool)).toMatchObject([{ body: 'small' }])
  })

  test('are gone when they are discarded, also while they are read; an unknown id is ignored', async () => {
    await using folder = await spoolFolder()
    await using spool = await openSpool({ path: folder.path, deliver: () => {} })
    for (const body of ['a', 'b', 'c']) await spool.keepInvalid(invalidError(body))
    const seen: unknown[] = []
    for await (const { id, body } of spool.invalid()) {
      seen.push(body)
      if (body !== 'b') await spool.discardInvalid(id)
    }
    expect(seen).toEqual(['a', 'b', 'c'])
    await spool.discardInvalid(12_345)
    expect(await invalidOf(spool)).toMatchObject([{ body: 'b' }])
  })
})

describe('close', () => {
  test('waits for what is running, begins nothing more, and says how many are left', async () => {
    await using folder = await spoolFolder()
    let finish = () => {}
    const { deliver, delivered } = recorder(() => new Promise<void>((resolve) => (finish = resolve)))
    const spool = await openSpool({ path: folder.path, deliver, concurrency: 1 })
    for (const id of [1, 2, 3]) await keep(spool, numbered(id))
    await until(() => delivered.length === 1)
    const closed = spool.close()
    expect(spool.close()).toBe(closed)
    await sleep(20)
    finish()
    expect(await closed).toBe(2)
    expect(idsOf(delivered)).toEqual(['n1'])
  })

  test('aborts what takes longer than `timeoutMs`, and leaves it to the next process as if it had not been tried', async () => {
    await using folder = await spoolFolder()
    let isStarted = false
    const reasons: unknown[] = []
    const spool = await openSpool({
      path: folder.path,
      deliver: (_delivery, { signal }) =>
        new Promise((_, reject) => {
          isStarted = true
          signal.addEventListener('abort', () => {
            reasons.push(signal.reason.name)
            reject(signal.reason)
          })
        }),
    })
    await keep(spool, numbered(1))
    await until(() => isStarted)
    expect(await spool.close({ timeoutMs: 10 })).toBe(1)
    expect(reasons).toEqual(['AbortError'])
    const { deliver, delivered } = recorder()
    await using next = await openSpool({ path: folder.path, deliver })
    // At once and not after a backoff.
    await until(() => next.size === 0)
    expect(idsOf(delivered)).toEqual(['n1'])
  })

  test.each([
    [{ timeout: 5 }, 'there is no `timeout` (did you mean `timeoutMs`?).'],
    [{ timeoutMs: Number.POSITIVE_INFINITY }, '`timeoutMs` must be a finite number.'],
    [{ timeoutMs: -1 }, '`timeoutMs` must be at least 0.'],
    [5, 'an object is needed, not a number.'],
  ])('refuses %o, and the spool stays open', async (options, problem) => {
    await using folder = await spoolFolder()
    await using spool = await openSpool({ path: folder.path, deliver: () => {} })
    await expect(spool.close(options as object)).rejects.toMatchObject({
      code: 'CONFIGURATION',
      message: `The delivery spool cannot work: ${problem}`,
    })
    await keep(spool, numbered(1))
  })

  test('waits for what is being kept, and refuses what comes later', async () => {
    await using folder = await spoolFolder()
    const spool = await openSpool({ path: folder.path, deliver: never })
    const kept = keep(spool, numbered(1))
    const closed = spool.close({ timeoutMs: 0 })
    await kept
    expect(await closed).toBe(1)
    const refused = { name: 'ClosedError', code: 'CLOSED' }
    await expect(keep(spool, numbered(2))).rejects.toMatchObject(refused)
    await expect(
      spool.keepInvalid(new InvalidDeliveryError('', { issues: [], body: '' })),
    ).rejects.toMatchObject(refused)
    await expect(spool.discardInvalid(1)).rejects.toMatchObject(refused)
    await expect(spool.invalid().next()).rejects.toMatchObject(refused)
  })
})

describe('room', () => {
  test('`maxBytes` bounds what waits: more is refused, the subscription is not harmed, and room comes back', async () => {
    await using folder = await spoolFolder()
    let finish = () => {}
    const finished = new Promise<void>((resolve) => (finish = resolve))
    await using spool = await openSpool({ path: folder.path, deliver: () => finished, maxBytes: 200_000 })
    const errors: unknown[] = []
    const receiver = new DeliveryReceiver({
      secrets: { token: 's' },
      onError: (error) => errors.push(error),
    }).onAny(spool.keep)
    const send = async (id: number) => {
      const body = JSON.stringify(numbered(id, { text: 'x'.repeat(5_000) }))
      return (await receiver.handle({ method: 'POST', headers: { token: 's' }, body })).status
    }
    for (let id = 0; id < 50; id += 1) expect(await send(id)).toBe(204)
    expect(spool.size).toBeGreaterThan(20)
    expect(spool.size).toBeLessThanOrEqual(40)
    expect(errors).toHaveLength(50 - spool.size)
    expect(errors[0]).toMatchObject({ name: 'SpoolError', reason: 'full' })
    finish()
    await until(() => spool.size === 0)
    await keep(spool, numbered(99))
  })
})
