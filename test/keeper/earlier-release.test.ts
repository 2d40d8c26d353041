/** A store that a keeper of 0.5 wrote: three users, of whom one was restored and one had deliveries. */
import { expect, onTestFinished, test, vi } from 'vitest'
import { Bench, callbackUrl, ownClient } from './bench.js'
import written from './store-of-0.5.json' with { type: 'json' }

test('records of 0.5 are taken over without a call, and the names of their parameters are known', async () => {
  await using bench = await Bench.start()
  const parameters = { token: 'first', Tenant: 'a' }
  const make = (username: string) =>
    bench.client.createSubscription({
      notificationTypes: ['behavioral'],
      usernames: [username],
      callbackUrl,
      parameters,
    })
  for (const username of ['alice', 'bob', 'carol']) await make(username)
  bench.emulator.endSubscription(bench.idOf('bob') ?? 0)
  await make('bob')
  expect(Object.keys(written.ids).map((name) => [name, bench.idOf(name)])).toEqual(
    Object.entries(written.ids),
  )
  const before = bench.emulator.requests.length

  vi.useFakeTimers({ toFake: ['Date'], now: written.writtenAt + 60_000 })
  onTestFinished(() => void vi.useRealTimers())
  const store = new Map(Object.entries(written.entries))
  const options = { client: ownClient(bench.client), store }
  const keeper = bench.keeper({ ...options, parameters })
  keeper.start()
  await vi.waitFor(() => expect(keeper.status().counts).toMatchObject({ active: 3, unproven: 0 }), 5_000)
  await keeper.stop()
  expect(bench.emulator.requests.slice(before)).toEqual([])
  expect(keeper.subscription('bob')).toMatchObject({ subscriptionId: written.ids.bob, restoredCount: 1 })
  expect(keeper.subscription('carol')?.lastDeliveryAt).toBeGreaterThan(0)
  expect(bench.problems).toEqual([])

  // No update removes a parameter: each subscription is created anew.
  const report = await bench.keeper({ ...options, parameters: { token: 'first' } }).sweep()
  expect(report).toMatchObject({ active: 3, restored: 3, failed: [] })
  expect(bench.gaps.map(({ cause }) => cause)).toEqual(['changed', 'changed', 'changed'])
})
