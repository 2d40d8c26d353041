/** What a caller may set on each call. */
import * as z from 'zod'
import type { RetryOptions } from '../http/retry.js'
import { retrySchema, timeoutSchema } from './common-schemas.js'

/** What a caller may set on each call. */
export interface CallOptions {
  /** Aborts the call: it rejects with the signal's own reason. */
  readonly signal?: AbortSignal | undefined
  /** Limit for the whole call, token and retries included, in milliseconds. Default: the client's. */
  readonly timeoutMs?: number | undefined
  /**
   * How failed attempts of this call are repeated; `false` for not at all. Default: the client's, for each field that
   * is left out. Token requests serve many calls and follow the client's.
   */
  readonly retry?: RetryOptions | false | undefined
}

/** Of {@link CallOptions}. Lazy, because most calls have none. */
export const callOptionsSchema = z.lazy(() =>
  z.strictObject({
    signal: z.custom<AbortSignal>(isAbortSignal, 'must be an AbortSignal').optional(),
    timeoutMs: timeoutSchema().optional(),
    retry: retrySchema().optional(),
  }),
)

/** By shape: a signal may come from another realm, or from a polyfill. */
function isAbortSignal(value: unknown): boolean {
  return typeof Object(value).aborted === 'boolean' && typeof Object(value).addEventListener === 'function'
}
