/** An event of a random sequence: what it may be, and what it does to a world. */
import fc from 'fast-check'
import type { World } from '../world.js'

export interface Event {
  /** Plain data, which a counterexample shows. */
  readonly details: fc.Arbitrary<unknown>
  happen(world: World, details: unknown): void
}

export function event<Details extends object>(
  details: fc.Arbitrary<Details>,
  happen: (world: World, details: Details) => void,
): Event {
  // A sequence gives to each event what its own `details` have made.
  return { details, happen: (world, made) => happen(world, made as Details) }
}

export const nothing = fc.constant({})

export const minute = 60_000

/** How long a fault lasts. */
export const forMs = fc.oneof(
  fc.integer({ min: 100, max: 5_000 }),
  fc.integer({ min: 5_000, max: 20 * minute }),
)

/** Everybody who can be wanted. Most events are about the first few. */
export const pool = Array.from({ length: 24 }, (_, index) => `agent${index}`)
export const fewUsers = 8

export const user = fc.oneof(
  { weight: 7, arbitrary: fc.constantFrom(...pool.slice(0, fewUsers)) },
  { weight: 1, arbitrary: fc.constantFrom(...pool.slice(fewUsers)) },
)

/** Which of the living processes. */
export const node = fc.nat(2)
