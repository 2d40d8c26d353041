/** Random sequences of what can happen to a keeper. */
import fc from 'fast-check'
import type { Fate } from './fates.js'
import type { RosterMode } from './rosters.js'
import type { StoreMode } from './store.js'

/** Something happens, and then some time passes. */
export type Step = { readonly thenMs: number } & (
  | { readonly do: 'wait' }
  | { readonly do: 'end'; readonly users: readonly number[] }
  | {
      readonly do: 'call back'
      readonly user: number
      readonly times: number
      readonly observedAfterMs: number
    }
  | { readonly do: 'break receiver'; readonly forMs: number }
  /** Whatever is made for the user ends within ten seconds. */
  | { readonly do: 'wear out'; readonly user: number; readonly forMs: number }
  | { readonly do: 'weather'; readonly fate: Fate; readonly forMs: number }
  | { readonly do: 'fates'; readonly fates: readonly Fate[] }
  | { readonly do: 'refuse'; readonly user: number; readonly forMs: number }
  | { readonly do: 'want' | 'want no longer'; readonly user: number }
  | { readonly do: 'want whom nobody can send'; readonly forMs: number }
  | { readonly do: 'roster'; readonly mode: RosterMode; readonly forMs: number }
  | { readonly do: 'store'; readonly mode: StoreMode; readonly forMs: number }
  | { readonly do: 'forget' }
  | { readonly do: 'crash'; readonly node: number; readonly restartAfterMs: number }
  | {
      readonly do: 'crash later'
      readonly node: number
      readonly operations: number
      readonly dies: 'before' | 'after'
      readonly restartAfterMs: number
    }
  | { readonly do: 'stop'; readonly node: number; readonly restartAfterMs: number }
  | { readonly do: 'suspend' | 'sleep' | 'pause' | 'cut off'; readonly node: number; readonly forMs: number }
  | { readonly do: 'jump clock'; readonly node: number; readonly byMs: number }
  | { readonly do: 'start another' }
  | { readonly do: 'sweep' }
  | { readonly do: 'rotate' }
  | { readonly do: 'reconfigure'; readonly configuration: number }
  | { readonly do: 'subscribe somebody else'; readonly user: number; readonly with: number }
  | { readonly do: 'subscribe twin'; readonly user: number }
)

export interface Scenario {
  readonly seed: number
  readonly users: number
  /** Without it there is one process at a time. */
  readonly hasCompareAndSet: boolean
  readonly isStoreSynchronous: boolean
  readonly hasParameters: boolean
  /** How often a callback goes out, to a user at random. */
  readonly trafficEveryMs: number | undefined
  readonly sweepIntervalMs: number
  readonly maxRequestsPerSecond: number
  readonly concurrency: number
  readonly existing: 'replace' | 'report'
  readonly steps: readonly Step[]
}

/** So many that their records stand under two keys of the store. */
const mostUsers = 108
const fewUsers = 8
/** So many fill the first key of the store, or nearly. */
export const usersOfOneKey = 98
/** Everybody who can be wanted. */
export const pool = Array.from({ length: mostUsers }, (_, index) => `agent${index}`)
const minute = 60_000

// What can happen, by kind.

const user = fc.oneof(
  { weight: 7, arbitrary: fc.nat(fewUsers - 1) },
  { weight: 1, arbitrary: fc.integer({ min: usersOfOneKey, max: mostUsers - 1 }) },
)
const node = fc.nat(1)
const thenMs = fc.oneof(
  { weight: 2, arbitrary: fc.integer({ min: 0, max: 300 }) },
  { weight: 2, arbitrary: fc.integer({ min: 300, max: 10_000 }) },
  { weight: 2, arbitrary: fc.integer({ min: 10_000, max: 3 * minute }) },
  { weight: 2, arbitrary: fc.integer({ min: 3 * minute, max: 20 * minute }) },
)
const forMs = fc.oneof(fc.integer({ min: 100, max: 5_000 }), fc.integer({ min: 5_000, max: 20 * minute }))
const restartAfterMs = fc.oneof(
  fc.integer({ min: 10, max: 2_000 }),
  fc.integer({ min: 2_000, max: 5 * minute }),
)
/** A request can take effect until two minutes after the client gave up, which is after 30 seconds at the latest. */
const lateEffectMs = fc.oneof(fc.integer({ min: 0, max: 3_000 }), fc.integer({ min: 3_000, max: 149_000 }))
const soonEffectMs = fc.option(fc.integer({ min: 0, max: 119_000 }), { nil: undefined })

const outage: fc.Arbitrary<Fate> = fc.oneof(
  fc.constantFrom(500, 503, 401, 403, 429).map((status) => ({ kind: 'status', status }) as const),
  fc.constantFrom(503, 429).map((status) => ({ kind: 'status', status, retryAfterMs: 3_600_000 }) as const),
  fc.constantFrom(
    { kind: 'unreachable' } as const,
    { kind: 'no-token' } as const,
    { kind: 'silent' } as const,
  ),
)

const fate: fc.Arbitrary<Fate> = fc.oneof(
  outage,
  fc.record({
    kind: fc.constant('status' as const),
    status: fc.constantFrom(500, 502, 504),
    effectAfterMs: soonEffectMs,
  }),
  fc.record({ kind: fc.constant('reset' as const), effectAfterMs: soonEffectMs }),
  fc.record({ kind: fc.constant('silent' as const), effectAfterMs: lateEffectMs }),
  fc
    .tuple(fc.integer({ min: 0, max: 149_000 }), fc.integer({ min: 0, max: 20_000 }))
    .map(
      ([effectAfterMs, laterMs]) =>
        ({ kind: 'slow', effectAfterMs, answerAfterMs: effectAfterMs + laterMs }) as const,
    ),
  fc.constant({ kind: 'garbled' } as const),
)

const happenings = {
  wait: fc.record({ do: fc.constant('wait' as const), thenMs }),
  end: fc.record({
    do: fc.constant('end' as const),
    users: fc.oneof(
      fc.tuple(user),
      fc.subarray([...pool.keys()].slice(0, fewUsers), { minLength: 1 }),
      fc.constant([...pool.keys()]),
    ),
    thenMs,
  }),
  callBack: fc.record({
    do: fc.constant('call back' as const),
    user,
    times: fc.integer({ min: 1, max: 3 }),
    observedAfterMs: fc.constantFrom(0, 20, 5_000, 55_000),
    thenMs,
  }),
  wearOut: fc.record({
    do: fc.constant('wear out' as const),
    user,
    forMs: fc.integer({ min: 5 * minute, max: 40 * minute }),
    thenMs,
  }),
  breakReceiver: fc.record({ do: fc.constant('break receiver' as const), forMs, thenMs }),
  weather: fc.record({ do: fc.constant('weather' as const), fate: outage, forMs, thenMs }),
  fates: fc.record({
    do: fc.constant('fates' as const),
    fates: fc.array(fate, { minLength: 1, maxLength: 4 }),
    thenMs,
  }),
  refuse: fc.record({ do: fc.constant('refuse' as const), user, forMs, thenMs }),
  want: fc.record({ do: fc.constant('want' as const), user, thenMs }),
  wantNoLonger: fc.record({ do: fc.constant('want no longer' as const), user, thenMs }),
  wantWhomNobodyCanSend: fc.record({ do: fc.constant('want whom nobody can send' as const), forMs, thenMs }),
  roster: fc.record({
    do: fc.constant('roster' as const),
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
    thenMs,
  }),
  failingStore: fc.record({
    do: fc.constant('store' as const),
    mode: fc.constantFrom<StoreMode[]>('failing', 'hanging', 'swallowing', 'stale'),
    forMs,
    thenMs,
  }),
  forget: fc.record({ do: fc.constant('forget' as const), thenMs }),
  crash: fc.record({ do: fc.constant('crash' as const), node, restartAfterMs, thenMs }),
  crashLater: fc.record({
    do: fc.constant('crash later' as const),
    node,
    operations: fc.integer({ min: 1, max: 30 }),
    dies: fc.constantFrom('before', 'after'),
    restartAfterMs,
    thenMs,
  }),
  stop: fc.record({ do: fc.constant('stop' as const), node, restartAfterMs, thenMs }),
  suspend: fc.record({ do: fc.constant('suspend' as const), node, forMs, thenMs }),
  sleep: fc.record({ do: fc.constant('sleep' as const), node, forMs, thenMs }),
  pause: fc.record({ do: fc.constant('pause' as const), node, forMs, thenMs }),
  cutOff: fc.record({ do: fc.constant('cut off' as const), node, forMs, thenMs }),
  jumpClock: fc.record({
    do: fc.constant('jump clock' as const),
    node,
    byMs: fc.constantFrom(-86_400_000, -600_000, -30_000, 30_000, 600_000, 86_400_000),
    thenMs,
  }),
  startAnother: fc.record({ do: fc.constant('start another' as const), thenMs }),
  sweep: fc.record({ do: fc.constant('sweep' as const), thenMs }),
  rotate: fc.record({ do: fc.constant('rotate' as const), thenMs }),
  reconfigure: fc.record({ do: fc.constant('reconfigure' as const), configuration: fc.nat(5), thenMs }),
  subscribeSomebodyElse: fc.record({
    do: fc.constant('subscribe somebody else' as const),
    user,
    with: user,
    thenMs,
  }),
  subscribeTwin: fc.record({ do: fc.constant('subscribe twin' as const), user, thenMs }),
} satisfies Record<string, fc.Arbitrary<Step>>

export type Happening = keyof typeof happenings

/** What kind of sequences. */
export interface Kind {
  /** What can happen. */
  readonly happenings: readonly Happening[]
  readonly usersAtLeast?: number
  /** Of the number of sequences that others of another kind get. */
  readonly share?: number
  /** What the keepers do at the first meeting with a user. */
  readonly existing?: 'replace' | 'report'
}

export function scenarios({
  happenings: names,
  usersAtLeast = 1,
  existing = 'replace',
}: Kind): fc.Arbitrary<Scenario> {
  const isForOne = !names.includes('startAnother')
  return fc.record({
    seed: fc.nat(),
    users: fc.integer({ min: usersAtLeast, max: usersAtLeast + fewUsers - 1 }),
    hasCompareAndSet: isForOne ? fc.boolean() : fc.constant(true),
    isStoreSynchronous: fc.boolean(),
    hasParameters: fc.boolean(),
    trafficEveryMs: fc.constantFrom(undefined, 20_000, 120_000),
    sweepIntervalMs: fc.constantFrom(15 * minute, 15 * minute, 2 * minute, 40 * minute),
    maxRequestsPerSecond: fc.constantFrom(50, 50, 5, 1),
    concurrency: fc.constantFrom(8, 8, 2, 1),
    existing: fc.constant(existing),
    steps: fc.array(fc.oneof(...names.map((name): fc.Arbitrary<Step> => happenings[name])), {
      minLength: 1,
      maxLength: 14,
      size: 'max',
    }),
  })
}
