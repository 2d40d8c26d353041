/** When each subscription really existed, as the emulator knows it. */
import type { Emulator, EndReason, SubscriptionRecord } from 'notification-subscriber/emulator'

export interface Lifetime {
  readonly subscription: SubscriptionRecord
  /** Milliseconds since 1970. */
  readonly createdAt: number
  endedAt?: number
  reason?: EndReason
}

/** A time in which a user was without a subscription, in milliseconds since 1970. */
export interface Inactivity {
  readonly username: string
  readonly from: number
  readonly to: number
}

export class SubscriptionHistory {
  readonly lifetimes: Lifetime[] = []

  constructor(emulator: Emulator) {
    emulator.on('created', (subscription) => {
      this.lifetimes.push({ subscription, createdAt: Date.now() })
    })
    emulator.on('ended', ({ subscriptionId }, reason) => {
      const lifetime = this.find(subscriptionId)
      if (lifetime !== undefined) Object.assign(lifetime, { endedAt: Date.now(), reason })
    })
  }

  find(subscriptionId: number | undefined): Lifetime | undefined {
    return this.lifetimes.find((each) => each.subscription.subscriptionId === subscriptionId)
  }

  of(username: string): Lifetime[] {
    return this.lifetimes.filter(({ subscription }) => subscription.usernames.includes(username))
  }

  inactivitiesOf(username: string): Inactivity[] {
    return this.of(username).flatMap(({ createdAt: to }, index, all) => {
      const from = all[index - 1]?.endedAt
      return from === undefined ? [] : [{ username, from, to }]
    })
  }
}
