/**
 * Whatever happens: once it is over, there is what is wanted, every gap was told, and nothing was told that was not so.
 *
 * A failure shows its seed and its path. `RANDOM_SEED=<seed> RANDOM_PATH=<path>` plays that sequence alone, and
 * `KEEPER_STORY=1` tells all that happened in it.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Happening, type Kind, scenarios, usersOfOneKey } from './model/happenings.js'
import { play } from './model/play.js'
import { useVirtualProcesses } from './model/setup.js'

useVirtualProcesses()

const { RANDOM_SEQUENCES, RANDOM_SEED, RANDOM_PATH } = process.env
/** A sequence takes tens of milliseconds: they share the number. */
const groups = 14
const numRuns = Math.ceil(Number(RANDOM_SEQUENCES ?? 200) / groups)

/** Always the same sequences in `npm test`, others each time in the long run. */
const seed = RANDOM_SEED ?? (RANDOM_SEQUENCES === undefined ? 1 : undefined)

/** @param mustReach - what the sequences must come to, or they prove nothing */
async function always(
  happenings: readonly Happening[],
  mustReach: readonly string[],
  kind: Partial<Kind> = {},
): Promise<void> {
  const reached = new Set<string>()
  await fc.assert(
    fc.asyncProperty(scenarios({ happenings, ...kind }), (scenario) => play(scenario, reached)),
    {
      numRuns: Math.ceil(numRuns * (kind.share ?? 1)),
      ...(seed !== undefined && { seed: Number(seed) }),
      ...(RANDOM_PATH !== undefined && { path: RANDOM_PATH, endOnFailure: true }),
    },
  )
  // Only the long run surely comes to all of them.
  if (RANDOM_SEQUENCES !== undefined && RANDOM_PATH === undefined)
    expect([...reached]).toEqual(expect.arrayContaining([...mustReach]))
}

/** Happens to a keeper whatever else does. */
const ordinary: Happening[] = ['wait', 'end', 'want', 'wantNoLonger', 'callBack', 'sweep']

describe('the subscriptions that are wanted exist, and the gaps are known', { timeout: 600_000 }, () => {
  test('after a service that fails, is slow, and loses answers', () =>
    always(
      [...ordinary, 'weather', 'fates', 'refuse', 'breakReceiver'],
      ['recreate 201', 'gap ended', 'gap replaced', 'SERVICE is over', 'CREDENTIALS', 'RECEIVER_SUSPECTED'],
    ))

  test('after processes that die, sleep, stop and take over', () =>
    always(
      [
        ...ordinary,
        ...(['wearOut', 'fates', 'crash', 'crashLater', 'stop', 'pause', 'suspend', 'sleep'] as const),
        'startAnother',
      ],
      ['recreate 201', 'gap ended', 'gap replaced', 'unsubscribe 204'],
    ))

  test('after a store that fails, hangs and forgets', () =>
    always(
      [...ordinary, 'fates', 'failingStore', 'crash', 'startAnother'],
      ['STORE', 'STORE is over', 'gap ended'],
    ))

  test('after processes that alone lose sight of the store', () =>
    always(
      [...ordinary, 'cutOff', 'rotate', 'reconfigure', 'startAnother', 'crash', 'stop', 'fates'],
      ['STORE', 'STORE is over', 'gap ended', 'update 200'],
    ))

  test('after a store that loses all it had', () =>
    always([...ordinary, 'forget', 'crash', 'stop', 'startAnother'], ['gap ended', 'recreate 201']))

  test('after a roster that is empty, fails or hangs', () =>
    always(
      [...ordinary, 'roster', 'wantWhomNobodyCanSend', 'crash', 'suspend', 'startAnother', 'fates'],
      ['ROSTER', 'ROSTER is over', 'unsubscribe 204'],
    ))

  test('after a roster of many that is halved, somebody else’s, empty, fails or hangs', () =>
    always([...ordinary, 'roster', 'crash', 'startAnother', 'fates'], ['ROSTER', 'ROSTER is over'], {
      usersAtLeast: 14,
      share: 1 / 2,
    }))

  test('after a store that loses all it had while the configuration changes', () =>
    always(
      [...ordinary, 'forget', 'reconfigure', 'rotate', 'crash', 'stop', 'startAnother'],
      ['gap changed', 'gap ended', 'SUPERSEDED'],
    ))

  test('of more users than stand under one key of the store', () =>
    always([...ordinary, 'fates', 'failingStore', 'crashLater', 'suspend', 'startAnother'], ['gap ended'], {
      usersAtLeast: usersOfOneKey,
      // Each takes seconds.
      share: 1 / 8,
    }))

  test('after changes of the configuration', () =>
    always(
      [...ordinary, 'reconfigure', 'rotate', 'crash', 'crashLater', 'fates', 'startAnother'],
      ['gap changed', 'update 200', 'SUPERSEDED'],
    ))

  test('after clocks that jump', () =>
    always([...ordinary, 'jumpClock', 'suspend', 'sleep', 'crash', 'startAnother', 'fates'], ['gap ended']))

  test('after somebody else took the place of a subscription', () =>
    always([...ordinary, 'subscribeSomebodyElse', 'weather'], ['CONFLICT', 'CONFLICT is over']))

  test('after somebody else took the place of a subscription with one that looks the same', () =>
    always(['wait', 'end', 'callBack', 'sweep', 'subscribeTwin', 'stop'], ['gap ended'], {
      existing: 'report',
    }))

  test('after everything at once', () =>
    always(
      [
        ...ordinary,
        ...([
          'weather',
          'fates',
          'refuse',
          'breakReceiver',
          'roster',
          'wantWhomNobodyCanSend',
          'failingStore',
        ] as const),
        ...([
          'crash',
          'crashLater',
          'stop',
          'pause',
          'suspend',
          'sleep',
          'jumpClock',
          'startAnother',
          'rotate',
          'reconfigure',
        ] as const),
      ],
      [],
    ))
})
