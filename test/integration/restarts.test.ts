/** The program of docs/keeper.md, to the letter, is restarted behind a load balancer while callbacks arrive. */
import { setTimeout as pause } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { SubscriptionKeeper } from 'notification-subscriber/keeper'
import { redisStore } from 'notification-subscriber/redis'
import { expect, test, vi } from 'vitest'
import { markdownBlocks } from '../documentation/code-blocks.js'
import { ProgramFolder } from '../documentation/programs.js'
import { startBalancer } from '../support/balancer.js'
import { environmentOf } from '../support/emulator-environment.js'
import { eventually } from '../support/eventually.js'
import { RedisServer } from '../support/redis-server.js'
import type { RunningProgram } from '../support/running-program.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const name = 'docs/keeper.md: In an app'
const token = 'kR7vXq2mZt9WdL4y'
const usernames = Array.from({ length: 3_000 }, (_, index) => `agent-${index + 1}`)

test('a restart refuses callbacks only while the process is gone, although its first sweep takes a minute', async () => {
  await using redis = await RedisServer.start()
  await using emulator = await startEmulator()
  await using balancer = await startBalancer(emulator.tls)
  await using files = await temporaryFolder()
  await using folder = await ProgramFolder.compile(
    markdownBlocks('docs/keeper.md').filter((block) => block.name === name),
  )
  const callbackUrl = `https://127.0.0.1:${balancer.port}/notifications`
  await subscribeAll()
  await folder.write('roster.txt', `${usernames.join('\n')}\n`)
  const variables = {
    ...(await environmentOf(emulator, files.path)),
    REDIS_URL: redis.url,
    CALLBACK_URL: callbackUrl,
    CALLBACK_TOKEN: token,
    // The last proofs are older than an interval: the first sweep proves every user, 50 a second.
    NODE_OPTIONS: '--import data:text/javascript,const{now}=Date;Date.now=()=>now()+1.2e6',
  }
  const ended: number[] = []
  emulator.on('ended', ({ subscriptionId }) => ended.push(subscriptionId))
  /** Requests of the first sweeps: an update proves that a subscription exists. */
  let proven = 0
  emulator.on('request', ({ operation }) => {
    if (operation === 'update') proven++
  })

  // Callbacks arrive all the time, to 50 of the users in turns.
  let isGone = true
  let hasEnded = false
  const answers = { present: new Set<number | undefined>(), gone: new Set<number | undefined>() }
  let answered = 0
  const delivering = (async () => {
    while (!hasEnded) {
      const wasGone = isGone
      const username = `agent-${(++answered % 50) + 1}`
      const [callback] = await emulator.notify({ type: 'lowEnergyAgentOpened', username })
      answers[wasGone || isGone ? 'gone' : 'present'].add(callback?.status)
      // Slower than three for each user.
      if (isGone) await pause(200)
    }
  })()
  const start = async () => {
    const { port, program } = await folder.startServer(name, variables)
    const origin = `http://127.0.0.1:${port}`
    balancer.origins.clear()
    balancer.origins.add(origin)
    await eventually(() => expect([...balancer.ready]).toEqual([origin]))
    isGone = false
    return program
  }
  const stop = async (program: RunningProgram) => {
    isGone = true
    program.child.kill('SIGTERM')
    expect(await program.ended).toBe(0)
  }
  /** Each user has got more callbacks than end a subscription when they fail, and the first sweep has not ended. */
  const later = async () => {
    const before = { answered, proven }
    const hasSwept = () => answered > before.answered + 200 && proven > before.proven + 20
    await vi.waitUntil(hasSwept, { timeout: 60_000 })
    expect(proven).toBeLessThan(usernames.length / 2)
  }

  try {
    await using first = await start()
    await later()
    await stop(first)
    await using second = await start()
    await later()
    await stop(second)
  } finally {
    hasEnded = true
    await delivering
  }
  expect([...answers.present]).toEqual([204])
  expect(answers.gone).toContain(503)
  expect(ended).toEqual([])
  expect(emulator.subscriptions).toHaveLength(usernames.length)

  /** The store is intact: it has every subscription. */
  async function subscribeAll(): Promise<void> {
    const connection = new Redis(redis.url)
    await using client = new NotificationClient(emulator.clientOptions)
    const keeper = new SubscriptionKeeper({
      client,
      name: 'coaching',
      store: redisStore(connection),
      usernames,
      notificationTypes: ['behavioral'],
      callbackUrl,
      parameters: { token },
      maxRequestsPerSecond: Number.POSITIVE_INFINITY,
      concurrency: 32,
    })
    expect(await keeper.sweep()).toMatchObject({ created: usernames.length, failed: [] })
    await keeper.stop()
    connection.disconnect()
  }
})
