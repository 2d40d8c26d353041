/** Random sequences of events. */
import fc from 'fast-check'
import { type Event, fewUsers, minute } from './events/event.js'
import { processEvents } from './events/processes.js'
import { serviceEvents } from './events/service.js'
import { storeEvents } from './events/store.js'
import { userEvents } from './events/users.js'

export const events = { ...userEvents, ...serviceEvents, ...storeEvents, ...processEvents }

export type EventName = keyof typeof events

/** An event happens, and then some time passes. */
export interface Step {
  readonly event: EventName
  readonly details: unknown
  readonly thenMs: number
}

export interface Scenario {
  readonly seed: number
  readonly users: number
  readonly processes: number
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
  /** What happens when the faults have ended: an interval passes, or a new program does nothing but `sweep()`. */
  readonly ending: 'interval' | 'sweep'
}

/** What kind of sequences. */
export interface Kind {
  /** What can happen. */
  readonly events: readonly EventName[]
  readonly usersAtLeast?: number
  /** What keepers do about a subscription that they do not know. */
  readonly existing?: 'replace' | 'report'
}

const thenMs = fc.oneof(
  fc.integer({ min: 0, max: 300 }),
  fc.integer({ min: 300, max: 10_000 }),
  fc.integer({ min: 10_000, max: 3 * minute }),
  fc.integer({ min: 3 * minute, max: 20 * minute }),
)

/** A store without `compareAndSet` is for one process. */
const deployments = [
  { processes: 1, hasCompareAndSet: false },
  { processes: 1, hasCompareAndSet: true },
  { processes: 2, hasCompareAndSet: true },
  { processes: 3, hasCompareAndSet: true },
]

export function scenarios({
  events: names,
  usersAtLeast = 1,
  existing = 'replace',
}: Kind): fc.Arbitrary<Scenario> {
  const steps = names.map((event): fc.Arbitrary<Step> => {
    const { details }: Event = events[event]
    return fc.record({ event: fc.constant(event), details, thenMs })
  })
  return fc
    .record({
      seed: fc.nat(),
      users: fc.integer({ min: usersAtLeast, max: usersAtLeast + fewUsers - 1 }),
      deployment: fc.constantFrom(...deployments),
      isStoreSynchronous: fc.boolean(),
      hasParameters: fc.boolean(),
      trafficEveryMs: fc.constantFrom(undefined, 20_000, 120_000),
      sweepIntervalMs: fc.constantFrom(15 * minute, 15 * minute, 2 * minute, 25 * minute),
      maxRequestsPerSecond: fc.constantFrom(50, 50, 5, 1),
      concurrency: fc.constantFrom(8, 8, 2, 1),
      existing: fc.constant(existing),
      steps: fc.array(fc.oneof(...steps), { minLength: 1, maxLength: 14, size: 'max' }),
      ending: fc.constantFrom('interval', 'interval', 'sweep'),
    })
    .map(({ deployment, ...scenario }) => ({ ...scenario, ...deployment }))
}
