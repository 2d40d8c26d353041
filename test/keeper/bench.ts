/** A keeper on the emulator. */
import { NotificationClient } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import {
  type KeeperClient,
  type KeeperGap,
  type KeeperProblem,
  SubscriptionKeeper,
  type SubscriptionKeeperOptions,
} from 'notification-subscriber/keeper'

export const callbackUrl = 'https://app.example.com/notifications'

/** A client of the user's own. */
export function ownClient(client: NotificationClient, service?: string): KeeperClient {
  return {
    ...(service !== undefined && { service }),
    tryCreateSubscription: (...call) => client.tryCreateSubscription(...call),
    unsubscribe: (...call) => client.unsubscribe(...call),
    updateSubscriptionParameters: (...call) => client.updateSubscriptionParameters(...call),
  }
}

/** An emulated service and what one process after the other sees of it. */
export class Bench implements AsyncDisposable {
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
