/** Every example, copied into a project of `npm init -y` with the packed package, and run by tsx as its top says. */
import { once } from 'node:events'
import { readdir } from 'node:fs/promises'
import { request } from 'node:http'
import { setTimeout } from 'node:timers/promises'
import { Redis } from 'ioredis'
import { NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { sampleDelivery } from 'notification-subscriber/webhooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { startBalancer } from '../support/balancer.js'
import { environmentOf } from '../support/emulator-environment.js'
import { eventually } from '../support/eventually.js'
import { freePort } from '../support/listen.js'
import { RedisServer } from '../support/redis-server.js'
import type { RunningProgram } from '../support/running-program.js'
import { installedProject } from './installed-project.js'
import { Relay } from './redis/relay.js'

const token = 'kR7vXq2mZt9WdL4y'

let project: Awaited<ReturnType<typeof installedProject>>
beforeAll(async () => {
  project = await installedProject()
}, 240_000)
afterAll(() => project?.[Symbol.asyncDispose]())

/** Examples that end by themselves, without a variable, with lines that they print. */
const ending: Readonly<Record<string, readonly RegExp[]>> = {
  'corporate-proxy.mts': [
    /^Subscription 1 was created through the proxy, which saw CONNECT emulator\.test:\d+/,
    /^With no authority: .*the certificate of its authority as `ca`/,
    /^With no password: .*407/,
  ],
  'quickstart.mts': [
    /^Received +subscription 1: alice has low energy on call call-1$/,
    /0 subscriptions are left/,
  ],
  'rotate-callback-token.mts': [/^Refused during the rotation: 0$/],
  'subscribe-and-unsubscribe.mts': [
    /^Subscription 1: notifications of alice go to https:/,
    /^Unsubscribed 1\./,
  ],
  'trace-opentelemetry.mts': [
    /^createSubscription \{"notification_subscriber\.method":"createSubscription","notification_subscriber\.attempts":3/,
    /^token, child of createSubscription /,
    /^deliver, linked to delivery \{.*"notification_subscriber\.notificationId"/,
  ],
}

/** Tested one by one below, because they need something from outside. */
const others = [
  'metrics-prometheus.mts',
  'receive.mts',
  'service.mts',
  'spool-and-work.mts',
  'spool-to-bullmq-worker.mts',
  'spool-to-bullmq.mts',
  'validate-only.mts',
]

const all = [...Object.keys(ending), ...others].sort()

test('the project is a CommonJS project with these examples', async () => {
  expect(project.manifest.type).toBe('commonjs')
  expect((await readdir(project.folder)).filter((file) => file.endsWith('ts')).sort()).toEqual(all)
})

test.each(all)('%s says at its top what to install, and how to run it', async (file) => {
  const text = await project.read(file)
  const imports = [...text.matchAll(/^(?:import|\} from) (?:.* from )?'([^'.][^']*)'$/gm)]
    .map(([, name = '']) => /^(@[^/]+\/)?[^/]+/.exec(name)?.[0] ?? '')
    .filter((name) => !name.startsWith('node:'))
  const [, installed = ''] = /^ \* {5}npm install (.+)$/m.exec(text) ?? []
  const names = installed.split(' ').map((name) => name.replace(/^\.\/(.+)-\*\.tgz$/, '$1'))
  expect(new Set(names)).toEqual(new Set([...imports, 'tsx']))
  // A Ctrl-C may come twice, as npx passes it on: the second would end who listened once.
  expect(text).not.toMatch(/once\('SIG/)
  expect(text).toMatch(new RegExp(`^ \\* {5}.*npx tsx (--env-file=.env )?${file}$`, 'm'))
})

describe('examples that end by themselves', () => {
  test.each(Object.entries(ending))('%s prints what it did, and what to do next', async (file, lines) => {
    await using example = project.start(file)
    expect(await example.ended, example.errors.join('\n')).toBe(0)
    expect(example.errors).toEqual([])
    for (const line of lines) expect(example.lines).toContainEqual(expect.stringMatching(line))
    expectNextStep(example)
  })

  test('subscribe-and-unsubscribe.mts says what to do if there is such a subscription', async () => {
    await using emulator = await startEmulator()
    const variables = await environmentOf(emulator, project.folder)
    await using client = new NotificationClient(emulator.clientOptions)
    const callbackUrl = 'https://app.example.com/notifications'
    await client.createSubscription({ notificationTypes: ['behavioral'], usernames: ['alice'], callbackUrl })
    await using example = project.start('subscribe-and-unsubscribe.mts', variables)
    expect(await example.ended).toBe(1)
    expect(example.errors).toEqual([expect.stringContaining('recreateIfExists')])
  })
})

describe('examples that listen until Ctrl-C', () => {
  const delivery = sampleDelivery('lowEnergyAgentOpened', { subscriptionId: 7, id: 'n1', headers: { token } })

  test.each([
    ['receive.mts', '/notifications', /^Subscription 7: alice has low energy on call call-1$/],
    ['validate-only.mts', '/notifications', /^Subscription 7: lowEnergyAgentOpened \{/],
    ['spool-and-work.mts', '/', /^Subscription 7: lowEnergyAgentOpened n1 is done$/],
  ])('%s takes a delivery with the secret that it made, and refuses others', async (file, path, line) => {
    await using example = await startServer(file)
    const secret = await madeSecret(example)
    expectNextStep(example)
    expect(await example.post(path, { ...delivery, headers: secret })).toBe(204)
    await example.line(line)
    expect(await example.post(path, { ...delivery, headers: {} })).toBe(401)
    expect(await example.post(path, { headers: secret, body: '{' })).toBe(204)
    const headers = { ...secret, connection: 'close', expect: '100-continue' }
    const unfinished = request(example.origin + path, { method: 'POST', headers })
    unfinished.flushHeaders()
    await once(unfinished, 'continue')
    void example.interrupt()
    await setTimeout(100)
    // Through npx, a Ctrl-C comes twice.
    void example.interrupt()
    unfinished.end(delivery.body)
    const [{ statusCode }] = await once(unfinished, 'response')
    expect(statusCode).toBe(204)
    expect(await example.ended).toBe(0)
    expectNextStep(example)
  })

  test('service.mts keeps its roster, works on a delivery, and reports its health', async () => {
    await using example = await startServer('service.mts')
    await example.line(/^Notification lowEnergyAgentOpened: .*"username":"agent-7"/)
    for (const path of ['/livez', '/readyz']) expect(await example.get(path)).toMatchObject({ status: 200 })
    const text = '{"counts":{"active":200,"unproven":0,"conflict":0,"failing":0},"problems":[],"waiting":0}'
    await eventually(async () => expect(await example.get('/status')).toEqual({ status: 200, text }))
    expect(await example.get('/')).toMatchObject({ status: 404 })
    expect(await example.post('/notifications', { ...delivery, headers: {} })).toBe(401)
    expect(await example.interrupt()).toBe(0)
    expectNextStep(example)
  })

  test('two of service.mts on one Redis behind a load balancer share 200 subscriptions, and both take callbacks', async () => {
    await using redis = await RedisServer.start()
    await using emulator = await startEmulator()
    await using balancer = await startBalancer(emulator.tls)
    const variables = {
      ...(await environmentOf(emulator, project.folder)),
      CALLBACK_URL: `https://127.0.0.1:${balancer.port}/notifications`,
      CALLBACK_TOKEN: token,
      REDIS_URL: redis.url,
    }
    await using first = await startServer('service.mts', { ...variables, SPOOL_PATH: './spool-1' })
    await using second = await startServer('service.mts', { ...variables, SPOOL_PATH: './spool-2' })
    for (const { origin } of [first, second]) balancer.origins.add(origin)
    await eventually(() => {
      expect(balancer.ready.size).toBe(2)
      expect(emulator.subscriptions).toHaveLength(200)
    })
    for (let count = 1; count <= 20; count++) {
      const results = await emulator.notify({ type: 'lowEnergyAgentOpened', username: `agent-${count}` })
      expect(results.map(({ status }) => status)).toEqual([204])
    }
    for (const each of [first, second]) {
      await each.line(/^Notification lowEnergyAgentOpened: /)
      expect(await each.interrupt()).toBe(0)
    }
    expect(emulator.subscriptions).toHaveLength(200)
  })

  test.each(['CALLBACK_URL', 'CALLBACK_TOKEN', 'REDIS_URL'])('service.mts asks for %s', async (missing) => {
    await using emulator = await startEmulator()
    const variables = {
      ...(await environmentOf(emulator, project.folder)),
      CALLBACK_URL: 'https://app.example.com/notifications',
      CALLBACK_TOKEN: token,
      REDIS_URL: 'redis://127.0.0.1:1',
      [missing]: '',
    }
    await using example = project.start('service.mts', variables)
    expect(await example.ended).toBe(1)
    expect(example.errors.join('\n')).toContain(`${missing} is missing`)
  })

  test('spool-to-bullmq.mts and its worker hand a delivery through Redis', async () => {
    await using redis = await RedisServer.start()
    const variables = { REDIS_URL: redis.url, SPOOL_PATH: './spool-of-bullmq' }
    await using receiver = await startServer('spool-to-bullmq.mts', variables)
    const headers = await madeSecret(receiver)
    expectNextStep(receiver)
    await using worker = project.start('spool-to-bullmq-worker.mts', variables)
    await worker.line(/^Working\./)
    // BullMQ refuses a colon in the id of a job.
    const { body } = sampleDelivery('lowEnergyAgentOpened', { id: 'n:1' })
    expect(await receiver.post('/', { body, headers })).toBe(204)
    await worker.line(/^Done: n:1$/)
    expect(await receiver.interrupt()).toBe(0)
    expect(await worker.interrupt()).toBe(0)
    for (const example of [receiver, worker]) expectNextStep(example)
  })

  test.each(['is gone', 'was never there'])('both end in time if Redis %s', async (how) => {
    await using redis = await RedisServer.start()
    if (how === 'was never there') await redis.kill()
    const variables = { REDIS_URL: redis.url, SPOOL_PATH: './spool-without-redis' }
    await using receiver = await startServer('spool-to-bullmq.mts', variables)
    await using worker = project.start('spool-to-bullmq-worker.mts', variables)
    if (how === 'is gone') await worker.line(/^Working\./)
    await redis.kill()
    for (const example of [receiver, worker]) {
      await eventually(() => expect(example.errors.join()).toContain('Redis: '))
      const since = performance.now()
      expect(await example.interrupt()).toBe(0)
      expect(performance.now() - since).toBeLessThan(30_000)
    }
  })

  test('both follow a failover to another Redis, although their connections stay open', async () => {
    await using old = await RedisServer.start()
    await using next = await RedisServer.start({ replicaOf: old.port })
    await using relay = await Relay.start({ port: old.port })
    const variables = { REDIS_URL: `redis://127.0.0.1:${relay.port}`, SPOOL_PATH: './spool-of-failover' }
    await using receiver = await startServer('spool-to-bullmq.mts', variables)
    await using worker = project.start('spool-to-bullmq-worker.mts', variables)
    await worker.line(/^Working\./)
    relay.target = next.port
    for (const [server, primary] of [
      [next, ['NO', 'ONE']],
      [old, ['127.0.0.1', next.port]],
    ] as const) {
      const admin = new Redis(server.url)
      await admin.call('REPLICAOF', ...primary)
      admin.disconnect()
    }
    const headers = await madeSecret(receiver)
    expect(await receiver.post('/', { ...delivery, headers })).toBe(204)
    await worker.line(/^Done: n1$/)
  })

  test('metrics-prometheus.mts has counters and gauges that a scrape reads', async () => {
    await using example = await startServer('metrics-prometheus.mts', { CALLBACK_TOKEN: token })
    expectNextStep(example)
    expect(await example.post('/notifications', { ...delivery, headers: {} })).toBe(401)
    expect(await example.post('/notifications', { ...delivery, body: '{' })).toBe(204)
    const counted = (event: string) => `notification_subscriber_events_total{event="${event}"} 1`
    const counts = ['delivery.received', 'callback.refused', 'delivery.invalid', 'subscription.restored']
    const samples = [
      ...[...counts, 'token.obtained', 'spool.delivered'].map(counted),
      'notification_spool_size 0',
      'notification_spool_oldest_age_seconds 0',
      'notification_keeper_subscriptions{state="active"} 2',
      'notification_keeper_problem{code="RECEIVER_SUSPECTED"} 1',
    ]
    await eventually(async () => {
      const { text } = await example.get('/metrics')
      expect(text.split('\n')).toEqual(expect.arrayContaining(samples))
    })
    expect(await example.interrupt()).toBe(0)
    expectNextStep(example)
  })
})

/** The last line that an example has printed says what to do next: a command, a file or a page. */
function expectNextStep({ lines }: RunningProgram): void {
  expect(lines.at(-1)).toMatch(/\bNext\b|\bnpx \S|\bcurl \S|\S\.mts|docs\/\S+\.md|\bLook at\b/)
}

/** The header with the secret, from the command that an example prints to copy. */
async function madeSecret(example: RunningProgram): Promise<{ token: string }> {
  const [, token = ''] = /'token: ([^']+)'/.exec(await example.line(/^ {2}curl /)) ?? []
  return { token }
}

/** Starts an example on a free port, and resolves when it has said where it listens. */
async function startServer(file: string, variables: Readonly<Record<string, string>> = {}) {
  const port = await freePort()
  const example = project.start(file, { ...variables, PORT: String(port) })
  await example.line(new RegExp(`http://127\\.0\\.0\\.1:${port}`))
  const origin = `http://127.0.0.1:${port}`
  return Object.assign(example, {
    origin,
    async post(path: string, { body, headers }: { body: string; headers: Record<string, string> }) {
      const init = { method: 'POST', body, headers: { connection: 'close', ...headers } }
      return (await fetch(origin + path, init)).status
    },
    async get(path: string) {
      const response = await fetch(origin + path, { headers: { connection: 'close' } })
      return { status: response.status, text: await response.text() }
    },
  })
}
