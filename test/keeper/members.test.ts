/** What the store holds of members and of users, met with names and records that no keeper wrote there. */
import { SubscriptionConflictError } from 'notification-subscriber'
import { type KeeperClient, SubscriptionKeeper } from 'notification-subscriber/keeper'
import { describe, expect, test } from 'vitest'

const callbackUrl = 'https://app.example.com/notifications'
const conflict = new SubscriptionConflictError('exists', {
  status: 409,
  body: '',
  url: callbackUrl,
  reason: 'duplicate-or-overlap',
  request: { notificationTypes: [], usernames: [], callbackUrl, recreateIfExists: false },
})

/** A client on a service of its own; `subscribed` has the ids by username. */
function service() {
  const subscribed = new Map<string, number>()
  let lastId = 0
  const client: KeeperClient = {
    async tryCreateSubscription({ usernames: [username = ''] }) {
      if (subscribed.has(username)) return { created: false, conflict }
      subscribed.set(username, ++lastId)
      return { created: true, subscriptionId: lastId }
    },
    async unsubscribe(id) {
      for (const [username, each] of subscribed) if (each === id) subscribed.delete(username)
    },
    async updateSubscriptionParameters() {},
  }
  return { subscribed, client }
}

function keeperOf(client: KeeperClient, store: Map<string, string>, usernames: string[]): SubscriptionKeeper {
  return new SubscriptionKeeper({
    client,
    name: 'test',
    store,
    usernames,
    notificationTypes: ['call-score'],
    callbackUrl,
    logger: false,
  })
}

describe('a user who has left the roster', () => {
  test.each(['__proto__', 'constructor', '0'])(
    'and is named %s is unsubscribed by the next process',
    async (username) => {
      const { client, subscribed } = service()
      const store = new Map<string, string>()
      await keeperOf(client, store, [username, 'alice']).sweep()
      expect([...subscribed.keys()].sort()).toEqual([username, 'alice'].sort())
      await keeperOf(client, store, ['alice']).sweep()
      expect([...subscribed.keys()]).toEqual(['alice'])
    },
  )
})

// A sweep tries each of them three times, and waits in between.
describe.concurrent('what no keeper wrote', () => {
  test.each([
    ['14 MB of nested lists', '['.repeat(7_000_000) + ']'.repeat(7_000_000)],
    ['1 MB of nested lists', '['.repeat(500_000) + ']'.repeat(500_000)],
    ['14 MB of names', JSON.stringify(Object.fromEntries(range(700_000).map((name) => [`name-${name}`, 1])))],
  ])('as a shard, %s, is refused without being read', async (_name, text) => {
    const { client } = service()
    const store = new Map(range(64).map((index) => [`test:members:${index}`, text]))
    const keeper = keeperOf(client, store, ['alice'])
    const since = performance.now()
    await keeper.sweep()
    // Reading them takes a minute or more.
    expect(performance.now() - since).toBeLessThan(10_000)
    const { problems } = keeper.status()
    expect(problems.filter(({ message }) => message.includes('"test:members:'))).toHaveLength(64)
  })

  test('as a record, that of another user, is not taken for that user’s', async () => {
    const { client, subscribed } = service()
    const store = new Map<string, string>()
    await keeperOf(client, store, ['alice', 'bob']).sweep()
    const recordOf = (username: string) =>
      [...store].find(([, text]) => text.includes(`"username":"${username}"`))
    const [bobsKey = ''] = recordOf('bob') ?? []
    const [, alicesRecord = ''] = recordOf('alice') ?? []
    store.set(bobsKey, alicesRecord)
    const keeper = keeperOf(client, store, ['alice', 'bob'])
    const { failed } = await keeper.sweep()
    expect(failed.map(({ username }) => username)).toEqual(['bob'])
    expect(keeper.status().problems).toMatchObject([
      { code: 'STORE', message: expect.stringContaining(bobsKey) },
    ])
    expect(keeper.subscription('bob')?.subscriptionId).toBeUndefined()
    expect(subscribed.size).toBe(2)
  })
})

function range(length: number): number[] {
  return Array.from({ length }, (_, index) => index)
}
