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

test('processes whose second request waits for the rate do not get in the way of each other for ever', async () => {
  const failed = { kind: 'status', status: 500, effectAfterMs: 0 } as const
  const late = { kind: 'late', effectAfterMs: 23_532, answerAfterMs: 30_000 } as const
  const users = Array.from({ length: 16 }, (_, index) => `agent${index}`)
  await play({
    ...{ seed: 770_516_516, users: 14, deployment: { processes: 3, hasCompareAndSet: true } },
    ...{ isStoreSynchronous: true, hasParameters: false, trafficEveryMs: undefined },
    keeper: { existing: 'replace', sweepIntervalMs: 600_000, maxRequestsPerSecond: 5, concurrency: 1 },
    ...{ routes: 'right', statusOfEnded: 404 },
    steps: [
      { event: 'end', details: { users }, thenMs: 1 },
      { event: 'loseAnswers', details: { outcomes: [failed, late] }, thenMs: 10_000 },
      {
        event: 'loseAnswers',
        details: { outcomes: [{ ...late, effectAfterMs: 1_144, answerAfterMs: 9_000 }] },
        thenMs: 522_829,
      },
      { event: 'startAnother', details: {}, thenMs: 4_015 },
      { event: 'leave', details: { user: 'agent0' }, thenMs: 8_135 },
      { event: 'otherService', details: { forMs: 100 }, thenMs: 21 },
    ],
  })
})
