import type { KeeperProblem } from 'notification-subscriber'
import { ConnectionError, SubscriptionKeeper } from 'notification-subscriber'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { Circuit, type OutageKind } from '../../src/keeper/circuit.js'
import { Outages } from '../../src/keeper/outages.js'
import { Problems } from '../../src/keeper/problems.js'

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

function line({ code, message, resolved }: KeeperProblem): string {
  return `${resolved ? 'over' : 'begun'}: ${code}, ${/refuse|fails/.exec(message)}`
}

describe('an outage that becomes another', () => {
  test.each([
    ['SERVICE', 'REFUSED', ['begun: SERVICE, fails', 'over: SERVICE, fails', 'begun: SERVICE, refuse']],
    [
      'REFUSED',
      'CREDENTIALS',
      ['begun: SERVICE, refuse', 'over: SERVICE, refuse', 'begun: CREDENTIALS, refuse'],
    ],
  ] as const)('from %s to %s is told as another', (first, second, told) => {
    const lines: string[] = []
    const outages = new Outages(new Problems((problem) => lines.push(line(problem))))
    outages.began({ kind: first, error: new Error() })
    outages.began({ kind: second, error: new Error() })
    expect(lines).toEqual(told)
  })
})

test('three users in a row are an outage, also if each fails with something else', () => {
  const kinds: string[] = []
  const circuit = new Circuit(() => 10, { onOutage: ({ kind }) => kinds.push(kind), onRecovery() {} })
  const fail = (username: string, kind: OutageKind) =>
    circuit.tell(username, { kind, error: new Error(), retryAfterMs: undefined }, 0)
  fail('alice', 'SERVICE')
  fail('bob', 'CREDENTIALS')
  fail('bob', 'CREDENTIALS')
  expect(kinds).toEqual([])
  fail('carol', 'REFUSED')
  expect(kinds).toEqual(['REFUSED'])
})

test('a sweep of a keeper that keeps no watch tells at its end that an outage is over', async () => {
  const lines: string[] = []
  let calls = 0
  const keeper = new SubscriptionKeeper({
    client: {
      async tryCreateSubscription() {
        calls++
        if (calls <= 3) {
          throw new ConnectionError('refused', { requestSent: false })
        }
        return { created: true, subscriptionId: calls }
      },
      async unsubscribe() {},
      async updateSubscriptionParameters() {},
    },
    name: 'coaching',
    store: new Map(),
    usernames: Array.from({ length: 8 }, (_, index) => `agent${index}`),
    notificationTypes: ['behavioral'],
    callbackUrl: 'https://app.example.com/notifications',
    logger: false,
    onProblem: (problem) => lines.push(line(problem)),
  })
  const swept = keeper.sweep()
  await vi.advanceTimersByTimeAsync(50_000)
  expect(await swept).toMatchObject({ active: 8, failed: [] })
  expect(lines).toEqual(['begun: SERVICE, fails', 'over: SERVICE, fails'])
})
