/**
 * Whatever happens: once it has ended, there is what is wanted, every gap was reported, and nothing was reported that was
 * not so.
 *
 * A failure shows its seed and its path. `RANDOM_SEED=<seed> RANDOM_PATH=<path>` plays that sequence alone, and
 * `KEEPER_STORY=1` lists all that happened in it.
 */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isLongRun, sequences } from '../support/random-runs.js'
import { groups } from './model/groups.js'
import { play } from './model/play.js'
import { scenarios } from './model/scenarios.js'
import { useVirtualProcesses } from './model/setup.js'

useVirtualProcesses()

const { RANDOM_PATH } = process.env
/** A sequence takes a tenth of a second: the groups share the number; `npm test` plays two of each. */
const numRuns = isLongRun ? sequences / Object.keys(groups).length : 2

describe('the subscriptions that are wanted exist, and the gaps are known', { timeout: 3_600_000 }, () => {
  test.each(Object.entries(groups))('%s', async (_name, group) => {
    const reached = new Set<string>()
    await fc.assert(
      fc.asyncProperty(scenarios(group), (scenario) => play(scenario, reached)),
      {
        numRuns: Math.ceil(numRuns * (group.share ?? 1)),
        ...(RANDOM_PATH !== undefined && { path: RANDOM_PATH, endOnFailure: true }),
      },
    )
    // Only the long run surely comes to all of them.
    if (isLongRun && RANDOM_PATH === undefined)
      expect([...reached]).toEqual(expect.arrayContaining([...group.mustReach]))
  })
})
