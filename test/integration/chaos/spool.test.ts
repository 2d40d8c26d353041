/**
 * The whole way of a notification on real processes, while each of them is killed or stopped at random moments: load ->
 * receiver with spool -> Redis -> two workers. The programs are the examples, to the letter.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { freePort } from '../../support/listen.js'
import { Random } from '../../support/random.js'
import { seed } from '../../support/random-runs.js'
import { RedisServer } from '../../support/redis-server.js'
import { RunningProgram } from '../../support/running-program.js'
import { temporaryFolder } from '../../support/temporary-folder.js'
import { Load } from './load.js'

const token = 'chaos'
const connections = 32

/** A disturbance, and when everything was as before. */
interface Disturbance {
  readonly what: string
  readonly beganAt: number
  endedAt: number
}

/** An example as a process that can be killed, stopped and started again. */
class Program implements AsyncDisposable {
  readonly name: string
  readonly #start: () => RunningProgram
  #running: RunningProgram | undefined

  constructor(name: string, file: string, variables: Record<string, string>, onLine: (line: string) => void) {
    const folder = fileURLToPath(new URL('../../..', import.meta.url))
    this.name = name
    this.#start = () =>
      new RunningProgram(['--import', 'tsx', `examples/${file}`], { folder, variables, onLine })
  }

  /** Resolves when the program has printed its first line. */
  async restart(): Promise<void> {
    this.#running = this.#start()
    await this.#running.line(/^/)
  }

  stop(): void {
    this.#running?.kill('SIGSTOP')
  }

  resume(): void {
    this.#running?.kill('SIGCONT')
  }

  /** Ends the process at once; resolves when everything that it printed is read. */
  async kill(): Promise<void> {
    await this.#running?.[Symbol.asyncDispose]()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }
}

test('with the spool the work for every answered notification is done, whatever is killed', async () => {
  const random = Random.seeded()
  await using folder = await temporaryFolder()
  await using redis = await RedisServer.start({ appendOnly: true })
  /** When the workers did the work for each id. */
  const doneAt = new Map<string, number[]>()
  const [first, second] = ['worker 1', 'worker 2'].map(
    (name) =>
      new Program(name, 'spool-to-bullmq-worker.mts', { REDIS_URL: redis.url }, (line) => {
        const id = /^Done: (.+)$/.exec(line)?.[1]
        if (id !== undefined) doneAt.set(id, [...(doneAt.get(id) ?? []), Date.now()])
      }),
  ) as [Program, Program]
  await using _first = first
  await using _second = second
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
  await Promise.all([receiver, first, second].map((program) => program.restart()))

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
    else await target.restart()
    disturbance.endedAt = Date.now()
  }
  const kill = (program: Program) => () => disturb(program, 'kill', random.between(0, 500))
  const stop = (program: Program) => () => disturb(program, 'stop', random.between(300, 1_500))
  const killRedis = () => disturb(redis, 'kill', random.between(0, 3_000))
  const stopRedis = () => disturb(redis, 'stop', random.between(500, 4_000))
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
  // Until every id is done, or none has been for four times the lock of a job.
  let lost = [...promised]
  for (let quietMs = 0; lost.length > 0 && quietMs < 40_000; quietMs += 200) {
    const before = doneAt.size
    await sleep(200)
    if (doneAt.size > before) quietMs = 0
    lost = lost.filter((id) => !doneAt.has(id))
  }
  const twice = [...doneAt].filter(([, times]) => times.length > 1)
  console.log(
    `${sent} sent, ${answered.size} answered, ${notKept.size} reported as not kept, ` +
      `${doneAt.size} done, ${twice.length} of them more than once, ${disturbances.length} disturbances`,
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
