/** How a spool is configured: the options and their validation. */
import * as z from 'zod'
import type { Logger } from '../logger.js'
import { validate } from '../shared/issues.js'
import { maxDelayMs } from '../shared/max-delay.js'
import { loggerSchema, objectWith } from '../shared/object-schemas.js'
import type { Delivery, NoPayloadSchemas, PayloadSchemas } from '../webhooks/delivery/delivery.js'
import type { DeliveryParser } from '../webhooks/delivery/delivery-parser.js'
import { refuseOptions } from '../webhooks/delivery/refuse-options.js'

/** What a `DeliverySpool` needs: `path` and `deliver`, the rest has defaults. */
export interface DeliverySpoolOptions<Payloads extends PayloadSchemas = NoPayloadSchemas> {
  /**
   * The folder that holds the spool, on a local disk. Created with mode 0700 if it is not there. One process at a
   * time can have it open.
   */
  readonly path: string
  /**
   * What is to be done with a delivery: the work itself, or handing it to a queue. The delivery leaves the spool when
   * the function has returned, or its promise has resolved; when the function throws or rejects, it is called again,
   * after 1 second at first and 1 minute at most. A delivery can come twice: the process may die between the end of
   * the call and the removal from the disk.
   */
  readonly deliver: (delivery: Delivery<Payloads>, attempt: DeliveryAttempt) => unknown
  /**
   * From `createDeliveryParser`: reads each entry when it is delivered. A payload schema that changes what it reads
   * belongs here and not into the receiver, because the disk holds what the receiver made of the body. Default: one
   * that knows the documented payload.
   */
  readonly parser?: DeliveryParser<Payloads> | undefined
  /** How many calls of `deliver` run at a time, 1 to 1,000; at most half of them are repetitions. Default: 16. */
  readonly concurrency?: number | undefined
  /** How long one call of `deliver` may take, in milliseconds, before it counts as failed. Default: 60,000. */
  readonly deliverTimeoutMs?: number | undefined
  /**
   * Gets a delivery that has failed ten times, and then once an hour for as long as it fails. The function may be
   * asynchronous, for up to `deliverTimeoutMs`. Its result `'discard'` gives the delivery up; after any other the
   * delivery is tried again. Default: a line to the logger, or to `console.error` if there is none.
   */
  readonly onStuck?: ((stuck: StuckDelivery<Payloads>) => unknown) | undefined
  /** How much the waiting deliveries may take of the disk, in bytes. Default: 1,073,741,824 (1 GiB). */
  readonly maxBytes?: number | undefined
  /**
   * Gets a `warn` line for each failed attempt, and an `error` line for what somebody should look at; `false` silences
   * the spool. Default: both go to `console.error`, of the failed attempts at most one a minute.
   */
  readonly logger?: Logger | false | undefined
}

/** What `deliver` learns besides the delivery. */
export interface DeliveryAttempt {
  /**
   * Aborted when the call has taken `deliverTimeoutMs`, or when `close` waits no longer. Pass it on to what can be
   * aborted; the call counts as failed in any case.
   */
  readonly signal: AbortSignal
}

/** A delivery that fails again and again. */
export interface StuckDelivery<Payloads extends PayloadSchemas = NoPayloadSchemas> {
  /** The delivery. */
  readonly delivery: Delivery<Payloads>
  /** How often it has failed, in this process and earlier ones. */
  readonly attempts: number
  /** When it was kept, in milliseconds since 1970. */
  readonly sinceAt: number
  /** What `deliver` threw or rejected with at last. */
  readonly error: unknown
}

/** @throws `ConfigurationError` with every problem found; callers in JavaScript may pass anything */
export function validateSpoolOptions(options: unknown): void {
  validate(optionsSchema(), options, (issues) => refuseOptions(subject, issues))
}

/** @throws `ConfigurationError` about options of `close` that are unknown, or no time that a timer can wait for */
export function validateCloseOptions(options: unknown): void {
  const schema = z.strictObject({ timeoutMs: z.number().min(0).max(maxDelayMs).optional() })
  validate(schema, options, (issues) => refuseOptions(subject, issues))
}

const subject = 'The delivery spool'

// Made when a spool is opened, as a rule once per process.
const optionsSchema = () =>
  z.strictObject({
    path: z
      .string()
      .min(1, 'is empty: name a folder')
      .refine(isWithoutNul, 'must not contain a NUL character'),
    deliver: z.function(),
    parser: objectWith(['safeParse'], 'a parser from createDeliveryParser').optional(),
    concurrency: z.int().min(1).max(1_000).optional(),
    deliverTimeoutMs: z.number().min(1).max(maxDelayMs).optional(),
    onStuck: z.function().optional(),
    maxBytes: z.int().min(0).optional(),
    logger: loggerSchema().optional(),
  })

function isWithoutNul(text: string): boolean {
  return !text.includes('\0')
}
