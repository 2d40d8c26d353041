/**
 * The whole way of a notification on real processes, while each of them is killed or stopped at random moments: load ->
 * receiver with spool -> Redis -> two workers. The programs are the examples, to the letter.
 */

import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { freePort } from '../../support/listen.js'
import { Random } from '../../support/random.js'
import { seed } from '../../support/random-runs.js'
import { RedisServer } from '../../support/redis-server.js'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { Load } from './support/load.js'
import { Program } from './support/program.js'

const token = 'chaos'
const connections = 32

/** A disturbance, and when everything was as before. */
interface Disturbance {
  readonly what: string
  readonly beganAt: number
  endedAt: number
}

/** Two workers, and what they did: for each id when. */
class Workers implements AsyncDisposable {
  readonly programs: readonly Program[]
  readonly doneAt = new Map<string, number[]>()

  constructor(redisUrl: string) {
    const onLine = (line: string) => {
      const id = /^Done: (.+)$/.exec(line)?.[1]
      if (id !== undefined) this.doneAt.set(id, [...(this.doneAt.get(id) ?? []), Date.now()])
    }
    const file = 'spool-to-bullmq-worker.mts'
    this.programs = ['worker 1', 'worker 2'].map(
      (name) => new Program(name, file, { REDIS_URL: redisUrl }, onLine),
    )
  }

  async start(): Promise<void> {
    await Promise.all(this.programs.map((program) => program.start()))
  }

  /** Waits until every id is done, or none has been for four times the lock of a job. */
  async finish(ids: ReadonlySet<string>): Promise<string[]> {
    let missing = [...ids]
    for (let quietMs = 0; missing.length > 0 && quietMs < 40_000; quietMs += 200) {
      const before = this.doneAt.size
      await sleep(200)
      if (this.doneAt.size > before) quietMs = 0
      missing = missing.filter((id) => !this.doneAt.has(id))
    }
    return missing
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.programs.map((program) => program.kill()))
  }
}

test('with the spool the work for every answered notification is done, whatever is killed', async () => {
  const random = Random.seeded()
  await using folder = await temporaryFolder()
  await using redis = await RedisServer.start({ appendOnly: true })
  await using workers = new Workers(redis.url)
  const port = await freePort()
  const notKept = new Set<string>()
  const env = {
    REDIS_URL: redis.url,
    CALLBACK_TOKEN: token,
    SPOOL_PATH: join(folder.path, 'spool'),
    PORT: String(port),
  }
  await using receiver = new Program('receiver', 'spool-to-bullmq.mts', env, (line) => {
    const id = /^Not kept: (\S+)/.exec(line)?.[1]
    if (id !== undefined) notKept.add(id)
  })
  await Promise.all([receiver.start(), workers.start()])

  const load = new Load({ port, token, connections, idPrefix: String(seed), pauseMs: 60 })

  const disturbances: Disturbance[] = []
  /** Kills a process and starts it again, or stops it and lets it go on. */
  const disturb = async (target: Program | RedisServer, how: 'kill' | 'stop', lastsMs: number) => {
    const what = `${how} ${target instanceof Program ? target.name : 'Redis'}`
    const disturbance: Disturbance = { what, beganAt: Date.now(), endedAt: Number.POSITIVE_INFINITY }
    disturbances.push(disturbance)
    await target[how]()
    await sleep(lastsMs)
    if (how === 'stop') target.resume()
    else await (target instanceof Program ? target.start() : target.restart())
    disturbance.endedAt = Date.now()
  }
  const kill = (program: Program) => () => disturb(program, 'kill', random.between(0, 500))
  const stop = (program: Program) => () => disturb(program, 'stop', random.between(300, 1_500))
  const killRedis = () => disturb(redis, 'kill', random.between(0, 3_000))
  const stopRedis = () => disturb(redis, 'stop', random.between(500, 4_000))
  const [first, second] = workers.programs as [Program, Program]
  const plan = random.shuffled([
    ...[kill(receiver), kill(receiver), kill(receiver), kill(receiver), kill(receiver), kill(receiver)],
    stop(receiver),
    ...[kill(first), kill(second), kill(first), stop(second)],
    ...[killRedis, killRedis, killRedis, stopRedis, stopRedis],
  ])
  for (const step of plan) {
    await sleep(random.between(300, 2_500))
    await step()
  }
  await load.stop()

  const { answered, sent } = load
  const promised = new Set([...answered].filter((id) => !notKept.has(id)))
  const lost = await workers.finish(promised)
  const twice = [...workers.doneAt].filter(([, times]) => times.length > 1)
  console.log(
    `${sent} sent, ${answered.size} answered, ${notKept.size} reported as not kept, ` +
      `${workers.doneAt.size} done, ${twice.length} of them more than once, ${disturbances.length} disturbances`,
  )
  expect(lost).toEqual([])
  // Each disturbance loses at most what was in flight.
  expect(answered.size).toBeGreaterThanOrEqual(sent - disturbances.length * connections)
  expect(answered.size).toBeGreaterThan(1_000)
  // What was in flight: begun shortly before, or while something was away.
  const wasInFlight = (at: number) =>
    disturbances.some(({ beganAt, endedAt }) => at >= beganAt - 1_000 && at <= endedAt + 1_000)
  expect(twice.filter(([, [firstAt = 0]]) => !wasInFlight(firstAt))).toEqual([])
  // Eight jobs at a time in each of two workers.
  expect(twice.length).toBeLessThanOrEqual(disturbances.length * 16)
})
