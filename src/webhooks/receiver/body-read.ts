/** What came of reading a callback's body, which the adapters tell the receiver. */
import type { Issue } from '../../errors.js'
import { messageOf } from '../../shared/excerpt.js'

/** A body, or why there is none to use. `Body` is bytes where they were read here. */
export type BodyRead<Body = unknown> =
  | { readonly kind: 'body'; readonly body: Body }
  | { readonly kind: 'too-large' }
  | UnreadableBody

/** A body that did not arrive wholly, or cannot be decoded. */
export interface UnreadableBody {
  readonly kind: 'unreadable'
  readonly issues: readonly Issue[]
  /** What was thrown, if something was. */
  readonly cause: unknown
  /** What there is of the body. */
  readonly body: unknown
}

/** How long a body may take to arrive, in milliseconds: a sender that stops half way holds nothing for ever. */
export const bodyTimeoutMs = 10_000

/** @param problem - the rest of a sentence that begins with "the body" */
export function unreadableBody(problem: string, body: unknown, cause?: unknown): UnreadableBody {
  return { kind: 'unreadable', issues: [{ path: [], message: `the body ${problem}` }], cause, body }
}

/** A body that took longer than {@link bodyTimeoutMs}. */
export function lateBody(body: unknown): UnreadableBody {
  return unreadableBody(`did not arrive within ${bodyTimeoutMs} ms`, body)
}

/** A body that threw when it was read: a stream, or an object whose getters throw. */
export function failedBody(thrown: unknown, body: unknown): UnreadableBody {
  return unreadableBody(`cannot be read (${messageOf(thrown)})`, body, thrown)
}
