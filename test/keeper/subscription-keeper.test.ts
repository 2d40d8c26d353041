/** The keeper on the emulator: what a user sees of it. */

import { AsyncLocalStorage } from 'node:async_hooks'
import { tracingChannel } from 'node:diagnostics_channel'
import { ConfigurationError, InvalidRequestError, NotificationClient } from 'notification-subscriber'
import type { SubscriptionKeeper } from 'notification-subscriber/keeper'
import { describe, expect, onTestFinished, vi } from 'vitest'
import { failureOf } from '../support/failure.js'
import { expectPage } from '../support/message-page.js'
import { recordingLogger } from '../support/recording-logger.js'
import { testWith } from '../support/test-with.js'
import { Bench, ownClient } from './bench.js'

const test = testWith(Bench.start)

async function refusalOf(make: () => SubscriptionKeeper): Promise<ConfigurationError> {
  const error = await failureOf(Promise.resolve().then(make))
  return error instanceof ConfigurationError ? error : expect.fail(String(error))
}

const everyUser = { alice: 'first', bob: 'first', carol: 'first' }

test('a sweep subscribes every user, each with a subscription of their own, and restores what the service ends', async (bench) => {
  const keeper = bench.keeper()
  const nothing = { restored: 0, removed: 0, failed: [], problems: [] }
  expect(await keeper.sweep()).toEqual({ wanted: 3, active: 3, created: 3, ...nothing })
  expect(bench.subscribed).toEqual(everyUser)
  const { subscriptionId, state, lastProvenAt } = keeper.subscription('bob') ?? {}
  expect([subscriptionId, state]).toEqual([bench.idOf('bob'), 'active'])
  const counts = { active: 3, unproven: 0, conflict: 0, failing: 0 }
  expect(keeper.status()).toMatchObject({ isReady: true, counts })
  expect(bench.gaps).toEqual([])
  bench.emulator.endSubscription(subscriptionId ?? 0)
  const before = Date.now()
  expect(await keeper.sweep()).toMatchObject({ active: 3, created: 0, restored: 1 })
  expect(bench.subscribed).toEqual(everyUser)
  const restoredAt = bench.gaps[0]?.restoredAt
  const gap = {
    username: 'bob',
    subscriptionId: bench.idOf('bob'),
    lastProvenAt,
    restoredAt,
    cause: 'ended',
  }
  expect(bench.gaps).toEqual([gap])
  expect(restoredAt).toBeGreaterThanOrEqual(before)
  const suspected = { code: 'RECEIVER_SUSPECTED', usernames: ['bob'], resolved: false }
  expect(bench.problems).toMatchObject([suspected])
  expect(keeper.subscription('bob')?.restoredCount).toBe(1)
})

test.for([{ allowRemovals: true }, { onprogress() {} }, { onProgress: 'yes' }])(
  'a sweep with the options %j is refused, and does nothing',
  async (bench, options) => {
    await expect(bench.keeper().sweep(options as object)).rejects.toThrow(InvalidRequestError)
    expect(bench.emulator.requests).toEqual([])
  },
)

test('options that cannot work are refused together, each with what would do', async (bench) => {
  const wrong: object = {
    client: {},
    store: {},
    notificationTypes: ['silenceHighOpened'],
    sweepIntervalMs: 0,
    logger: true,
    username: ['alice'],
  }
  const { issues, message } = await refusalOf(() => bench.keeper(wrong))
  const places = issues.map(({ path }) => path.join('.'))
  expect(places).toEqual(['client', 'store', 'notificationTypes.0', 'sweepIntervalMs', 'logger', ''])
  await expectPage('keeper-options', { 'several problems at once': message })
})

test.for([null, 'compare'])('a store whose compareAndSet is %j is refused', async (bench, compareAndSet) => {
  const store: unknown = Object.assign(new Map(), { compareAndSet })
  expect(() => bench.keeper({ store: store as Map<string, string> })).toThrow(ConfigurationError)
})

test('a name with half a surrogate pair is refused, and has no record', async (bench) => {
  const keeper = bench.keeper({ usernames: ['\ud800', '\ud801', 'alice'] })
  expect(await keeper.sweep()).toMatchObject({ active: 1, failed: [{}, {}] })
  expect(bench.problems.map(({ code }) => code)).toEqual(['ROSTER', 'ROSTER'])
  expect([...bench.store.keys()].filter((key) => key.includes(':user:'))).toHaveLength(1)
  expect(await keeper.unsubscribeAll()).toMatchObject({ failed: [], problems: [] })
})

describe('what the client would refuse', () => {
  test.for([
    'https://app.example.com',
    'https://App.example.com/n',
    'https://app.example.com/{tenant}',
    'https://app.example.com/n#top',
  ])(
    'as a callback URL, such as %s, the keeper refuses at once and in the same words',
    async (bench, callbackUrl) => {
      const { issues } = await refusalOf(() => bench.keeper({ callbackUrl }))
      const input = { notificationTypes: ['behavioral' as const], usernames: ['alice'], callbackUrl }
      await expect(bench.client.createSubscription(input)).rejects.toMatchObject({ issues })
    },
  )

  const elsewhere = { baseUrl: 'https://notifications.example.com', auth: { username: 'u', password: 'p' } }
  const local = 'http://127.0.0.1:3011/n'

  test('http: on loopback for a service elsewhere the keeper refuses at once and in the same words', async (bench) => {
    const client = new NotificationClient(elsewhere)
    const { issues } = await refusalOf(() => bench.keeper({ client, callbackUrl: local }))
    expect(issues).toMatchObject([{ path: ['callbackUrl'] }])
    const input = { notificationTypes: ['behavioral' as const], usernames: ['alice'], callbackUrl: local }
    await expect(client.createSubscription(input)).rejects.toMatchObject({ issues })
  })

  test('for every user is a problem, where a client of the user’s own decides that when it is called', async (bench) => {
    const client = ownClient(new NotificationClient(elsewhere))
    const keeper = bench.keeper({ client, callbackUrl: local })
    const { failed } = await keeper.sweep()
    expect(failed).toHaveLength(3)
    expect(bench.problems).toMatchObject([
      { code: 'ROSTER', error: expect.any(InvalidRequestError) },
      { code: 'ROSTER' },
    ])
    expect(keeper.status().problems).toMatchObject([
      { code: 'ROSTER', usernames: expect.arrayContaining(['alice', 'bob', 'carol']), resolved: false },
    ])
  })
})

describe('without callbacks, or with callbacks that fail', () => {
  test('errors of callbacks are on the console, too, because the gap would be lost', async (bench) => {
    const written = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => written.mockRestore())
    const fail = () => {
      throw new Error('no database')
    }
    await bench.restored({ onGap: fail, onProblem: fail, logger: undefined })
    const err = expect.objectContaining({ message: 'no database' })
    expect(written.mock.calls.map(([, fields]) => fields)).toMatchObject([
      { event: 'listener.failed', listener: 'onGap', username: 'bob', err },
      { event: 'listener.failed', listener: 'onProblem', code: 'RECEIVER_SUSPECTED', err },
    ])
  })

  test.for(['the console', 'the logger'])(
    'gaps and problems are lines of %s, with the name of the keeper and times as numbers',
    async (bench, where) => {
      const written = vi.spyOn(console, 'error').mockReturnValue()
      onTestFinished(() => written.mockRestore())
      const logger = recordingLogger()
      const isConsole = where === 'the console'
      await bench.restored({ onGap: undefined, onProblem: undefined, logger: isConsole ? undefined : logger })
      const time = expect.any(Number)
      const keeper = 'coaching'
      const gap = { username: 'bob', subscriptionId: bench.idOf('bob'), cause: 'ended' }
      const problem = { code: 'RECEIVER_SUSPECTED', description: expect.any(String), usernames: ['bob'] }
      const important = [
        { event: 'subscription.restored', keeper, ...gap, lastProvenAt: time, restoredAt: time },
        { event: 'problem.began', keeper, ...problem, sinceAt: time },
      ]
      expect(written.mock.calls.map(([, fields]) => fields)).toEqual(isConsole ? important : [])
      const lines = logger.lines.map(({ fields }) => fields)
      if (!isConsole) expect(lines).toEqual(expect.arrayContaining(important))
      for (const line of lines) expect(line).toMatchObject({ keeper })
    },
  )
})

test('the store holds no secret, and no key a username', async (bench) => {
  const keeper = bench.keeper({ parameters: { token: 'sesame-1' }, headers: { 'x-key': 'sesame-2' } })
  await keeper.sweep()
  expect([...bench.store.keys()].join()).not.toMatch(/alice|bob|carol/)
  expect([...bench.store.values()].join()).not.toContain('sesame')
})

describe('the keeper', () => {
  test('runs in the context in which it was constructed, and never in that of a request', async (bench) => {
    const context = new AsyncLocalStorage<string>()
    const seen = new Set<string | undefined>()
    const see = () => seen.add(context.getStore())
    const usernames = () => {
      see()
      return ['alice', 'bob']
    }
    const keeper = context.run('own', () =>
      bench.keeper({
        usernames,
        onGap: see,
        onProblem: see,
        logger: { debug: see, info: see, warn: see, error: see },
      }),
    )
    await context.run('of a request', async () => {
      await keeper.sweep({ onProgress: see })
      bench.emulator.endSubscription(bench.idOf('bob') ?? 0)
      keeper.observe({}, { subscriptionId: bench.idOf('alice') ?? 0 })
      keeper.start()
      await keeper.unsubscribeAll()
    })
    expect([...seen]).toEqual(['own'])
  })

  test('publishes each sweep on a tracing channel', async (bench) => {
    const contexts: unknown[] = []
    const channel = tracingChannel('notification-subscriber:sweep')
    const asyncEnd = (context: unknown) => contexts.push(context)
    channel.asyncEnd.subscribe(asyncEnd)
    onTestFinished(() => void channel.asyncEnd.unsubscribe(asyncEnd))
    await bench.keeper().sweep()
    expect(contexts).toEqual([
      { name: 'coaching', wanted: 3, created: 3, restored: 0, removed: 0, failed: 0 },
    ])
  })

  test('names a user that the client refuses to subscribe, and subscribes the others', async (bench) => {
    let usernames = ['alice', 'no,body']
    const keeper = bench.keeper({ usernames: () => usernames })
    const { active, failed } = await keeper.sweep()
    expect([active, failed.map(({ username }) => username)]).toEqual([1, ['no,body']])
    const message = expect.stringMatching(/^"no,body" must not contain a comma.*: The client refuses/)
    const problems = [{ code: 'ROSTER', usernames: ['no,body'], message }]
    // A user who was never proven has no proof that could be the oldest.
    expect(keeper.status()).toMatchObject({ problems, oldestProofAt: undefined })
    usernames = ['alice']
    await keeper.sweep()
    const oldestProofAt = keeper.subscription('alice')?.lastProvenAt
    expect(keeper.status()).toMatchObject({ problems: [], oldestProofAt })
  })
})
