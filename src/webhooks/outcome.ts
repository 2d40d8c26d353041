/** The result of a step of reading a delivery: its value, or why there is none. No step throws. */
import type { Issue } from '../errors.js'

export type Outcome<T> = Success<T> | Failure

export interface Success<T> {
  readonly ok: true
  readonly value: T
}

export interface Failure {
  readonly ok: false
  readonly issues: readonly Issue[]
  /** What was thrown, if something was. */
  readonly cause?: unknown
}

export const success = <T>(value: T): Success<T> => ({ ok: true, value })

/** One sentence about the whole body; `cause` is what was thrown, if something was. */
export const failure = (message: string, cause?: unknown): Failure => ({
  ok: false,
  issues: [{ path: [], message }],
  ...(cause !== undefined && { cause }),
})
