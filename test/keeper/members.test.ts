/** What the store holds of members and of users, met with names and records that no keeper wrote there. */
import { SubscriptionConflictError } from 'notification-subscriber'
import { type KeeperClient, SubscriptionKeeper } from 'notification-subscriber/keeper'
import { describe, expect, test } from 'vitest'
import { KeeperStore, KeyFailure } from '../../src/keeper/keeper-store.js'
import { Members } from '../../src/keeper/members.js'
import { Problems } from '../../src/keeper/reporter.js'
import type { KeyValueStore } from '../../src/stores/key-value-store.js'

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

describe('a shard that cannot be written', () => {
  function brokenShards() {
    const map = new Map<string, string>()
    const faults = { isReadOnly: true }
    const reported: string[] = []
    const problems = new Problems(({ code, resolved }) => {
      reported.push(resolved ? `${code} resolved` : code)
    })
    const store: KeyValueStore = {
      get: (key) => map.get(key),
      set(key, value) {
        if (faults.isReadOnly && key.includes(':members:')) throw new Error('broken')
        map.set(key, value)
      },
      delete: (key) => map.delete(key),
    }
    const others = new Members(new KeeperStore(map, 'test', problems))
    return { faults, reported, others, members: new Members(new KeeperStore(store, 'test', problems)) }
  }

  test('is resolved when it works again, though another process has entered the name', async () => {
    const { faults, members, others, reported } = brokenShards()
    await expect(members.enter('alice')).rejects.toThrow(KeyFailure)
    await others.enter('alice')
    faults.isReadOnly = false
    await members.readAll()
    expect(reported).toEqual(['STORE', 'STORE resolved'])
  })

  test('stays reported while it can be read', async () => {
    const { members, reported } = brokenShards()
    await expect(members.enter('alice')).rejects.toThrow(KeyFailure)
    for (let reads = 0; reads < 2; reads++) await members.readAll()
    expect(reported).toEqual(['STORE'])
  })
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

test('a name of a roster that was not believed stays tentative when its user is claimed', async () => {
  const members = new Members(new KeeperStore(new Map(), 'test', new Problems(() => {})))
  await members.enterAll(new Map([['stranger', 'tentative']]))
  await members.enter('stranger')
  await members.enter('newcomer')
  const { standings } = await members.readAll()
  expect(standings).toEqual(
    new Map([
      ['stranger', 'tentative'],
      ['newcomer', 'confirmed'],
    ]),
  )
})
