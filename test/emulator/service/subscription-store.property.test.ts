/** The state machine against a second, naive reading of docs/service.md, States. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SubscriptionStore } from '../../../src/emulator/service/subscription-store.js'
import { type NotificationType, notificationTypes } from '../../../src/notification-types.js'
import { sequences } from '../../support/random-runs.js'

interface Triple {
  id: number
  type: NotificationType
  user: string
  url: string
}

/** What exists is a list of (user, type, URL) facts; every question scans it from the beginning. */
class NaiveService {
  triples: Triple[] = []
  parameters: { id: number; name: string; value: string }[] = []
  callbacks: { id: number; ok: boolean }[] = []
  nextId = 1

  create(
    types: NotificationType[],
    users: string[],
    url: string,
    recreate: boolean,
    parameters: [string, string][],
  ) {
    const wanted = [...new Set(types)].flatMap((type) => [...new Set(users)].map((user) => ({ type, user })))
    const taken = this.triples.filter(
      (t) => t.url === url && wanted.some((w) => w.type === t.type && w.user === t.user),
    )
    const [first] = taken
    if (first !== undefined) {
      const whole = this.triples.filter((t) => t.id === first.id)
      const identical =
        key(whole.map((t) => `${t.type}/${t.user}`)) === key(wanted.map((w) => `${w.type}/${w.user}`))
      if (!identical) return 'partial-overlap'
      if (!recreate) return 'duplicate'
      this.remove(first.id)
    }
    const id = this.nextId++
    for (const w of wanted) this.triples.push({ id, ...w, url })
    this.setParameters(id, parameters)
    return id
  }

  exists(id: number) {
    return this.triples.some((t) => t.id === id)
  }

  remove(id: number) {
    const existed = this.exists(id)
    this.triples = this.triples.filter((t) => t.id !== id)
    return existed
  }

  setParameters(id: number, changes: [string, string][]) {
    if (!this.exists(id)) return
    for (const [name, value] of changes) {
      this.parameters = this.parameters.filter((p) => p.id !== id || p.name !== name)
      this.parameters.push({ id, name, value })
    }
  }

  callback(id: number, ok: boolean) {
    this.callbacks.push({ id, ok })
    if (this.failures(id) === 3) this.remove(id)
  }

  /** Failures at the end of the subscription's own history. */
  failures(id: number) {
    const history = this.callbacks.filter((c) => c.id === id).map((c) => c.ok)
    return history.length - (history.lastIndexOf(true) + 1)
  }

  matching(type: NotificationType, user: string) {
    return key(this.triples.filter((t) => t.type === type && t.user === user).map((t) => t.id))
  }

  state() {
    const ids = [...new Set(this.triples.map((t) => t.id))].sort((a, b) => a - b)
    return ids.map((id) => ({
      id,
      pairs: key(this.triples.filter((t) => t.id === id).map((t) => `${t.type}/${t.user}`)),
      url: this.triples.find((t) => t.id === id)?.url,
      parameters: key(this.parameters.filter((p) => p.id === id).map((p) => `${p.name}=${p.value}`)),
      failures: this.failures(id),
    }))
  }
}

function stateOf(store: SubscriptionStore) {
  return store.list().map((record) => ({
    id: record.subscriptionId,
    pairs: key(record.notificationTypes.flatMap((type) => record.usernames.map((user) => `${type}/${user}`))),
    url: record.callbackUrl,
    parameters: key(Object.entries(record.parameters).map(([name, value]) => `${name}=${value}`)),
    failures: record.consecutiveFailures,
  }))
}

const key = (items: (string | number)[]) => items.map(String).sort().join(' ')

const users = ['alice', 'bob', 'carol']
const urls = ['https://one.example/', 'https://two.example/']
const parameters = fc.array(fc.tuple(fc.constantFrom('token', 'other'), fc.constantFrom('1', '2')), {
  maxLength: 2,
})
// Small ids: most commands meet a subscription that exists or has just ended.
const id = fc.integer({ min: 1, max: 8 })
const command = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('create' as const),
      types: fc.subarray([...notificationTypes], { minLength: 1 }),
      users: fc.subarray(users, { minLength: 1 }),
      url: fc.constantFrom(...urls),
      recreate: fc.boolean(),
      parameters,
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
            const expected = model.create(c.types, c.users, c.url, c.recreate, c.parameters)
            const actual = store.create({
              notificationTypes: new Set(c.types),
              usernames: new Set(c.users),
              callbackUrl: c.url,
              recreateIfExists: c.recreate,
              parameters: Object.fromEntries(c.parameters),
            })
            expect(actual.outcome === 'created' ? actual.subscriptionId : actual.outcome).toBe(expected)
            reached.add(actual.outcome)
            break
          }
          case 'unsubscribe':
            expect(store.end(c.id, 'unsubscribed')).toBe(model.remove(c.id))
            break
          case 'update':
            store.updateParameters(c.id, Object.fromEntries(c.parameters))
            model.setParameters(c.id, c.parameters)
            break
          case 'callback':
            if (!model.exists(c.id)) reached.add('late callback')
            else if (model.failures(c.id) === 2 && !c.ok) reached.add('ended by failures')
            if (model.exists(c.id)) model.callback(c.id, c.ok)
            store.callbackDone(c.id, c.ok)
        }
        expect(stateOf(store)).toEqual(model.state())
        for (const type of notificationTypes) {
          for (const user of users) {
            const ids = store.matching(type, user).map(({ subscriptionId }) => subscriptionId)
            expect(key(ids)).toBe(model.matching(type, user))
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
