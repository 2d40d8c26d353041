/** What is told of a store that has lost all it had. */
import { SubscriptionConflictError, SubscriptionKeeper } from 'notification-subscriber'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const taken = new SubscriptionConflictError('exists', {
  status: 409,
  body: '',
  reason: 'duplicate-or-overlap',
  request: { notificationTypes: [], usernames: [], callbackUrl: '', recreateIfExists: false },
})

/** Says of its first head after a loss that nothing was written: a Redis client that loses an answer asks again. */
function storeThatRepeats() {
  const entries = new Map<string, string>()
  let isRepeating = false
  return {
    loseAll() {
      entries.clear()
      isRepeating = true
    },
    get: (key: string) => entries.get(key),
    set: (key: string, value: string) => void entries.set(key, value),
    delete: (key: string) => entries.delete(key),
    compareAndSet(key: string, expected: string | undefined, value: string) {
      if (entries.get(key) !== expected) return false
      entries.set(key, value)
      const isRepeated = isRepeating && key.endsWith(':head')
      if (isRepeated) isRepeating = false
      return !isRepeated
    },
  }
}

test('that a store has lost all it had is told as over, also if the answer to what was written again is lost', async () => {
  const lines: string[] = []
  const subscribed: string[] = []
  const store = storeThatRepeats()
  const keeper = new SubscriptionKeeper({
    client: {
      async tryCreateSubscription({ usernames: [username = ''] }) {
        if (subscribed.includes(username)) throw taken
        return { created: true, subscriptionId: subscribed.push(username) }
      },
      async unsubscribe() {},
      async updateSubscriptionParameters() {},
    },
    name: 'coaching',
    store,
    usernames: ['alice', 'bob'],
    notificationTypes: ['behavioral'],
    callbackUrl: 'https://app.example.com/notifications',
    logger: false,
    onProblem: ({ code, resolved }) => lines.push(resolved ? `${code} is over` : code),
  })
  keeper.start()
  await vi.advanceTimersByTimeAsync(40_000)
  store.loseAll()
  await vi.advanceTimersByTimeAsync(1_800_000)
  expect(lines).toEqual(['STORE', 'STORE is over'])
  expect(keeper.status().problems).toEqual([])
  await keeper.stop()
})
