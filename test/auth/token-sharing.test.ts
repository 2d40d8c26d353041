import type { KeyValueStore, NotificationClient } from 'notification-subscriber'
import type { RedisStore } from 'notification-subscriber/redis'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { deferred } from '../support/deferred.js'
import { credentials, fakeService, subscription, tokenAnswer } from '../support/fake-service.js'
import { NaiveStore } from '../support/naive-store.js'
import { recordingLogger } from '../support/recording-logger.js'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

type Service = ReturnType<typeof fakeService>

/** A client as another process has it: it shares nothing with others but the store. */
function processOn(service: Service, tokenCache: KeyValueStore, options: object = {}): NotificationClient {
  return service.client({ auth: { ...credentials, tokenCache }, ...options })
}

function processesOn(service: Service, store: KeyValueStore, count: number): NotificationClient[] {
  return Array.from({ length: count }, () => processOn(service, store))
}

/** Waits for a call in virtual time, and returns what it gave and how long it took. */
async function timed<T>(call: Promise<T>): Promise<{ value: T; tookMs: number }> {
  const from = performance.now()
  let tookMs = Number.NaN
  const done = call.then((value) => {
    tookMs = performance.now() - from
    return value
  })
  // A failure is the caller's to see, once the virtual time has passed.
  done.catch(() => {})
  await vi.advanceTimersByTimeAsync(40_000)
  return { value: await done, tookMs }
}

const lockKeyIn = (store: NaiveStore) =>
  Object.keys(store.values).find((key) => key.startsWith('notification-subscriber lock ')) ?? ''

/** The store, with some of its operations replaced. */
function withOperations(store: RedisStore, changed: Partial<RedisStore>): RedisStore {
  return {
    get: (key) => store.get(key),
    set: (key, value, ttlMs) => store.set(key, value, ttlMs),
    delete: (key) => store.delete(key),
    compareAndSet: (...args) => store.compareAndSet(...args),
    ...changed,
  }
}

describe('processes that share a store with compareAndSet', () => {
  test('20 that start at once make one token request', async () => {
    const service = fakeService()
    const calls = processesOn(service, new NaiveStore(), 20).map((client) => client.getAccessToken())
    const { value } = await timed(Promise.all(calls))
    expect(new Set(value)).toEqual(new Set(['token-1']))
    expect(service.tokenRequests).toHaveLength(1)
  })

  test('a token endpoint that takes 8 seconds gets one request, too: the others wait while its holder lives', async () => {
    const service = fakeService()
    service.onToken = async () => {
      await new Promise((resolve) => setTimeout(resolve, 8_000))
      return tokenAnswer('slow')
    }
    const calls = processesOn(service, new NaiveStore(), 20).map((client) => client.getAccessToken())
    const { value } = await timed(Promise.all(calls))
    expect(new Set(value)).toEqual(new Set(['slow']))
    expect(service.tokenRequests).toHaveLength(1)
  })

  test('each lifetime costs one request, while 20 call all the time', async () => {
    const service = fakeService()
    service.onToken = (_call, count) => tokenAnswer(`token-${count}`, 60)
    const clients = processesOn(service, new NaiveStore(), 20)
    for (let step = 0; step < 240; step += 1) {
      await Promise.all([
        ...clients.map((client) => client.getAccessToken()),
        vi.advanceTimersByTimeAsync(1_000),
      ])
    }
    // Four minutes; a refresh comes after 80 to 90 per cent of a minute.
    expect(service.tokenRequests.length).toBeGreaterThanOrEqual(4)
    expect(service.tokenRequests.length).toBeLessThanOrEqual(5)
  })

  test('a token that all of them hold and the service rejects is replaced by one request', async () => {
    const service = fakeService()
    const store = new NaiveStore()
    const clients = processesOn(service, store, 20)
    await timed(Promise.all(clients.map((client) => client.getAccessToken())))
    service.onCall = ({ headers }) =>
      headers.get('authorization') === 'Bearer token-1'
        ? new Response('', { status: 401 })
        : Response.json({ subscription_id: 1 }, { status: 201 })
    await timed(Promise.all(clients.map((client) => client.createSubscription(subscription))))
    expect(service.tokenRequests).toHaveLength(2)
  })

  test('a request that fails is the turn of the next, who waited', async () => {
    const service = fakeService()
    const first = deferred<Response>()
    service.onToken = (_call, count) => (count === 1 ? first.promise : tokenAnswer('second'))
    const [one, two] = processesOn(service, new NaiveStore(), 2)
    const failing = expect(one?.getAccessToken()).rejects.toMatchObject({ status: 401 })
    await vi.advanceTimersByTimeAsync(0)
    const waiting = two?.getAccessToken()
    await vi.advanceTimersByTimeAsync(200)
    expect(service.tokenRequests).toHaveLength(1)
    first.resolve(new Response('', { status: 401 }))
    await failing
    await vi.advanceTimersByTimeAsync(200)
    expect(await waiting).toBe('second')
    expect(service.tokenRequests).toHaveLength(2)
  })

  test('who waited takes no token that ends before the one it has', async () => {
    const service = fakeService()
    const store = new NaiveStore()
    const [one, two] = processesOn(service, store, 2)
    await one?.getAccessToken()
    await vi.advanceTimersByTimeAsync(0)
    await two?.getAccessToken()
    await vi.advanceTimersByTimeAsync(3_300_000)
    // Both are due for a refresh; the one that is answered first ends before the token at hand.
    const answers = [deferred<Response>(), deferred<Response>()]
    service.onToken = (_call, count) => answers[count - 2]?.promise ?? tokenAnswer('one too many')
    await one?.getAccessToken()
    await vi.advanceTimersByTimeAsync(0)
    await two?.getAccessToken()
    await vi.advanceTimersByTimeAsync(100)
    expect(service.tokenRequests).toHaveLength(2)
    answers[0]?.resolve(tokenAnswer('shorter', 60))
    await vi.advanceTimersByTimeAsync(200)
    expect(service.tokenRequests).toHaveLength(3)
    answers[1]?.resolve(tokenAnswer('longer'))
    await vi.advanceTimersByTimeAsync(100)
    expect(await two?.getAccessToken()).toBe('longer')
  })

  test('a token that only seems to end later, because the wall clock went back, is refreshed all the same', async () => {
    const random = vi.spyOn(Math, 'random').mockReturnValue(0)
    const service = fakeService()
    service.onToken = (_call, count) => tokenAnswer(`token-${count}`, 60)
    const client = processOn(service, new NaiveStore())
    await client.getAccessToken()
    await vi.advanceTimersByTimeAsync(49_000)
    vi.setSystemTime(Date.now() - 2)
    random.mockReturnValue(0.99)
    await client.getAccessToken()
    await vi.advanceTimersByTimeAsync(0)
    expect(await client.getAccessToken()).toBe('token-2')
  })

  test('a request that is answered while its lock is being renewed frees the lock', async () => {
    const service = fakeService()
    service.onToken = async () => {
      await new Promise((resolve) => setTimeout(resolve, 300))
      return tokenAnswer('token')
    }
    const naive = new NaiveStore()
    const slow = withOperations(naive, {
      async compareAndSet(...args) {
        const stored = await naive.compareAndSet(...args)
        await new Promise((resolve) => setTimeout(resolve, 100))
        return stored
      },
    })
    const token = processOn(service, slow).getAccessToken()
    await vi.advanceTimersByTimeAsync(700)
    expect(await token).toBe('token')
    expect(naive.values[lockKeyIn(naive)]).toMatch(/^free /)
  })

  test('when all is done no lock is held, and no timer runs', async () => {
    const service = fakeService()
    const store = new NaiveStore()
    await processOn(service, store).getAccessToken()
    await vi.advanceTimersByTimeAsync(0)
    expect(Object.values(store.values).filter((value) => !value.startsWith('free '))).toHaveLength(1)
    expect(vi.getTimerCount()).toBe(0)
    await vi.advanceTimersByTimeAsync(10_000)
    expect(Object.keys(store.values)).toHaveLength(1)
  })

  test('the lock holds no secret', async () => {
    const service = fakeService()
    const store = new NaiveStore()
    await processOn(service, store).getAccessToken()
    const lock = lockKeyIn(store)
    expect(lock).not.toBe('')
    expect(lock + store.values[lock]).not.toMatch(/token-1|c1ient-s3cret/)
  })
})

describe('a process that dies while it requests a token', () => {
  test.each([
    ['a store that forgets the lock', (store: NaiveStore): RedisStore => store],
    [
      'a store that never forgets',
      (store: NaiveStore) =>
        withOperations(store, {
          compareAndSet: (key, expected, value) => store.compareAndSet(key, expected, value),
        }),
    ],
  ])('costs the others less than a second on %s, and one request', async (_name, storeOf) => {
    const naive = new NaiveStore()
    const store = storeOf(naive)
    const dying = fakeService()
    dying.onToken = () => new Promise(() => {})
    let isDead = false
    const storeOfDying = withOperations(store, {
      compareAndSet: (...args) => (isDead ? new Promise(() => {}) : store.compareAndSet(...args)),
    })
    const lost = processOn(dying, storeOfDying).getAccessToken()
    lost.catch(() => {})
    await vi.advanceTimersByTimeAsync(2_000)
    expect(naive.values[lockKeyIn(naive)]).not.toMatch(/^free /)
    isDead = true

    const service = fakeService()
    const calls = processesOn(service, store, 10).map((client) => timed(client.getAccessToken()))
    const results = await Promise.all(calls)
    expect(results.map(({ value }) => value)).toEqual(Array.from({ length: 10 }, () => 'token-1'))
    expect(Math.max(...results.map(({ tookMs }) => tookMs))).toBeLessThan(1_000)
    expect(service.tokenRequests).toHaveLength(1)
  })

  test('and comes back finds its lock taken, and leaves it alone', async () => {
    const store = new NaiveStore()
    const slow = fakeService()
    const answer = deferred<Response>()
    slow.onToken = () => answer.promise
    let isStopped = false
    let writes = 0
    const storeOfSlow = withOperations(store, {
      async compareAndSet(...args) {
        writes += 1
        return !isStopped && store.compareAndSet(...args)
      },
    })
    const stopped = processOn(slow, storeOfSlow).getAccessToken()
    await vi.advanceTimersByTimeAsync(0)
    isStopped = true
    await vi.advanceTimersByTimeAsync(1_000)
    const service = fakeService()
    const second = deferred<Response>()
    service.onToken = () => second.promise
    const call = processOn(service, store).getAccessToken()
    await vi.advanceTimersByTimeAsync(10)
    const held = store.values[lockKeyIn(store)]
    isStopped = false
    // The one that took the lock, and the renewal that failed: the lock is another's now.
    expect(writes).toBe(2)
    answer.resolve(tokenAnswer('late'))
    expect(await stopped).toBe('late')
    await vi.advanceTimersByTimeAsync(0)
    expect(store.values[lockKeyIn(store)]).toBe(held)
    second.resolve(tokenAnswer('own'))
    expect(await call).toBe('own')
  })
})

describe('a token request of another process that hangs', () => {
  test('is waited for a third of the time that a call has, and the call succeeds', async () => {
    const store = new NaiveStore()
    const hanging = fakeService()
    hanging.onToken = () => new Promise(() => {})
    processOn(hanging, store)
      .getAccessToken()
      .catch(() => {})
    await vi.advanceTimersByTimeAsync(100)
    const { value, tookMs } = await timed(processOn(fakeService(), store).getAccessToken())
    expect(value).toBe('token-1')
    expect(tookMs).toBeGreaterThanOrEqual(10_000)
    expect(tookMs).toBeLessThan(10_100)
  })

  test("and is this process's own refresh does not hold up its calls", async () => {
    const service = fakeService()
    service.onToken = () => tokenAnswer('token-1', 10)
    const client = processOn(service, new NaiveStore())
    await client.getAccessToken()
    service.onToken = () => new Promise(() => {})
    await vi.advanceTimersByTimeAsync(9_500)
    await client.getAccessToken()
    await vi.advanceTimersByTimeAsync(500)
    service.onToken = () => tokenAnswer('token-2', 10)
    const { value, tookMs } = await timed(client.getAccessToken())
    expect([value, tookMs]).toEqual(['token-2', 0])
  })
})

describe('a store that fails or hangs at any operation', () => {
  const hang = () => new Promise<never>(() => {})
  const fail = async () => {
    throw new Error('READONLY You cannot write against a read only replica')
  }

  /** A store that works for so many operations, and then no more. */
  function worksFor(operations: number, then: () => Promise<never>): { store: RedisStore; left(): number } {
    const naive = new NaiveStore()
    let left = operations
    const next = <T>(run: () => Promise<T>): Promise<T> => {
      left -= 1
      return left < 0 ? then() : run()
    }
    const store: RedisStore = {
      get: (key) => next(() => naive.get(key)),
      set: (key, value, ttlMs) => next(() => naive.set(key, value, ttlMs)),
      delete: (key) => next(() => naive.delete(key)),
      compareAndSet: (...args) => next(() => naive.compareAndSet(...args)),
    }
    return { store, left: () => left }
  }

  test.each([
    ['hangs', hang],
    ['fails', fail],
  ])('%s: a call waits at most a second for all of them together, also after a 401', async (_name, then) => {
    let operations = 0
    for (; operations < 100; operations += 1) {
      const service = fakeService()
      service.onCall = ({ headers }) =>
        headers.get('authorization') === 'Bearer token-2'
          ? Response.json({ subscription_id: 1 }, { status: 201 })
          : new Response('', { status: 401 })
      // The token of an earlier call, which the service has revoked since.
      const { store, left } = worksFor(operations, then)
      const client = processOn(service, store)
      const first = await timed(client.getAccessToken())
      expect(first.tookMs).toBeLessThanOrEqual(1_000)
      const { value, tookMs } = await timed(client.createSubscription(subscription))
      expect(value).toEqual({ subscriptionId: 1 })
      expect(tookMs).toBeLessThanOrEqual(1_000)
      if (left() > 0) break
    }
    // Up to the first number of operations that was enough for all.
    expect(operations).toBeGreaterThan(10)
    expect(operations).toBeLessThan(100)
  })

  test('is slow: ten operations of 300 ms each do not make a call wait for 3 seconds', async () => {
    const naive = new NaiveStore()
    const slowly = async <T>(run: () => Promise<T>): Promise<T> => {
      await new Promise((resolve) => setTimeout(resolve, 300))
      return run()
    }
    const service = fakeService()
    service.onCall = (_call, count) =>
      count === 1 ? new Response('', { status: 401 }) : Response.json({ subscription_id: 1 }, { status: 201 })
    const stored = { accessToken: 'revoked', lifetimeMs: 60_000, expiresAtMs: Date.now() + 60_000 }
    const client = processOn(service, {
      get: (key) => slowly(async () => (key.includes(' lock ') ? naive.get(key) : JSON.stringify(stored))),
      set: (key, value, ttlMs) => slowly(() => naive.set(key, value, ttlMs)),
      delete: (key) => slowly(() => naive.delete(key)),
      compareAndSet: (...args) => slowly(() => naive.compareAndSet(...args)),
    })
    const { tookMs } = await timed(client.createSubscription(subscription))
    expect(tookMs).toBeLessThanOrEqual(1_000)
    expect(service.calls.map(({ headers }) => headers.get('authorization'))).toEqual([
      'Bearer revoked',
      'Bearer token-1',
    ])
  })

  test('is used again when it is back', async () => {
    const naive = new NaiveStore()
    let isAway = true
    const store = withOperations(naive, { get: (key) => (isAway ? hang() : naive.get(key)) })
    const service = fakeService()
    service.onToken = (_call, count) => tokenAnswer(`token-${count}`, 60)
    const [one, two] = processesOn(service, store, 2)
    await timed(Promise.all([one?.getAccessToken(), two?.getAccessToken()]))
    expect(service.tokenRequests).toHaveLength(2)
    isAway = false
    await vi.advanceTimersByTimeAsync(60_000)
    await timed(Promise.all([one?.getAccessToken(), two?.getAccessToken()]))
    expect(service.tokenRequests).toHaveLength(3)
  })

  test('writes the lock and says that it has not: the process takes it all the same', async () => {
    const naive = new NaiveStore()
    let lost = 1
    const store = withOperations(naive, {
      compareAndSet: async (...args) => {
        const stored = await naive.compareAndSet(...args)
        lost -= 1
        return lost < 0 && stored
      },
    })
    const service = fakeService()
    const { value, tookMs } = await timed(processOn(service, store).getAccessToken())
    expect(value).toBe('token-1')
    expect(tookMs).toBeLessThan(100)
  })
})

describe('what a store is given', () => {
  test('is a time to live in whole milliseconds, because Redis refuses any other', async () => {
    const naive = new NaiveStore()
    const times: unknown[] = []
    const store: RedisStore = {
      get: (key) => naive.get(key),
      set(key, value, ttlMs) {
        times.push(ttlMs)
        return naive.set(key, value, ttlMs)
      },
      delete: (key) => naive.delete(key),
      compareAndSet(key, expected, value, ttlMs) {
        times.push(ttlMs)
        return naive.compareAndSet(key, expected, value, ttlMs)
      },
    }
    const service = fakeService()
    service.onToken = async () => {
      // A monotonic clock has fractions.
      const now = performance.now()
      vi.spyOn(performance, 'now').mockReturnValue(now + 0.3)
      return tokenAnswer('token')
    }
    await processOn(service, store).getAccessToken()
    await vi.advanceTimersByTimeAsync(0)
    expect(times).toEqual([750, 3_600_000, 750])
  })

  const isNotKept = ([, message]: readonly [object, string]) => message.includes('does not keep')
  test.each([
    ['forgets', () => undefined],
    ['gives back as something else', (value: unknown) => ({ value })],
    ['gives back cut', (value: unknown) => String(value).slice(0, 20)],
  ])('and %s is a warning, one for as long as that lasts', async (_how, givenBack) => {
    const service = fakeService()
    service.onToken = (_call, count) => tokenAnswer(`token-${count}`, 60)
    const kept = new Map<string, string>()
    let isKept = false
    // As Keyv does while its Redis is down: nothing throws, and `set` resolves with true.
    const store: KeyValueStore = {
      get: async (key) => (isKept ? kept.get(key) : givenBack(kept.get(key))),
      set: async (key, value) => Boolean(kept.set(key, value)),
      delete: async (key) => kept.delete(key),
    }
    const { lines, ...logger } = recordingLogger()
    const client = processOn(service, store, { logger })
    const warningsAfterNextToken = async () => {
      await client.getAccessToken()
      await vi.advanceTimersByTimeAsync(60_000)
      return lines.filter(isNotKept).length
    }
    expect(await warningsAfterNextToken()).toBe(1)
    expect(await warningsAfterNextToken()).toBe(1)
    isKept = true
    expect(await warningsAfterNextToken()).toBe(1)
    isKept = false
    expect(await warningsAfterNextToken()).toBe(2)
    expect(lines.find(isNotKept)).toEqual([
      {},
      'The token cache does not keep what it is given, so each process requests its own tokens. ' +
        'Is the database behind it up? Listen for its `error` events',
    ])
  })

  test('and keeps until the token is over is no warning', async () => {
    const service = fakeService()
    service.onToken = () => tokenAnswer('brief', 1)
    const naive = new NaiveStore()
    const store: KeyValueStore = {
      get: (key) => naive.get(key),
      async set(key, value, ttlMs) {
        await naive.set(key, value, ttlMs)
        await new Promise((resolve) => setTimeout(resolve, 999))
        vi.setSystemTime(Date.now() + 1)
      },
      delete: (key) => naive.delete(key),
    }
    const { lines, ...logger } = recordingLogger()
    await processOn(service, store, { logger }).getAccessToken()
    await vi.advanceTimersByTimeAsync(2_000)
    expect(lines.filter(isNotKept)).toEqual([])
  })
})

test.each([
  [5_999, 'token-1'],
  [6_001, 'token-2'],
])(
  'a token of a minute from a machine whose clock is %i ms ahead: the next process uses %s',
  async (aheadMs, expected) => {
    const service = fakeService()
    service.onToken = (_call, count) => tokenAnswer(`token-${count}`, 60)
    const store = new Map<string, string>()
    await processOn(service, store).getAccessToken()
    await vi.advanceTimersByTimeAsync(0)
    vi.setSystemTime(Date.now() - aheadMs)
    expect(await processOn(service, store).getAccessToken()).toBe(expected)
  },
)
