/** The options of a single call, and their schema. */
import * as z from 'zod'
import type { RetryOptions } from '../http/retry.js'
import { abortSignalSchema } from '../shared/object-schemas.js'
import { retrySchema, timeoutSchema } from './common-schemas.js'

/** What a caller may set on each call. */
export interface CallOptions {
  /** Aborts the call, which then rejects with the signal's own reason. Default: none. */
  readonly signal?: AbortSignal | undefined
  /** Limit for the whole call, token and retries included, in milliseconds. Default: the client's. */
  readonly timeoutMs?: number | undefined
  /**
   * How failed attempts of this call are repeated; `false` for not at all. Default: as the client's option says, for
   * each field that is left out. Token requests serve many calls, so they follow the client's option alone.
   */
  readonly retry?: RetryOptions | false | undefined
}

/** The schema of {@link CallOptions}. Lazy, because most calls have no options. */
export const callOptionsSchema = z.lazy(() =>
  z.strictObject({
    signal: abortSignalSchema().optional(),
    timeoutMs: timeoutSchema().optional(),
    retry: retrySchema().optional(),
  }),
)
