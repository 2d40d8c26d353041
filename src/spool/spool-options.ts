/** The options of a spool, their validation, and the reports that follow from them. */
import { join } from 'node:path'
import * as z from 'zod'
import { consoleLogOf, type Logger, logOf, sparse } from '../logger.js'
import { messageOf } from '../shared/text.js'
import { configurationError, loggerSchema, validate } from '../shared/validation.js'
import { maxDelayMs } from '../shared/waits.js'
import type { Delivery, NoPayloadSchemas, PayloadSchemas } from '../webhooks/schemas.js'

/** The options of a `DeliverySpool`: `path` and `deliver` are required. */
export interface DeliverySpoolOptions<Payloads extends PayloadSchemas = NoPayloadSchemas> {
  /** The folder, on a local disk; created with mode 0700 if it does not exist. One process at a time can open it. */
  readonly path: string
  /**
   * Does the work, or passes the delivery to a queue. When the function returns or resolves, the delivery leaves the
   * spool. When it throws or rejects, it is called again, after 1 second at first and 1 minute at most. It may get a
   * delivery twice (docs/spool.md, What is promised). Runs in the async context in which `open` was called.
   */
  readonly deliver: (delivery: Delivery<Payloads>, attempt: DeliveryAttempt) => unknown
  /**
   * Payload schemas by `notification.type`, as for `createDeliveryParser`; give the receiver the same ones. Set a schema
   * that transforms only here: the disk holds the receiver's result. Default: only the documented payloads are checked.
   */
  readonly payloads?: Payloads | undefined
  /** How many calls of `deliver` run at a time, 1 to 1,000; at most half of them are repetitions. Default: 16. */
  readonly concurrency?: number | undefined
  /** How long one call of `deliver` may take, in milliseconds, before it counts as failed. Default: 60,000. */
  readonly deliverTimeoutMs?: number | undefined
  /**
   * Called when a delivery has failed ten times, and then once an hour while it fails. The function may be asynchronous,
   * for up to `deliverTimeoutMs`. After the result `'dead-letter'` the delivery becomes a dead letter, `'discard'` drops
   * it; otherwise it is tried again. Default: only a log line.
   */
  readonly onStuck?: ((stuck: StuckDelivery<Payloads>) => unknown) | undefined
  /** The disk quota of deliveries and their dead letters, in bytes; a file counts in blocks of 4,096. Default: 1,073,741,824 (1 GiB). */
  readonly maxBytes?: number | undefined
  /**
   * Gets the events of docs/observability.md, Spool; `false` turns logging off. Default: warnings and errors go to
   * `console.error`. Failed attempts are logged once a minute at most, with their number.
   */
  readonly logger?: Logger | false | undefined
}

/** The second argument of `deliver`. */
export interface DeliveryAttempt {
  /** Aborted after `deliverTimeoutMs`, or when `close` stops waiting. Then the delivery is repeated, whatever the call returns. */
  readonly signal: AbortSignal
  /** The header `traceparent` of the callback, to continue its trace (docs/observability.md, Traces). */
  readonly traceparent?: string | undefined
}

/** A delivery that keeps failing. */
export interface StuckDelivery<Payloads extends PayloadSchemas = NoPayloadSchemas> {
  readonly delivery: Delivery<Payloads>
  /** How often it has failed, in this process and earlier ones. */
  readonly attempts: number
  /** When it was received, in milliseconds since 1970. */
  readonly sinceAt: number
  /** The last error of `deliver`. */
  readonly error: unknown
}

export const defaults = { concurrency: 16, deliverTimeoutMs: 60_000, maxBytes: 2 ** 30 } as const

/** @throws `ConfigurationError` with every problem found; callers in JavaScript may pass anything */
export function validateSpoolOptions(options: unknown): void {
  const schema = z.strictObject({
    path: z.string().min(1, 'is empty: name a folder'),
    deliver: z.function(),
    // Validated by `createDeliveryParser`.
    payloads: z.unknown().optional(),
    concurrency: z.int().min(1).max(1_000).optional(),
    deliverTimeoutMs: z.number().min(1).max(maxDelayMs).optional(),
    onStuck: z.function().optional(),
    maxBytes: z.int().min(0).optional(),
    logger: loggerSchema().optional(),
  })
  validate(schema, options, invalidSpool)
}

/** @throws `ConfigurationError` that names the folder and the system's error */
export function invalidPath(folder: string, problem: string, cause?: unknown): never {
  const why = cause === undefined ? '' : ` (${messageOf(cause)})`
  throw invalidSpool([{ path: ['path'], message: `the folder ${folder} ${problem}${why}` }], { cause })
}

export const invalidSpool = configurationError('The delivery spool cannot work')

export type SpoolReports = ReturnType<typeof reportsOf>

export function reportsOf(path: string, logger: DeliverySpoolOptions['logger']) {
  const always = consoleLogOf(logger)
  const perMinute = sparse(always)
  return {
    toLogger: logOf(logger),
    /** To the logger or `console.error`, once a minute: events that an outage may cause without limit. */
    perMinute,
    /** To the logger or `console.error`: events that need attention. */
    always,
    writeFailed(err: unknown, message: string): void {
      perMinute('error', { event: 'spool.write-failed', err }, message)
    },
    readFailed(name: string, err: unknown, message: string): void {
      perMinute('error', { event: 'spool.read-failed', file: join(path, name), err }, message)
    },
    /** A file is damaged at this offset, or has a name that cannot be read. */
    damaged(name: string, offset?: number): void {
      const damage = { file: join(path, name), ...(offset === undefined ? {} : { offset }) }
      always('error', { event: 'spool.damaged', ...damage }, 'A file of the spool is damaged')
    },
  }
}
