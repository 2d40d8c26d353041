import { InvalidDeliveryError } from 'notification-subscriber'
import { describe, expect } from 'vitest'
import * as z from 'zod'
import {
  callBack,
  eventLog,
  idsOf,
  inVirtualTime,
  keep,
  keepInvalid,
  letterIdOf,
  lettersOf,
  numbered,
  recorder,
  test,
  until,
} from './support.js'

/** A later version of the app, which knows a payload better. */
const payloads = { cxScoreUpdated: z.object({ score: z.number() }) }

/** As deep as a body parser lets through. */
function nested(levels: number): object {
  let value = {}
  for (let level = 0; level < levels; level += 1) value = { value }
  return value
}

/** What JSON cannot hold. Node.js 26 writes any depth. */
const unwritable = [{ amount: 5n }, nested(50_000)].filter((value) => {
  try {
    return JSON.stringify(value) === undefined
  } catch {
    return true
  }
})

test('deliveries that JSON cannot hold are refused with a sentence, and the callback is answered', async (folder) => {
  const { deliver, delivered } = recorder()
  await using spool = await folder.open({ deliver })
  const errors: unknown[] = []
  for (const value of [...unwritable, nested(990)]) {
    const body = numbered(1, { value })
    expect(await callBack(spool, body, { onError: (error) => errors.push(error) })).toBe(204)
  }
  expect(errors).toMatchObject(unwritable.map(() => ({ code: 'INVALID_DELIVERY' })))
  // Whatever was kept is delivered.
  await until(() => spool.size === 0)
  expect(delivered).toEqual([numbered(1, { value: nested(990) })])
  expect(await lettersOf(spool)).toEqual([])
})

describe('deliveries that can no longer be read', () => {
  test('become dead letters, are reported, and delay no other', async (folder) => {
    await folder.leave(numbered(1), numbered(2, { score: 1 }))
    const { logger, logged } = eventLog(/unreadable/)
    const { deliver, delivered } = recorder()
    await using spool = await folder.open({ deliver: deliver as never, payloads, logger })
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n2'])
    const [letter, ...others] = await lettersOf(spool)
    expect(others).toEqual([])
    expect(letter).toEqual({
      id: expect.any(Number),
      receivedAt: expect.any(Number),
      body: JSON.stringify(numbered(1)),
      bodyText: JSON.stringify(numbered(1)),
      reason: 'invalid',
      issues: [expect.objectContaining({ path: ['notification', 'payload', 'score'] })],
    })
    const { id: letterId, receivedAt, issues } = letter ?? {}
    await expect.poll(logged).toEqual([{ event: 'spool.unreadable', letterId, receivedAt, issues }])
  })

  test('are delivered after `retry` by a process that can read them', async (folder) => {
    const trace = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
    const strict = await folder.open({ payloads })
    await strict.keep({}, { delivery: numbered(1), header: () => trace })
    await until(() => strict.size === 0)
    const [letter] = await lettersOf(strict)
    const id = letter?.id ?? 0
    await expect(strict.retry(id)).rejects.toBeInstanceOf(InvalidDeliveryError)
    expect(await lettersOf(strict)).toEqual([letter])
    await strict.close()
    const delivered: unknown[] = []
    await using spool = await folder.open({
      deliver: (delivery, { traceparent }) => void delivered.push([delivery, traceparent]),
    })
    expect(await spool.retry(id)).toBe(true)
    // It waits since it was received.
    expect(spool.oldestReceivedAt).toBe(letter?.receivedAt)
    expect(await spool.retry(id)).toBe(false)
    await until(() => spool.size === 0)
    expect(delivered).toEqual([[numbered(1), trace]])
    expect(await lettersOf(spool)).toEqual([])
  })
})

describe('bodies that are no deliveries', () => {
  test('are kept to the letter: text, bytes and values, with when and why, also for the next process', async (folder) => {
    const texts = ['', '{"a":', 'ü\u0000\n\r\u2028']
    const bodies = [...texts, Buffer.from([0, 255, 10]), { a: [1, null, 'x'] }, null, 5, [], false]
    const startedAt = Date.now()
    {
      await using spool = await folder.open()
      for (const body of bodies) await keepInvalid(spool, body)
      expect(spool.size).toBe(0)
    }
    await using spool = await folder.open()
    const letters = await lettersOf(spool)
    expect(letters.map(({ body }) => body)).toEqual(bodies)
    expect(letters.map(({ bodyText }) => bodyText)).toEqual([
      ...texts,
      '\u0000\uFFFD\n',
      '{"a":[1,null,"x"]}',
      'null',
      '5',
      '[]',
      'false',
    ])
    const issues = [{ path: ['x', 0], message: 'm' }]
    for (const { id: _id, body: _body, bodyText: _text, receivedAt, ...why } of letters) {
      expect(why).toEqual({ reason: 'invalid', issues })
      expect(receivedAt).toBeGreaterThanOrEqual(startedAt)
      expect(receivedAt).toBeLessThanOrEqual(Date.now())
    }
    expect(new Set(letters.map(({ id }) => id)).size).toBe(bodies.length)
  })

  test('come from the receiver by `onInvalid`, and go back with `retry` if they are deliveries after all', async (folder) => {
    const { deliver, delivered } = recorder()
    await using spool = await folder.open({ deliver })
    const bodies = [
      'no JSON',
      `\uFEFF ${JSON.stringify(numbered(1), null, 2)}`,
      Buffer.from(JSON.stringify(numbered(2))),
    ]
    for (const body of bodies) await callBack(spool, body, { onInvalid: spool.keepInvalid, payloads })
    const letters = await lettersOf(spool)
    expect(letters.map(({ body }) => body)).toEqual(bodies)
    const [none, text, bytes] = letters.map(({ id }) => id)
    await expect(spool.retry(none ?? 0)).rejects.toBeInstanceOf(InvalidDeliveryError)
    expect(await spool.retry(text ?? 0)).toBe(true)
    expect(await spool.retry(bytes ?? 0)).toBe(true)
    await until(() => spool.size === 0)
    expect(delivered).toEqual([numbered(1), numbered(2)])
    expect(await lettersOf(spool)).toMatchObject([{ body: 'no JSON' }])
  })

  test('take 16 MiB at most: the oldest are dropped first, the newest and kept deliveries stay', async (folder) => {
    await folder.leave(numbered(1))
    await using spool = await folder.open({ payloads })
    await until(() => spool.size === 0)
    for (let number = 0; number < 20; number += 1) {
      await keepInvalid(spool, `${number} `.padEnd(2 ** 20, 'x'))
    }
    const [kept, ...letters] = await lettersOf(spool)
    expect(kept).toMatchObject({ body: JSON.stringify(numbered(1)) })
    const numbers = letters.map(({ body }) => Number.parseInt(String(body), 10))
    expect(numbers.at(-1)).toBe(19)
    expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, index) => 20 - numbers.length + index))
    expect(numbers.length).toBeGreaterThanOrEqual(14)
    expect(numbers.length).toBeLessThanOrEqual(16)
  })

  test('are gone when they are discarded, also while they are read; an unknown id gives false', async (folder) => {
    await using spool = await folder.open()
    for (const body of ['a', 'b', 'c']) await keepInvalid(spool, body)
    const seen: unknown[] = []
    for await (const { id, body } of spool.deadLetters()) {
      seen.push(body)
      if (body !== 'b') expect(await spool.discard(id)).toBe(true)
    }
    expect(seen).toEqual(['a', 'b', 'c'])
    expect(await spool.discard(12_345)).toBe(false)
    expect(await spool.retry(12_345)).toBe(false)
    expect(await lettersOf(spool)).toMatchObject([{ body: 'b' }])
  })
})

describe('deliveries that are stuck', () => {
  // The tenth failure comes after eight minutes of backoff.
  test("are dead letters after `'dead-letter'`, count no longer as waiting, and start anew with `retry`", (folder) =>
    inVirtualTime(async () => {
      const receivedAt = Date.now()
      let isWorking = false
      const attempts: number[] = []
      const { logger, logged } = eventLog()
      const options = {
        logger,
        deliver: () => {
          if (!isWorking) throw new TypeError('no such column')
        },
        onStuck: (stuck: { attempts: number }) => {
          attempts.push(stuck.attempts)
          return Promise.resolve('dead-letter')
        },
      }
      {
        await using spool = await folder.open(options)
        await keep(spool, numbered(1))
        await until(() => spool.size === 0)
        expect(spool.oldestReceivedAt).toBeUndefined()
      }
      expect(attempts).toEqual([10])
      isWorking = true
      await using spool = await folder.open(options)
      const [letter, ...others] = await lettersOf(spool)
      expect(others).toEqual([])
      expect(letter).toEqual({
        id: expect.any(Number),
        receivedAt: expect.toSatisfy((at: number) => at >= receivedAt && at < receivedAt + 10_000),
        body: JSON.stringify(numbered(1)),
        bodyText: JSON.stringify(numbered(1)),
        reason: 'stuck',
        error: { name: 'TypeError', message: 'no such column' },
      })
      const id = letter?.id ?? 0
      const of1 = { notificationId: 'n1' }
      const lettered = { event: 'spool.dead-lettered', letterId: id, attempts: 10, ...of1 }
      expect(logged()).toContainEqual(expect.objectContaining(lettered))
      expect(await spool.retry(id)).toBe(true)
      await until(() => spool.size === 0)
      const delivered = { event: 'spool.delivered', attempt: 1, ...of1 }
      expect(logged()).toContainEqual(expect.objectContaining(delivered))
    }))

  test('two calls of `retry` for one letter deliver it once', async (folder) => {
    const { deliver, delivered } = recorder()
    await using spool = await folder.open({ deliver })
    await keepInvalid(spool, numbered(1))
    const id = await letterIdOf(spool)
    expect((await Promise.all([spool.retry(id), spool.retry(id)])).toSorted()).toEqual([false, true])
    await until(() => spool.size === 0)
    expect(idsOf(delivered)).toEqual(['n1'])
    expect(folder.damages).toEqual([])
  })
})
