/** The state machine against a second, naive reading of docs/service.md, States: that of the keepers' tests. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SubscriptionStore } from '../../../src/emulator/service/subscription-store.js'
import { notificationTypes } from '../../../src/notification-types.js'
import { firstId, ModelService, type ModelSubscription, sameSet } from '../../keeper/convergence/service.js'
import { sequences } from '../../support/random-runs.js'

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
      const model = new ModelService(() => 0)
      const modelId = (id: number) => firstId - 1 + id
      const recordOf = ({ id, notificationTypes, usernames, ...each }: ModelSubscription) => {
        const { callbackUrl, parameters, failures: consecutiveFailures } = each
        const subscriptionId = id - modelId(0)
        return { subscriptionId, notificationTypes, usernames, callbackUrl, parameters, consecutiveFailures }
      }
      for (const c of commands) {
        switch (c.kind) {
          case 'create': {
            const { notificationTypes, usernames } = c.wanted
            const { outcome, subscriptionId } = store.create(c.wanted, c.recreate)
            reached.add(outcome)
            const { status } = model.create({ ...c.wanted, recreateIfExists: c.recreate }, 'keeper')
            // Of several that are in the way each will do.
            const named = model.find(modelId(subscriptionId))
            const isIdentical =
              sameSet(named?.usernames ?? [], usernames) &&
              sameSet(named?.notificationTypes ?? [], notificationTypes)
            const refusal = isIdentical ? 'duplicate' : 'partial-overlap'
            expect(outcome).toBe(status === 201 ? 'created' : refusal)
            break
          }
          case 'unsubscribe':
            expect(store.end(c.id, 'unsubscribed')).toBe(model.end(modelId(c.id), 'keeper') === 204)
            break
          case 'update':
            store.updateParameters(c.id, c.parameters)
            model.update(modelId(c.id), c.parameters)
            break
          case 'callback': {
            const failures = model.find(modelId(c.id))?.failures
            if (failures === undefined) reached.add('late callback')
            else if (failures === 2 && !c.ok) reached.add('ended by failures')
            model.callback(modelId(c.id), c.ok)
            store.callbackDone(c.id, c.ok)
          }
        }
        const active = model.active('keeper').map(recordOf)
        expect(store.list()).toEqual(active)
        for (const type of notificationTypes) {
          for (const user of users) {
            const matching = active.filter(
              (each) => each.notificationTypes.includes(type) && each.usernames.includes(user),
            )
            const shown = matching.map(({ subscriptionId, callbackUrl }) => ({ subscriptionId, callbackUrl }))
            expect(new Set(store.matching(type, user))).toEqual(new Set(shown))
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
