/** The keeper on the emulator: what a user sees of it. */

import { AsyncLocalStorage } from 'node:async_hooks'
import { tracingChannel } from 'node:diagnostics_channel'
import { inspect } from 'node:util'
import { ConfigurationError, InvalidRequestError, NotificationClient } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import {
  type KeeperClient,
  type KeeperGap,
  type KeeperProblem,
  SubscriptionKeeper,
  type SubscriptionKeeperOptions,
} from 'notification-subscriber/keeper'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { failureOf } from '../support/failure.js'
import { expectPage } from '../support/message-page.js'
import { recordingLogger } from '../support/recording-logger.js'

const callbackUrl = 'https://app.example.com/notifications'

/** Why a keeper is not made. */
async function refusalOf(make: () => SubscriptionKeeper): Promise<ConfigurationError> {
  const error = await failureOf(Promise.resolve().then(make))
  return error instanceof ConfigurationError ? error : expect.fail(String(error))
}

/** An emulated service and what one process after the other sees of it. */
class Bench implements AsyncDisposable {
  readonly emulator: Emulator
  readonly client: NotificationClient
  readonly store = new Map<string, string>()
  readonly gaps: KeeperGap[] = []
  readonly problems: KeeperProblem[] = []

  private constructor(emulator: Emulator) {
    this.emulator = emulator
    this.client = new NotificationClient(emulator.clientOptions)
  }

  static async start(): Promise<Bench> {
    return new Bench(await startEmulator())
  }

  keeper(options: Partial<SubscriptionKeeperOptions> = {}): SubscriptionKeeper {
    return new SubscriptionKeeper({
      client: this.client,
      name: 'coaching',
      store: this.store,
      usernames: ['alice', 'bob', 'carol'],
      notificationTypes: ['behavioral'],
      callbackUrl,
      parameters: { token: 'first' },
      maxRequestsPerSecond: 1_000,
      onGap: (gap) => this.gaps.push(gap),
      onProblem: (problem) => this.problems.push(problem),
      logger: false,
      ...options,
    })
  }

  /** Who is subscribed, and with which token. */
  get subscribed(): Record<string, string | undefined> {
    return Object.fromEntries(
      this.emulator.subscriptions.map(({ usernames, parameters }) => [usernames.join(), parameters.token]),
    )
  }

  idOf(username: string): number | undefined {
    return this.emulator.subscriptions.find(({ usernames }) => usernames.includes(username))?.subscriptionId
  }

  /** A keeper that has restored the subscription of bob. */
  async restored(options: Partial<SubscriptionKeeperOptions>): Promise<SubscriptionKeeper> {
    const keeper = this.keeper(options)
    await keeper.sweep()
    this.emulator.endSubscription(this.idOf('bob') ?? 0)
    await keeper.sweep()
    return keeper
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.client.close()
    await this.emulator[Symbol.asyncDispose]()
  }
}

const everyUser = { alice: 'first', bob: 'first', carol: 'first' }

describe('a sweep', () => {
  test('subscribes every user of the roster, each with a subscription of their own', async () => {
    await using bench = await Bench.start()
    const keeper = bench.keeper()
    expect(await keeper.sweep()).toEqual({
      wanted: 3,
      active: 3,
      created: 3,
      restored: 0,
      removed: 0,
      failed: [],
      problems: [],
    })
    expect(bench.subscribed).toEqual(everyUser)
    expect(keeper.subscription('bob')).toMatchObject({ subscriptionId: bench.idOf('bob'), state: 'active' })
    expect(keeper.status().counts).toEqual({ active: 3, unproven: 0, conflict: 0, failing: 0 })
    expect(bench.gaps).toEqual([])
  })

  test('restores what the service has ended, says how long the gap was, and suspects the receiver', async () => {
    await using bench = await Bench.start()
    const keeper = bench.keeper()
    await keeper.sweep()
    const provenAt = keeper.subscription('bob')?.lastProvenAt
    bench.emulator.endSubscription(bench.idOf('bob') ?? 0)
    const before = Date.now()
    expect(await keeper.sweep()).toMatchObject({ active: 3, created: 0, restored: 1 })
    expect(bench.subscribed).toEqual(everyUser)
    const [gap] = bench.gaps
    expect(bench.gaps).toEqual([
      {
        username: 'bob',
        subscriptionId: bench.idOf('bob'),
        lastProvenAt: provenAt,
        restoredAt: expect.any(Number),
        cause: 'ended',
      },
    ])
    expect(gap?.restoredAt).toBeGreaterThanOrEqual(before)
    expect(bench.problems).toMatchObject([
      { code: 'RECEIVER_SUSPECTED', usernames: ['bob'], resolved: false },
    ])
    expect(keeper.subscription('bob')?.restoredCount).toBe(1)
  })
})

describe('options that a call does not know', () => {
  test.each<[string, (keeper: SubscriptionKeeper) => Promise<unknown>]>([
    ['sweep', (keeper) => keeper.sweep({ allowRemoval: true } as object)],
    ['rotateParameters', (keeper) => keeper.rotateParameters({}, { onprogress() {} } as object)],
    ['unsubscribeAll', (keeper) => keeper.unsubscribeAll({ allowRemovals: true } as object)],
    ['sweep', (keeper) => keeper.sweep({ signal: 1_000 } as object)],
  ])('are refused by %s, which does nothing then', async (method, call) => {
    await using bench = await Bench.start()
    const keeper = bench.keeper()
    await expect(call(keeper)).rejects.toThrow(InvalidRequestError)
    await expect(call(keeper)).rejects.toThrow(new RegExp(`^${method} cannot do this: `))
    expect(bench.emulator.requests).toEqual([])
  })
})

test('options that cannot work are refused together, each with what would do', async () => {
  await using bench = await Bench.start()
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

test.each([null, 'compare'])('a store whose compareAndSet is %j is refused', async (compareAndSet) => {
  await using bench = await Bench.start()
  const store: unknown = Object.assign(new Map(), { compareAndSet })
  expect(() => bench.keeper({ store: store as Map<string, string> })).toThrow(ConfigurationError)
})

test('a name with half a surrogate pair is refused, and has no record', async () => {
  await using bench = await Bench.start()
  const keeper = bench.keeper({ usernames: ['\ud800', '\ud801', 'alice'] })
  expect(await keeper.sweep()).toMatchObject({ active: 1, failed: [{}, {}] })
  expect(bench.problems.map(({ code }) => code)).toEqual(['ROSTER', 'ROSTER'])
  expect([...bench.store.keys()].filter((key) => key.includes(':user:'))).toHaveLength(1)
})

describe('what the client would refuse', () => {
  test.each([
    'https://app.example.com',
    'https://App.example.com/n',
    'https://app.example.com/{tenant}',
    'https://app.example.com/n#top',
  ])(
    'as a callback URL, such as %s, the keeper refuses at once and in the same words',
    async (callbackUrl) => {
      await using bench = await Bench.start()
      const { issues } = await refusalOf(() => bench.keeper({ callbackUrl }))
      const input = { notificationTypes: ['behavioral' as const], usernames: ['alice'], callbackUrl }
      await expect(bench.client.createSubscription(input)).rejects.toMatchObject({ issues })
    },
  )

  test('for every user is a problem, where a client of the user’s own decides that when it is called', async () => {
    await using bench = await Bench.start()
    const { client } = bench
    const own: KeeperClient = {
      tryCreateSubscription: (...call) => client.tryCreateSubscription(...call),
      unsubscribe: (...call) => client.unsubscribe(...call),
      updateSubscriptionParameters: (...call) => client.updateSubscriptionParameters(...call),
    }
    const keeper = bench.keeper({ client: own, callbackUrl: 'http://127.0.0.1:3011/n' })
    const { failed } = await keeper.sweep()
    expect(failed).toHaveLength(3)
    expect(bench.problems).toMatchObject([
      { code: 'ROSTER', error: expect.any(InvalidRequestError) },
      { code: 'ROSTER' },
    ])
    expect(keeper.status().problems).toMatchObject([
      { code: 'ROSTER', usernames: ['alice', 'bob', 'carol'], resolved: false },
    ])
  })
})

describe('without callbacks, or with callbacks that fail', () => {
  test('errors of callbacks are on the console, too, because the gap would be lost', async () => {
    const written = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => written.mockRestore())
    await using bench = await Bench.start()
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

  test('what cannot be shown on the console ends no process', async () => {
    await using bench = await Bench.start()
    const fail = () => {
      throw Object.assign(new Error('no database'), {
        [inspect.custom]() {
          throw new Error('no text')
        },
      })
    }
    // Vitest fails a test that leaves an unhandled rejection.
    const keeper = await bench.restored({ onGap: fail, onProblem: fail, logger: undefined })
    expect(keeper.subscription('bob')?.restoredCount).toBe(1)
  })

  test('gaps and problems are lines on the console, with the name of the keeper', async () => {
    const written = vi.spyOn(console, 'error').mockReturnValue()
    onTestFinished(() => written.mockRestore())
    await using bench = await Bench.start()
    await bench.restored({ onGap: undefined, onProblem: undefined, logger: undefined })
    const time = expect.any(Number)
    const keeper = 'coaching'
    const gap = { username: 'bob', subscriptionId: bench.idOf('bob'), cause: 'ended' }
    const problem = { code: 'RECEIVER_SUSPECTED', description: expect.any(String), usernames: ['bob'] }
    expect(written.mock.calls.map(([, fields]) => fields)).toEqual([
      { event: 'subscription.restored', keeper, ...gap, lastProvenAt: time, restoredAt: time },
      { event: 'problem.began', keeper, ...problem, sinceAt: time },
    ])
  })

  test('gaps and problems are lines of the logger, with the name of the keeper and times as numbers', async () => {
    await using bench = await Bench.start()
    const recording = recordingLogger()
    await bench.restored({ onGap: undefined, onProblem: undefined, logger: recording })
    const lines = recording.lines.map(([fields]) => fields)
    expect(lines).toContainEqual(
      expect.objectContaining({ keeper: 'coaching', cause: 'ended', restoredAt: expect.any(Number) }),
    )
    expect(lines).toContainEqual(
      expect.objectContaining({ code: 'RECEIVER_SUSPECTED', sinceAt: expect.any(Number) }),
    )
    for (const line of lines) expect(line).toMatchObject({ keeper: 'coaching' })
  })
})

test('the store holds no secret, and no key a username', async () => {
  await using bench = await Bench.start()
  const keeper = bench.keeper({ parameters: { token: 'sesame-1' }, headers: { 'x-key': 'sesame-2' } })
  await keeper.sweep()
  expect([...bench.store.keys()].join()).not.toMatch(/alice|bob|carol/)
  expect([...bench.store.values()].join()).not.toContain('sesame')
})

describe('the keeper', () => {
  test('runs in the context in which it was constructed, and never in that of a request', async () => {
    await using bench = await Bench.start()
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
      await keeper.rotateParameters({ parameters: { token: 'second' } })
      await keeper.unsubscribeAll()
    })
    expect([...seen]).toEqual(['own'])
  })

  test('publishes each sweep on a tracing channel', async () => {
    await using bench = await Bench.start()
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

  test('names a user that the client refuses to subscribe, and subscribes the others', async () => {
    await using bench = await Bench.start()
    let usernames = ['alice', 'no,body']
    const keeper = bench.keeper({ usernames: () => usernames })
    const { active, failed } = await keeper.sweep()
    expect([active, failed.map(({ username }) => username)]).toEqual([1, ['no,body']])
    const message = expect.stringMatching(/^"no,body" must not contain a comma.*: The client refuses/)
    expect(keeper.status().problems).toMatchObject([{ code: 'ROSTER', usernames: ['no,body'], message }])
    usernames = ['alice']
    await keeper.sweep()
    expect(keeper.status().problems).toEqual([])
  })

  test.each<[string, Partial<SubscriptionKeeperOptions>]>([
    ['101 parameters and headers', { parameters: values(60), headers: { ...values(41, 'h') } }],
    ['parameters of more than 8 KiB', { parameters: { token: 'é'.repeat(4_100) } }],
  ])('is not made with %s', async (_name, options) => {
    await using bench = await Bench.start()
    expect(() => bench.keeper(options)).toThrow(ConfigurationError)
  })

  test('takes a callback URL on loopback if its client does', async () => {
    await using bench = await Bench.start()
    const callbackUrl = 'http://127.0.0.1:3000/notifications'
    await using client = new NotificationClient({
      ...bench.emulator.clientOptions,
      allowInsecureLoopback: true,
    })
    expect(() => bench.keeper({ client, callbackUrl })).not.toThrow()
  })

  test('does not rotate to more than 100 parameters', async () => {
    await using bench = await Bench.start()
    const keeper = bench.keeper({ parameters: values(60) })
    await expect(keeper.rotateParameters({ parameters: values(60, 'other') })).rejects.toThrow(
      InvalidRequestError,
    )
  })
})

function values(count: number, prefix = 'p'): Record<string, string> {
  return Object.fromEntries(Array.from({ length: count }, (_, index) => [`${prefix}${index}`, 'x']))
}
