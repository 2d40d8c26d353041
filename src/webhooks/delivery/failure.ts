/** Why a body is no delivery: thrown by the steps of reading one, until the error for it is made. */
import type { Issue } from '../../errors.js'
import { messageOf } from '../../shared/excerpt.js'

/** No `Error`, and without a stack: it never leaves the package. */
export interface Failure {
  readonly issues: readonly Issue[]
  /** What was thrown, if something was. */
  readonly cause?: unknown
}

const failures = new WeakSet<object>()

/** `cause` is what was thrown, if something was. */
export const failureOf = (issues: readonly Issue[], cause?: unknown): Failure => {
  const failure = { issues, cause }
  failures.add(failure)
  return failure
}

/** What is wrong with the whole body, as the rest of a sentence about it. */
export const bodyFailure = (problem: string, cause?: unknown): Failure =>
  failureOf([{ path: [], message: `the body ${problem}` }], cause)

/** What was thrown: a failure, or what came from outside, from a stream or an object whose getters throw. */
export const thrownFailure = (thrown: unknown): Failure =>
  // Not `instanceof`, which a thrown proxy could make throw once more.
  failures.has(thrown as object)
    ? (thrown as Failure)
    : bodyFailure(`cannot be read (${messageOf(thrown)})`, thrown)
