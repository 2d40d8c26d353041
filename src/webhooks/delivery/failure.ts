/** Why a body is no delivery: thrown by the steps of reading one, until the error for it is made. */
import type { Issue } from '../../errors.js'
import { messageOf } from '../../shared/excerpt.js'

/** Not an `Error`, and without a stack, because a `Failure` never leaves the package. */
export class Failure {
  readonly issues: readonly Issue[]
  /** What was thrown, if something was. */
  readonly cause: unknown
  readonly #isFailure = true

  constructor(issues: readonly Issue[], cause?: unknown) {
    this.issues = issues
    this.cause = cause
  }

  /** @param problem - the rest of a sentence that begins with "the body" */
  static ofBody(problem: string, cause?: unknown): Failure {
    return new Failure([{ path: [], message: `the body ${problem}` }], cause)
  }

  /** The failure that was thrown; or one made of what else was thrown, by an object whose getters throw. */
  static of(thrown: unknown): Failure {
    // Not `instanceof`, which a thrown proxy could make throw once more.
    if (Object(thrown) === thrown && #isFailure in (thrown as object)) return thrown as Failure
    return Failure.ofBody(`cannot be read (${messageOf(thrown)})`, thrown)
  }
}
