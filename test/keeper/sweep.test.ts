/** Which calls share a sweep. */
import { SubscriptionKeeper, type SweepReport } from 'notification-subscriber/keeper'
import { describe, expect, test } from 'vitest'

/** A keeper of two users, and how often its roster was asked, which each pass does once. */
function keeperThatCounts(onAsked: (keeper: SubscriptionKeeper) => void = () => {}) {
  let ids = 0
  let asked = 0
  const keeper = new SubscriptionKeeper({
    client: {
      tryCreateSubscription: async () => ({ created: true, subscriptionId: ++ids }),
      async unsubscribe() {},
      async updateSubscriptionParameters() {},
    },
    name: 'coaching',
    store: new Map(),
    usernames() {
      asked++
      onAsked(keeper)
      return ['alice', 'bob']
    },
    notificationTypes: ['behavioral'],
    callbackUrl: 'https://app.example.com/notifications',
    logger: false,
  })
  return { keeper, passes: () => asked }
}

describe('a sweep', () => {
  test('that has not begun is shared by all who ask for the same, and each gets its progress', async () => {
    const { keeper, passes } = keeperThatCounts()
    const told: string[] = []
    const sweep = (who: string) =>
      keeper.sweep({ onProgress: ({ done, total }) => told.push(`${who}: ${done} of ${total}`) })
    const reports = await Promise.all([sweep('one'), sweep('other')])
    expect(reports[1]).toBe(reports[0])
    expect(passes()).toBe(1)
    expect(told).toEqual(['one: 1 of 2', 'other: 1 of 2', 'one: 2 of 2', 'other: 2 of 2'])
  })

  test('that has begun is not shared: what changed since might be missing', async () => {
    let later: Promise<SweepReport> | undefined
    const { keeper, passes } = keeperThatCounts((asked) => {
      later ??= asked.sweep()
    })
    const first = await keeper.sweep()
    expect(await later).not.toBe(first)
    expect(passes()).toBe(2)
  })

  test('is not shared with one that may remove users', async () => {
    const { keeper, passes } = keeperThatCounts()
    const sweeps = [
      keeper.sweep(),
      keeper.sweep({ allowRemovals: true }),
      keeper.sweep({ allowRemovals: true }),
    ]
    const [plain, removing, another] = await Promise.all(sweeps)
    expect(removing).not.toBe(plain)
    expect(another).toBe(removing)
    expect(passes()).toBe(2)
  })

  test('is not shared with a rotation of parameters, nor one rotation with another', async () => {
    const { keeper, passes } = keeperThatCounts()
    const rotate = (token: string) => keeper.rotateParameters({ parameters: { token } })
    await Promise.all([keeper.sweep(), rotate('second'), rotate('third')])
    expect(passes()).toBe(3)
  })
})
