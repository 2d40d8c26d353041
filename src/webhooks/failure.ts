/** Why a body is no delivery: thrown by the steps of reading one, until the error for it is made. */
import type { Issue } from '../errors.js'
import { messageOf } from '../text.js'

/** No `Error`, and without a stack: it never leaves the package. */
export class Failure {
  readonly issues: readonly Issue[]
  /** What was thrown, if something was. */
  readonly cause: unknown
  readonly #isFailure = true

  constructor(issues: readonly Issue[], cause?: unknown) {
    this.issues = issues
    this.cause = cause
  }

  /** What was thrown: a failure, or what came from outside, from a stream or an object whose getters throw. */
  static of(thrown: unknown): Failure {
    // Not `instanceof`, which a thrown proxy could make throw once more.
    if (Object(thrown) === thrown && #isFailure in (thrown as object)) return thrown as Failure
    return failure(`the body cannot be read (${messageOf(thrown)})`, thrown)
  }
}

/** One sentence, about the whole body if there is no path; `cause` is what was thrown, if something was. */
export const failure = (message: string, cause?: unknown, path: Issue['path'] = []): Failure =>
  new Failure([{ path, message }], cause)
