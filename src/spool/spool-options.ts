/** How a spool is configured: the options and their validation. */
import * as z from 'zod'
import type { Logger } from '../logger.js'
import { issuesOf } from '../shared/issues.js'
import { maxDelayMs } from '../shared/max-delay.js'
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
   * What is to be done with a delivery: the work itself, or handing it to a queue. The delivery leaves the spool
   * when the function has returned, or its promise has resolved; when it throws or rejects, it is called again,
   * after 1 second at first and 1 minute at most. It can get a delivery twice: the process may die between the end
   * of the call and the removal from the disk.
   */
  readonly deliver: (delivery: Delivery<Payloads>, attempt: DeliveryAttempt) => unknown
  /**
   * From `createDeliveryParser`: reads each entry when it is delivered. A payload schema that changes what it
   * reads belongs here and not into the receiver, because the disk holds what the receiver made of the body.
   */
  readonly parser?: DeliveryParser<Payloads> | undefined
  /** How many deliveries `deliver` has at a time; at most half of them are repetitions. From 1 to 1,000. Default: 16. */
  readonly concurrency?: number | undefined
  /** How long one call of `deliver` may take, in milliseconds, before it counts as failed. Default: 60,000. */
  readonly deliverTimeoutMs?: number | undefined
  /**
   * Gets a delivery that has failed ten times, and then once an hour for as long as it fails. It may be
   * asynchronous, for up to `deliverTimeoutMs`. The result `'discard'` gives the delivery up; after any other it
   * is tried again. Default: a line for the logger, or on `console.error` where there is none.
   */
  readonly onStuck?: ((stuck: StuckDelivery<Payloads>) => unknown) | undefined
  /** How much the waiting deliveries may take of the disk, in bytes. Default: 1,073,741,824 (1 GiB). */
  readonly maxBytes?: number | undefined
  /**
   * Gets a `warn` for each failed attempt, and an `error` for what somebody should look at. Default: the errors
   * go to `console.error`. `false` silences it.
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

/** @throws `ConfigurationError` with every problem found. Callers in JavaScript may pass anything. */
export function validateSpoolOptions(options: unknown): void {
  const { error } = optionsSchema().safeParse(options)
  if (error) refuseOptions('The delivery spool', issuesOf(error))
}

// Made when it is needed: at most once per process, as a rule.
const optionsSchema = () =>
  z.strictObject({
    path: z.string().min(1, 'must name a folder').refine(isWithoutNul, 'must not contain a NUL character'),
    deliver: z.function(),
    parser: objectWith('safeParse').optional(),
    concurrency: z.int().min(1).max(1_000).optional(),
    deliverTimeoutMs: z.number().min(1).max(maxDelayMs).optional(),
    onStuck: z.function().optional(),
    maxBytes: z.int().min(0).optional(),
    logger: z.union([z.literal(false), objectWith('debug', 'info', 'warn', 'error')]).optional(),
  })

function isWithoutNul(text: string): boolean {
  return !text.includes('\0')
}

function objectWith(...methods: string[]) {
  return z.custom(
    (value) => methods.every((method) => typeof Object(value)[method] === 'function'),
    `must have the methods ${methods.join(', ')}`,
  )
}
