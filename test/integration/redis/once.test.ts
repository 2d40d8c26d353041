/** `once` in 20 processes on a real Redis: every notification comes twice, and processes are killed in between. */
import { type ChildProcess, spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { RedisServer } from '../../support/redis-server.js'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { bundleProgram } from './bundle-program.js'

test('5,000 notifications that come twice are done once, or once more after a kill; none is left out', async () => {
  await using server = await RedisServer.start()
  await using folder = await temporaryFolder()
  const program = await bundleProgram('once-process', folder.path)
  const redis = new Redis(server.url)
  const ids = Array.from({ length: 5_000 }, (_, index) => `${index}`)
  await redis.rpush('queue', ...ids.flatMap((id) => [id, id]))

  const processes = new Map<string, ChildProcess>()
  const start = (name: string) =>
    processes.set(name, spawn(process.execPath, [program, server.url, name, '500'], { stdio: 'inherit' }))
  for (let index = 0; index < 20; index += 1) start(`first-${index}`)
  // What a killed process had taken comes again, as from every queue.
  const taken = new Map<string, number>()
  const kill = async (name: string) => {
    const child = processes.get(name)
    const ended = new Promise((resolve) => child?.once('close', resolve))
    child?.kill('SIGKILL')
    await ended
    processes.delete(name)
    const left = await redis.lrange(`taken:${name}`, 0, -1)
    for (const id of left) taken.set(id, (taken.get(id) ?? 0) + 1)
    if (left.length > 0)
      await redis
        .multi()
        .rpush('queue', ...left)
        .del(`taken:${name}`)
        .exec()
  }
  try {
    for (let round = 0; round < 8; round += 1) {
      while ((await redis.hlen('done')) < (round + 1) * 500) await sleep(10)
      await kill(`first-${round}`)
      start(`second-${round}`)
    }
    const isBusy = async () => {
      const lists = ['queue', ...[...processes.keys()].map((name) => `taken:${name}`)]
      const lengths = await Promise.all(lists.map((list) => redis.llen(list)))
      return lengths.some((length) => length > 0)
    }
    while (await isBusy()) await sleep(50)
  } finally {
    for (const child of processes.values()) child.kill('SIGKILL')
  }
  const done = await redis.hgetall('done')
  redis.disconnect()
  expect(Object.keys(done)).toHaveLength(5_000)
  expect(taken.size).toBeGreaterThan(0)
  const tooOften = Object.entries(done).filter(([id, count]) => Number(count) > 1 + (taken.get(id) ?? 0))
  expect(tooOften).toEqual([])
})
