/**
 * Random sequences in virtual time: whatever happens, the keepers converge once it has ended.
 * A failure shows its seed and its path: `RANDOM_SEED=<seed> RANDOM_PATH=<path>` plays that sequence alone, and
 * `KEEPER_STORY=1` lists everything that happened in it.
 */
import fc from 'fast-check'
import { beforeAll, expect, test } from 'vitest'
import { sequences } from '../support/random-runs.js'
import { play, scenarios } from './convergence/play.js'
import { installVirtualProcesses } from './convergence/virtual-process.js'

beforeAll(() => installVirtualProcesses())

const { RANDOM_PATH } = process.env

/** What the sequences must come to, or they prove nothing. */
const mustReach = [
  ...['create 201', 'create 409', 'recreate 201', 'update 200', 'update 404', 'unsubscribe 204'],
  ...['gap ended', 'gap replaced', 'gap changed'],
  ...['RECEIVER_SUSPECTED', 'CONFLICT', 'CREDENTIALS', 'SERVICE', 'STORE', 'ROSTER', 'SUPERSEDED'],
  ...['CONFLICT resolved', 'SERVICE resolved', 'STORE resolved', 'ROSTER resolved', 'SUPERSEDED resolved'],
]

test('after any events the wanted subscriptions exist, and every gap is reported', {
  timeout: 7_200_000,
}, async () => {
  const reached = new Set<string>()
  await fc.assert(
    fc.asyncProperty(scenarios, (scenario) => play(scenario, reached)),
    { numRuns: sequences, ...(RANDOM_PATH !== undefined && { path: RANDOM_PATH, endOnFailure: true }) },
  )
  // Only a long run surely comes to all of them.
  if (sequences >= 1_000 && RANDOM_PATH === undefined)
    expect([...reached]).toEqual(expect.arrayContaining(mustReach))
})
