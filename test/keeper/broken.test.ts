import { SubscriptionKeeper } from 'notification-subscriber'
import { afterEach, expect, test, vi } from 'vitest'
import { Tenure } from '../../src/keeper/tenure.js'

afterEach(() => void vi.restoreAllMocks())

test('an exception of the keeper’s own is told as what it is, and not as a fault of the roster', async () => {
  const bug = new TypeError('Cannot read properties of undefined')
  vi.spyOn(Tenure.prototype, 'mayUpdate', 'get').mockImplementation(() => {
    throw bug
  })
  const lines: unknown[] = []
  const line = (level: string) => (fields: object, message: string) =>
    lines.push({ level, message, ...fields })
  const keeper = new SubscriptionKeeper({
    client: {
      tryCreateSubscription: async () => ({ created: true, subscriptionId: 1 }),
      async unsubscribe() {},
      async updateSubscriptionParameters() {},
    },
    name: 'coaching',
    store: new Map(),
    usernames: ['alice'],
    notificationTypes: ['behavioral'],
    callbackUrl: 'https://app.example.com/notifications',
    logger: { debug: line('debug'), info: line('info'), warn: line('warn'), error: line('error') },
  })
  const report = await keeper.sweep()
  expect(report).toMatchObject({ active: 0, failed: [{ username: 'alice', error: bug }], problems: [] })
  expect(lines).toContainEqual({
    level: 'error',
    keeper: 'coaching',
    username: 'alice',
    failures: 1,
    err: bug,
    message: expect.stringContaining('bug'),
  })
  expect(keeper.subscription('alice')?.state).toBe('failing')
})
