/** The state machine against a second, naive reading of docs/service.md, States. */
import fc from 'fast-check'
import type { SubscriptionRecord } from 'notification-subscriber/emulator'
import { expect, test } from 'vitest'
import { SubscriptionStore } from '../../../src/emulator/service/subscription-store.js'
import { type NotificationType, notificationTypes } from '../../../src/notification-types.js'
import { sequences } from '../../support/random-runs.js'

type Wanted = Omit<SubscriptionRecord, 'subscriptionId' | 'consecutiveFailures'>

/** A list of subscriptions; every question scans it from the beginning. */
class NaiveService {
  list: SubscriptionRecord[] = []
  lastId = 0

  create(wanted: Wanted, recreate: boolean) {
    const wantedPairs = pairsOf(wanted)
    for (const each of this.list) {
      const { subscriptionId, callbackUrl } = each
      const pairs = pairsOf(each)
      if (callbackUrl !== wanted.callbackUrl || !pairs.some((pair) => wantedPairs.includes(pair))) continue
      if (String(pairs) !== String(wantedPairs)) return { outcome: 'partial-overlap', subscriptionId }
      if (!recreate) return { outcome: 'duplicate', subscriptionId }
      this.end(subscriptionId)
      break
    }
    const subscriptionId = ++this.lastId
    this.list.push({ subscriptionId, ...wanted, consecutiveFailures: 0 })
    return { outcome: 'created', subscriptionId }
  }

  find(id: number) {
    return this.list.find(({ subscriptionId }) => subscriptionId === id)
  }

  end(id: number) {
    const existed = this.find(id) !== undefined
    this.list = this.list.filter(({ subscriptionId }) => subscriptionId !== id)
    return existed
  }

  change(id: number, changeOf: (before: SubscriptionRecord) => Partial<SubscriptionRecord>) {
    this.list = this.list.map((each) => (each.subscriptionId === id ? { ...each, ...changeOf(each) } : each))
  }

  callback(id: number, hasSucceeded: boolean) {
    this.change(id, ({ consecutiveFailures }) => ({
      consecutiveFailures: hasSucceeded ? 0 : consecutiveFailures + 1,
    }))
    if (this.find(id)?.consecutiveFailures === 3) this.end(id)
  }

  matching(type: NotificationType, user: string) {
    return this.list
      .filter((each) => pairsOf(each).includes(`${type} ${user}`))
      .map(({ subscriptionId, callbackUrl }) => ({ subscriptionId, callbackUrl }))
  }
}

function pairsOf({ notificationTypes, usernames }: Wanted): string[] {
  return notificationTypes.flatMap((type) => usernames.map((user) => `${type} ${user}`)).sort()
}

const users = ['alice', 'bob', 'carol']
const parameters = fc.dictionary(fc.constantFrom('token', 'other'), fc.constantFrom('1', '2'), {
  noNullPrototype: true,
})
// Small ids: most commands meet a subscription that exists or has just ended.
const id = fc.integer({ min: 1, max: 8 })
const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('create' as const),
      wanted: fc.record({
        notificationTypes: fc.shuffledSubarray([...notificationTypes], { minLength: 1 }),
        usernames: fc.shuffledSubarray(users, { minLength: 1 }),
        callbackUrl: fc.constantFrom('https://one.example/', 'https://two.example/'),
        parameters,
      }),
      recreate: fc.boolean(),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('unsubscribe' as const), id }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('update' as const), id, parameters }) },
  {
    weight: 4,
    // Biased towards failures: three in a row must happen often.
    arbitrary: fc.record({
      kind: fc.constant('callback' as const),
      id: fc.integer({ min: 1, max: 4 }),
      ok: fc.nat({ max: 4 }).map((n) => n === 0),
    }),
  },
)

test('every sequence of requests and callbacks ends as a naive reading of the table says (docs/service.md, States)', {
  timeout: 3_600_000,
}, () => {
  const reached = new Set<string>()
  fc.assert(
    fc.property(fc.array(command, { maxLength: 40, size: 'max' }), (commands) => {
      const store = new SubscriptionStore(() => {})
      const model = new NaiveService()
      for (const c of commands) {
        switch (c.kind) {
          case 'create': {
            const { notificationTypes, usernames, ...rest } = c.wanted
            const sets = { notificationTypes: new Set(notificationTypes), usernames: new Set(usernames) }
            const created = store.create({ ...sets, ...rest, recreateIfExists: c.recreate })
            reached.add(created.outcome)
            const expected = model.create(c.wanted, c.recreate)
            // Of several that are in the way each will do.
            expect(created.outcome).toBe(expected.outcome)
            if (created.outcome !== 'partial-overlap') expect(created).toEqual(expected)
            break
          }
          case 'unsubscribe':
            expect(store.end(c.id, 'unsubscribed')).toBe(model.end(c.id))
            break
          case 'update':
            store.updateParameters(c.id, c.parameters)
            model.change(c.id, (before) => ({ parameters: { ...before.parameters, ...c.parameters } }))
            break
          case 'callback': {
            const failures = model.find(c.id)?.consecutiveFailures
            if (failures === undefined) reached.add('late callback')
            else if (failures === 2 && !c.ok) reached.add('ended by failures')
            model.callback(c.id, c.ok)
            store.callbackDone(c.id, c.ok)
          }
        }
        expect(store.list()).toEqual(model.list)
        for (const type of notificationTypes) {
          for (const user of users) {
            expect(new Set(store.matching(type, user))).toEqual(new Set(model.matching(type, user)))
          }
        }
      }
    }),
    { numRuns: sequences },
  )
  // The property says nothing if its sequences never get to the interesting rows.
  expect([...reached].sort()).toEqual([
    'created',
    'duplicate',
    'ended by failures',
    'late callback',
    'partial-overlap',
  ])
})
