/** Calls of a user's functions: what they throw or reject with never gets out. */
import type { InFlight } from './in-flight.js'

/** Counts calls that are not done. */
export type Calls = Pick<InFlight, 'begin' | 'end'>

/**
 * Calls a function, which is one of `calls` until it is done. What it throws or rejects with goes to `onFailure`,
 * which may start further ones.
 */
export const callSafely = (call: () => unknown, onFailure: (error: unknown) => void, calls?: Calls): void => {
  try {
    const result = call()
    // Only an object can be a promise: a synchronous function costs none.
    if (Object(result) !== result) return
    const promise = Promise.resolve(result)
    calls?.begin()
    promise.then(calls?.end, (error) => {
      onFailure(error)
      calls?.end()
    })
  } catch (error) {
    onFailure(error)
  }
}
