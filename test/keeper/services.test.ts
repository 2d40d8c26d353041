/** Records belong to a service: another one on the same store, or one that was reset, is neither believed nor harmed. */
import { NotificationClient } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { type KeeperClient, SubscriptionKeeper } from 'notification-subscriber/keeper'
import { describe, expect, test } from 'vitest'
import { agents } from './stories.js'

const callbackUrl = 'https://app.example.com/notifications'

/** A service with a client, and a keeper on the store. */
class Environment implements AsyncDisposable {
  readonly emulator: Emulator
  readonly client: NotificationClient
  readonly keeper: SubscriptionKeeper
  readonly gaps: string[] = []

  private constructor(emulator: Emulator, store: Map<string, string>, usernames: string[], service?: string) {
    this.emulator = emulator
    this.client = new NotificationClient(emulator.clientOptions)
    const { client } = this
    const own: KeeperClient = {
      ...(service !== undefined && { service }),
      tryCreateSubscription: (...call) => client.tryCreateSubscription(...call),
      unsubscribe: (...call) => client.unsubscribe(...call),
      updateSubscriptionParameters: (...call) => client.updateSubscriptionParameters(...call),
    }
    this.keeper = new SubscriptionKeeper({
      client: service === undefined ? client : own,
      name: 'coaching',
      store,
      usernames,
      notificationTypes: ['behavioral'],
      callbackUrl,
      parameters: { token: 'of the keeper' },
      maxRequestsPerSecond: 1_000,
      onGap: ({ username, cause }) => this.gaps.push(`${username} ${cause}`),
      logger: false,
    })
  }

  /** @param service - what the client says of its service. Default: its address and tenant */
  static async start(
    store: Map<string, string>,
    usernames: string[],
    service?: string,
  ): Promise<Environment> {
    return new Environment(await startEmulator(), store, usernames, service)
  }

  /** Another program of the same customer. */
  async subscribeOthers(usernames: readonly string[]): Promise<void> {
    for (const username of usernames) {
      await this.client.createSubscription({
        notificationTypes: ['call-score'],
        usernames: [username],
        callbackUrl: 'https://other.example.com/notifications',
        parameters: { token: 'of the other program' },
      })
    }
  }

  get tokens(): Record<string, string | undefined> {
    return Object.fromEntries(
      this.emulator.subscriptions.map(({ parameters, usernames }) => [usernames.join(), parameters.token]),
    )
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.keeper.stop()
    await this.client.close()
    await this.emulator.close()
  }
}

const othersTokens = { zoe: 'of the other program', yan: 'of the other program' }
const own = (names: readonly string[]) => Object.fromEntries(names.map((name) => [name, 'of the keeper']))

describe('another service on the same store', () => {
  test('begins anew: no id of the first is updated or ended there', async () => {
    const store = new Map<string, string>()
    await using lab = await Environment.start(store, agents(3))
    await lab.keeper.sweep()
    await using production = await Environment.start(store, agents(2))
    await production.subscribeOthers(['zoe', 'yan'])
    const report = await production.keeper.sweep()
    expect(report).toMatchObject({ active: 2, created: 2, removed: 0, problems: [] })
    expect(production.tokens).toEqual({ ...othersTokens, ...own(agents(2)) })
    expect(await production.keeper.unsubscribeAll()).toMatchObject({ removed: 2 })
    expect(production.tokens).toEqual(othersTokens)
    expect(lab.tokens).toEqual(own(agents(3)))
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
    await using before = await Environment.start(store, agents(20), 'service')
    await before.keeper.sweep()
  }
  const users = [...Array.from({ length: 10 }, (_, index) => `new${index}`), ...agents(20)]
  await using after = await Environment.start(store, users, 'service')
  // New users are first: they get ids that records of others have.
  await after.keeper.sweep()
  const report = await after.keeper.sweep()
  expect(report).toMatchObject({ wanted: 30, active: 30, failed: [] })
  expect(after.tokens).toEqual(own(users))
  for (const { subscriptionId, usernames } of after.emulator.subscriptions)
    expect(after.keeper.subscription(usernames.join())?.subscriptionId).toBe(subscriptionId)
})
