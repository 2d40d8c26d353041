/** What happens to users, rosters and deliveries. */
import fc from 'fast-check'
import type { RosterMode } from '../rosters.js'
import type { World } from '../world.js'
import { event, fewUsers, forMs, minute, nothing, pool, user } from './event.js'

export const userEvents = {
  wait: event(nothing, () => {}),

  want: event(fc.record({ user }), (world, { user }) => world.want(user)),

  // An empty roster removes nobody, so the last user stays.
  wantNoLonger: event(fc.record({ user }), (world, { user }) => {
    if (world.wanted.size > 1) world.wantNoLonger(user)
  }),

  /** The roster has a name that the client refuses. */
  wantInvalidName: event(fc.record({ forMs }), (world, { forMs }) => {
    const reason = {}
    world.invalidNames.add(reason)
    world.time.schedule(forMs, () => world.invalidNames.delete(reason))
  }),

  roster: event(
    fc.record({
      mode: fc.constantFrom<RosterMode[]>(
        'slow',
        'empty',
        'throwing',
        'hanging',
        'garbled',
        'halved',
        'foreign',
      ),
      forMs,
    }),
    (world, { mode, forMs }) => {
      world.rosterMode = mode
      world.time.schedule(forMs, () => {
        world.rosterMode = 'working'
      })
    },
  ),

  /** The service ends subscriptions without a word. */
  end: event(
    fc.record({
      users: fc.oneof(
        fc.tuple(user),
        fc.subarray(pool.slice(0, fewUsers), { minLength: 1 }),
        fc.constant(pool),
      ),
    }),
    (world, { users }) => world.end(users),
  ),

  /** Whatever is made for the user ends within ten seconds. */
  endAgainAndAgain: event(
    fc.record({ user, forMs: fc.integer({ min: 5 * minute, max: 40 * minute }) }),
    (world, { user, forMs }) => {
      const reason = {}
      world.repeatedEnds.add(reason)
      world.time.schedule(forMs, () => world.repeatedEnds.delete(reason))
      endSoon(world, user, reason)
    },
  ),

  callBack: event(
    fc.record({
      user,
      times: fc.integer({ min: 1, max: 3 }),
      observedAfterMs: fc.constantFrom(0, 20, 5_000, 55_000),
    }),
    (world, { user, times, observedAfterMs }) => {
      for (let count = 0; count < times; count++) world.callback(user, observedAfterMs)
    },
  ),

  breakReceiver: event(fc.record({ forMs }), (world, { forMs }) => {
    world.isReceiverBroken = true
    world.time.schedule(forMs, () => {
      world.isReceiverBroken = false
    })
  }),
}

function endSoon(world: World, username: string, reason: object): void {
  if (!world.repeatedEnds.has(reason)) return
  world.end([username])
  world.time.schedule(10_000, () => endSoon(world, username, reason))
}
