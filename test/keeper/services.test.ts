/** Records belong to a service: another one on the same store, or one that was reset, is neither believed nor harmed. */
import { NotificationClient } from 'notification-subscriber'
import { describe, expect, test } from 'vitest'
import { Bench, ownClient } from './bench.js'
import { agents } from './stories.js'

const own = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, 'first']))

describe('another service on the same store', () => {
  test('begins anew: no id of the first is updated or ended there', async () => {
    const store = new Map<string, string>()
    await using lab = await Bench.start()
    const first = lab.keeper({ store, usernames: agents(3) })
    await first.sweep()
    await using production = await Bench.start()
    for (const username of ['zoe', 'yan'])
      await production.client.createSubscription({
        notificationTypes: ['call-score'],
        usernames: [username],
        callbackUrl: 'https://other.example.com/notifications',
        parameters: { token: 'other' },
      })
    const others = { zoe: 'other', yan: 'other' }
    const keeper = production.keeper({ store, usernames: agents(2) })
    expect(await keeper.sweep()).toMatchObject({ active: 2, created: 2, removed: 0, problems: [] })
    expect(production.subscribed).toEqual({ ...others, ...own(agents(2)) })
    expect(await keeper.unsubscribeAll()).toMatchObject({ removed: 2 })
    expect(production.subscribed).toEqual(others)
    expect(await first.sweep()).toMatchObject({ active: 3, created: 0, restored: 0 })
    expect(lab.subscribed).toEqual(own(agents(3)))
  })

  test('is another tenant, too, and another user name', async () => {
    const { service } = new NotificationClient({
      baseUrl: 'https://notifications.example.com/',
      auth: { authUrl: 'https://auth.example.com', domain: 'acme', clientId: 'a', clientSecret: 'b' },
    })
    expect(service).toBe('https://notifications.example.com acme')
    const baseUrl = 'https://notifications.example.com'
    const basic = new NotificationClient({ baseUrl, auth: { username: 'alice', password: 'secret' } })
    expect(basic.service).toBe('https://notifications.example.com alice')
    const provided = new NotificationClient({ baseUrl, auth: { getAccessToken: () => 'aa.bb.cc' } })
    expect(provided.service).toBe('https://notifications.example.com')
  })
})

test('a service that gives its ids anew: every user is subscribed, and no other program is harmed', async () => {
  const store = new Map<string, string>()
  {
    await using before = await Bench.start()
    await before.keeper({ store, usernames: agents(20), client: ownClient(before.client, 'service') }).sweep()
  }
  const usernames = [...Array.from({ length: 10 }, (_, index) => `new${index}`), ...agents(20)]
  await using after = await Bench.start()
  const keeper = after.keeper({ store, usernames, client: ownClient(after.client, 'service') })
  // New users are first: they get ids that records of others have.
  await keeper.sweep()
  expect(await keeper.sweep()).toMatchObject({ wanted: 30, active: 30, failed: [] })
  expect(after.subscribed).toEqual(own(usernames))
  for (const name of usernames) expect(keeper.subscription(name)?.subscriptionId).toBe(after.idOf(name))
})

test('an id that two users have is of neither: no call is made with it', async () => {
  await using bench = await Bench.start()
  await bench.keeper({ usernames: agents(2) }).sweep()
  for (const [key, text] of bench.store) bench.store.set(key, text.replace('"id":2', '"id":1'))
  const keeper = bench.keeper({ usernames: agents(1) })
  await keeper.sweep()
  expect(bench.emulator.requests.filter(({ path }) => path.endsWith('/1'))).toEqual([])
  expect(bench.subscribed).toEqual(own(agents(1)))
  expect(keeper.subscription('agent0')?.subscriptionId).toBe(bench.idOf('agent0'))
})
