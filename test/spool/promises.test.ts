/** The promises of docs/spool.md on disks that fail and damage what they were given, and with very many deliveries. */
import { readFileSync } from 'node:fs'
import * as fs from 'node:fs/promises'
import { readdir, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { DeliverySpool } from 'notification-subscriber/spool'
import { expect } from 'vitest'
import { notAttempted, stateOf } from '../../src/spool/format.js'
import { heapUsed } from '../support/heap.js'
import { Random } from '../support/random.js'
import {
  filesWith,
  idsOf,
  keep,
  keepInvalid,
  never,
  numbered,
  recorder,
  segmentOf,
  spoolFolder,
  test,
  until,
} from './support.js'

function integer(random: Random, from: number, to: number): number {
  return Math.floor(random.between(from, to + 1))
}

/** Keeps deliveries in groups; returns the ids of those whose `keep` resolved. */
async function keepMany(
  spool: Parameters<typeof keep>[0],
  count: number,
  together: number,
): Promise<string[]> {
  const kept: string[] = []
  for (let id = 0; id < count; id += together) {
    const group = Array.from({ length: Math.min(together, count - id) }, (_, index) => numbered(id + index))
    const results = await Promise.allSettled(group.map((delivery) => keep(spool, delivery)))
    kept.push(...idsOf(group.filter((_, index) => results[index]?.status === 'fulfilled')))
  }
  return kept
}

test('a disk that fails once, at any of its calls, loses nothing that was acknowledged', async () => {
  /** @returns the number of calls */
  const failAt = async (failing: number): Promise<number> => {
    let calls = 0
    await using folder = await spoolFolder()
    const files = filesWith({
      async before(operation, file, args) {
        calls += 1
        if (calls !== failing) return
        // A disk that gets full writes the first bytes.
        if (operation === 'write') {
          const [bytes, from, length, position] = args as [Buffer, number, number, number]
          await using handle = await fs.open(file, 'r+')
          const isAppend = position === (await handle.stat()).size
          if (isAppend) await handle.write(bytes, from, length >> 1, position)
        }
        throw Object.assign(new Error(`EIO: call ${failing}`), { code: 'EIO' })
      },
    })
    const done = recorder(({ notification: { id } }) => {
      if (id === 'n2') throw new Error('away')
      return id === 'n4' ? never() : undefined
    })
    await folder.leave(numbered('left'))
    const first = await folder.open({ deliver: done.deliver }, files).catch((error) => error)
    if (!(first instanceof DeliverySpool)) {
      expect(first).toMatchObject({ code: 'CONFIGURATION' })
      return calls
    }
    const kept = ['nleft', ...(await keepMany(first, 6, 2))]
    await keepInvalid(first, 'x').catch((error) => expect(error).toMatchObject({ code: 'SPOOL' }))
    await first.close({ timeoutMs: 10 })
    const found = new Set([...idsOf(done.delivered), ...(await folder.drain())])
    expect(kept.filter((id) => !found.has(id))).toEqual([])
    expect(folder.damages).toEqual([])
    return calls
  }
  const calls = await failAt(0)
  expect(calls).toBeGreaterThan(30)
  await Promise.all(Array.from({ length: calls }, (_, index) => failAt(index + 1)))
})

test('of 300 damaged folders each opens, alters no delivery, loses no whole one, and reports the damage', async () => {
  const random = Random.seeded()
  for (let round = 0; round < 300; round += 1) {
    await using folder = await spoolFolder()
    await fs.mkdir(folder.path, { mode: 0o700 })
    const segments = [0, 1, 2].map((index) => {
      const deliveries = Array.from({ length: 8 }, (_, id) =>
        numbered(`${index}-${id}`, { text: 'x'.repeat(id * 30) }),
      )
      return { ...segmentOf((index + 1) * 1_000, deliveries), deliveries }
    })
    const [victim, ...others] = segments as [(typeof segments)[0], ...typeof segments]
    const { content } = victim
    // Every third is done, and has dashes for its state.
    const isDone = (index: number) => index % 3 === 0
    let start = 1
    for (const [index, line] of victim.lines.entries()) {
      if (isDone(index)) content.write(stateOf(notAttempted, true), start, 'latin1')
      start += Buffer.byteLength(line)
    }
    const at = integer(random, 0, content.length - 1)
    const end = Math.min(content.length, at + integer(random, 1, 600))
    const kind = round % 6
    let [name, bytes] = [victim.name, Buffer.from(content)]
    if (kind === 0) bytes[at] = (bytes[at] ?? 0) ^ (1 << integer(random, 0, 7))
    if (kind === 1) bytes.fill(0, at, end)
    if (kind === 2) for (let index = at; index < end; index += 1) bytes[index] = integer(random, 0, 255)
    if (kind === 3) bytes = bytes.subarray(0, at)
    if (kind === 4) content.copy(bytes, at, 0, end - at)
    if (kind === 5) name = name.replace(/\d(?=-)/, (digit) => String((Number(digit) + 1) % 10))
    await writeFile(join(folder.path, name), bytes)
    for (const each of others) await writeFile(join(folder.path, each.name), each.content)
    const { deliver, delivered } = recorder()
    const spool = await folder.open({ deliver })
    await until(() => spool.size === 0)
    await spool.close()
    const sent = new Map(
      segments.flatMap((each) => each.deliveries).map((each) => [each.notification.id, each]),
    )
    for (const each of delivered) expect(each).toEqual(sent.get(each.notification.id))
    const ids = idsOf(delivered)
    expect(new Set(ids).size).toBe(ids.length)
    let offset = 0
    const whole = victim.deliveries.filter((_, index) => {
      const [from, to] = [offset, offset + Buffer.byteLength(victim.lines[index] ?? '')]
      offset = to
      return kind !== 5 && !isDone(index) && bytes.subarray(from, to).equals(content.subarray(from, to))
    })
    const expected = [...whole, ...others.flatMap(({ deliveries }) => deliveries)]
    expect(idsOf(expected).filter((id) => !ids.includes(id))).toEqual([])
    const isDamaged = kind === 5 || !bytes.equals(content)
    expect(folder.damages.length > 0).toBe(isDamaged)
    expect(await readdir(folder.path)).toHaveLength(isDamaged ? 1 : 0)
  }
})

/** Notes the longest time for which this thread works at one go, in milliseconds of the processor, which Linux says. */
function longestStretch() {
  const cpuMs = () =>
    process.platform === 'linux'
      ? Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]) / 1e6
      : 0
  let longest = 0
  let before = cpuMs()
  let timer: NodeJS.Immediate | undefined
  const note = () => {
    const now = cpuMs()
    longest = Math.max(longest, now - before)
    before = now
    timer = setImmediate(note)
  }
  note()
  return () => {
    clearImmediate(timer)
    return longest
  }
}

test('100,000 waiting deliveries take little memory, come in their order, and never hold up other work for 50 ms', async (folder) => {
  const before = heapUsed()
  const first = await folder.open({ deliver: never })
  const endKeeping = longestStretch()
  await keepMany(first, 100_000, 500)
  expect(endKeeping()).toBeLessThan(50)
  expect(heapUsed() - before).toBeLessThan(12 * 2 ** 20)
  await first.close({ timeoutMs: 0 })
  let next = 0
  const deliver = ({ notification }: { notification: { id: string } }) => {
    if (notification.id === `n${next}`) next += 1
  }
  const endOpening = longestStretch()
  const second = await folder.open({ deliver, concurrency: 1 })
  expect(endOpening()).toBeLessThan(50)
  expect(second.size).toBe(100_000)
  expect(heapUsed() - before).toBeLessThan(12 * 2 ** 20)
  await until(() => next > 2_000)
  await second.close({ timeoutMs: 0 })
})

test('of a failed delivery memory holds no text until the next attempt', async (folder) => {
  let failures = 0
  const deliver = () => {
    failures += 1
    throw new Error('away')
  }
  await using spool = await folder.open({ deliver })
  const before = heapUsed()
  const text = 'x'.repeat(2 ** 20)
  for (let id = 0; id < 40; id++) await keep(spool, numbered(id, { text }))
  await until(() => failures >= 32)
  expect(heapUsed() - before).toBeLessThan(10 * 2 ** 20)
})

test('an outage makes no files: a failed delivery stays where it is, and moves once most of its segment is done', async (folder) => {
  const text = 'x'.repeat(10_000)
  const isStuck = ({ notification }: { notification: { id: string } }) =>
    Number(notification.id.slice(1)) % 40 === 0
  const deliver = (delivery: Parameters<typeof isStuck>[0]) => {
    if (isStuck(delivery)) throw new Error('away')
  }
  await using spool = await folder.open({ deliver, concurrency: 100 })
  await Promise.all(Array.from({ length: 400 }, (_, id) => keep(spool, numbered(id, { text }))))
  await until(() => spool.size === 10)
  const bytes = async () => {
    const sizes = (await folder.names()).map(async (name) => (await stat(join(folder.path, name))).size)
    return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0)
  }
  expect(await folder.names()).toHaveLength(4)
  expect(await bytes()).toBeGreaterThan(4 * 2 ** 20 - 10 ** 6)
  // The open segment, and twice the ten deliveries.
  await expect.poll(bytes, { timeout: 30_000 }).toBeLessThan(2 ** 20 + 2 * 10 * 10_300)
  // While one moves, it counts in both places.
  await until(() => spool.size === 10)
})

test('the trace of a callback is kept with its delivery, if it is one', async (folder) => {
  const trace = `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01`
  const first = await folder.open({ deliver: never })
  for (const sent of [trace, undefined, `${trace} `, 'a\nb', trace.toUpperCase()]) {
    const header = (name: string) => (name === 'traceparent' ? sent : undefined)
    await first.keep({}, { delivery: numbered(1), header })
  }
  await first.close({ timeoutMs: 0 })
  const seen: unknown[] = []
  await using second = await folder.open({ deliver: (_delivery, given) => void seen.push(given.traceparent) })
  await until(() => second.size === 0)
  expect(seen).toEqual([trace, undefined, undefined, undefined, undefined])
})
