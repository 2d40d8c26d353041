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

const token = 'chaos'
const connections = 32
const root = fileURLToPath(new URL('../../..', import.meta.url))

type Program = ReturnType<typeof exampleOf>

/** An example as a process that can be killed, stopped and started again. */
function exampleOf(file: string, variables: Record<string, string>, onLine: (line: string) => void) {
  let running: RunningProgram | undefined
  /** Resolves when everything that was printed is read. */
  const kill = async () => running?.[Symbol.asyncDispose]()
  return {
    /** Resolves when the program has printed its first line. */
    async restart() {
      const options = { folder: root, variables, onLine }
      running = new RunningProgram(['--import', 'tsx', `examples/${file}`], options)
      await running.line(/^/)
    },
    stop: () => running?.kill('SIGSTOP'),
    resume: () => running?.kill('SIGCONT'),
    kill,
    [Symbol.asyncDispose]: kill,
  }
}

/** The status of the answer to a callback, which is sent once; of a failure its code. */
async function send(port: number, id: string): Promise<unknown> {
  const notification = { id, time: Date.now(), ver: '1.0', type: 'cxScoreUpdated', payload: { score: 1 } }
  const body = JSON.stringify({ subscriptionId: 1, notification })
  return fetch(`http://127.0.0.1:${port}`, { method: 'POST', headers: { token }, body }).then(
    ({ status }) => status,
    ({ cause }) => cause?.code,
  )
}

/** The service as far as it matters here: callbacks over connections that stay open, until it is stopped. */
function startLoad(port: number) {
  const load = { sent: 0, answered: new Set<string>(), stop }
  let isStopped = false
  const sendAll = async () => {
    while (!isStopped) {
      const id = `${seed}-${load.sent++}`
      let outcome = await send(port, id)
      // The receiver is starting, and has not seen the callback.
      for (; outcome === 'ECONNREFUSED'; outcome = await send(port, id)) await sleep(100)
      if (outcome === 204) load.answered.add(id)
      await sleep(60)
    }
  }
  const ended = Promise.all(Array.from({ length: connections }, sendAll))
  /** Resolves when what was begun is answered or lost. */
  async function stop(): Promise<void> {
    isStopped = true
    await ended
  }
  return load
}

test('with the spool the work for every answered notification is done, whatever is killed', async () => {
  const random = Random.seeded()
  await using folder = await temporaryFolder()
  await using redis = await RedisServer.start({ appendOnly: true })
  /** When the workers did the work for each id. */
  const doneAt = new Map<string, number[]>()
  const worker = () =>
    exampleOf('spool-to-bullmq-worker.mts', { REDIS_URL: redis.url }, (line) => {
      const id = /^Done: (.+)$/.exec(line)?.[1]
      if (id !== undefined) doneAt.set(id, [...(doneAt.get(id) ?? []), Date.now()])
    })
  await using first = worker()
  await using second = worker()
  const port = await freePort()
  const notKept = new Set<string>()
  const env = {
    REDIS_URL: redis.url,
    CALLBACK_TOKEN: token,
    SPOOL_PATH: join(folder.path, 'spool'),
    PORT: String(port),
  }
  await using receiver = exampleOf('spool-to-bullmq.mts', env, (line) => {
    const id = /^Not kept: (\S+)/.exec(line)?.[1]
    if (id !== undefined) notKept.add(id)
  })
  await Promise.all([receiver, first, second].map((program) => program.restart()))

  const load = startLoad(port)

  /** When each disturbance began, and when everything was as before. */
  const disturbances: (readonly [number, number])[] = []
  /** Kills a process and starts it again, or stops it and lets it go on. */
  const disturb = async (target: Program | RedisServer, how: 'kill' | 'stop', lastsMs: number) => {
    const beganAt = Date.now()
    await target[how]()
    await sleep(lastsMs)
    if (how === 'stop') target.resume()
    else await target.restart()
    disturbances.push([beganAt, Date.now()])
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
  // Until every id is done, or none has been for four times the lock of a job.
  let lost = [...answered].filter((id) => !notKept.has(id))
  for (let quietMs = 0; lost.length > 0 && quietMs < 40_000; quietMs += 200) {
    const before = doneAt.size
    await sleep(200)
    if (doneAt.size > before) quietMs = 0
    lost = lost.filter((id) => !doneAt.has(id))
  }
  expect(lost).toEqual([])
  // Each disturbance loses at most what was in flight.
  expect(answered.size).toBeGreaterThanOrEqual(sent - disturbances.length * connections)
  expect(answered.size).toBeGreaterThan(1_000)
  // What was in flight: begun shortly before, or while something was away.
  const wasInFlight = (at: number) =>
    disturbances.some(([beganAt, endedAt]) => at >= beganAt - 1_000 && at <= endedAt + 1_000)
  const twice = [...doneAt.values()].filter(({ length }) => length > 1)
  expect(twice.filter(([firstAt = 0]) => !wasInFlight(firstAt))).toEqual([])
  // Eight jobs at a time in each of two workers.
  expect(twice.length).toBeLessThanOrEqual(disturbances.length * 16)
})
