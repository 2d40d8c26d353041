/** How a receiver is configured: the options and their validation. */
import { z } from 'zod'
import type { InvalidDeliveryError } from '../../errors.js'
import { headerName, headerNameRule, headerValue, headerValueRule } from '../../header-syntax.js'
import { issuesOf } from '../../issues.js'
import type { Logger } from '../../logger.js'
import type { NoPayloadSchemas, NotificationOf, PayloadSchemas } from '../delivery.js'
import type { DeliveryParser } from '../delivery-parser.js'
import { refuseOptions } from '../options.js'
import type { Secrets } from './authentication.js'
import type { DeliveryContext } from './handlers.js'

/** What a `DeliveryReceiver` needs: either `secrets` or `allowUnauthenticated: true`, the rest has defaults. */
export type DeliveryReceiverOptions<Payloads extends PayloadSchemas = NoPayloadSchemas> =
  ReceiverSettings<Payloads> & (Authenticated | Unauthenticated)

/**
 * Lets in what carries the secrets.
 *
 * @inline
 */
interface Authenticated {
  /**
   * What proves that a callback comes from the service (interface.md section 5, rule 6): accepted values by the
   * name of a header, in any case. These are parameters or headers that the subscription was created with.
   * Every header named here must be there once, with one of its accepted values; two values let a secret be
   * rotated while deliveries arrive.
   *
   * @example
   * ```ts
   * new DeliveryReceiver({ secrets: { token: [currentToken, previousToken] } })
   * ```
   */
  readonly secrets: Secrets
  /** Not with `secrets`. */
  readonly allowUnauthenticated?: false | undefined
}

/**
 * Lets everybody in.
 *
 * @inline
 */
interface Unauthenticated {
  /** Not with `allowUnauthenticated`. */
  readonly secrets?: undefined
  /** Accepts callbacks from anyone who can reach the route. */
  readonly allowUnauthenticated: true
}

/** Everything that can be set besides who is let in. */
export interface ReceiverSettings<Payloads extends PayloadSchemas> {
  /** From `createDeliveryParser`: types the payloads of further notification types. */
  readonly parser?: DeliveryParser<Payloads> | undefined
  /**
   * Gets every body that was answered with 204 although it is no delivery: `error.issues` says why,
   * `error.body` is what was received. It may be asynchronous. Default: the logger gets a line.
   */
  readonly onInvalid?: ((error: InvalidDeliveryError) => unknown) | undefined
  /**
   * Gets what a handler threw or rejected with, and what the handler got. It may be asynchronous. Default: the
   * logger gets a line.
   */
  readonly onError?:
    | ((
        error: unknown,
        notification: NotificationOf<Payloads>,
        context: DeliveryContext<Payloads>,
      ) => unknown)
    | undefined
  /**
   * How long an answer waits for the handlers, in milliseconds. Handlers that take longer go on after it.
   * Default: 2,000: how long the service waits before it counts a failure is not documented, and 2 seconds are
   * less than the limits that senders usually set.
   */
  readonly ackTimeoutMs?: number | undefined
  /** The largest body that is read, in bytes, also after decompression. Default: 1,048,576 (1 MiB). */
  readonly maxBodyBytes?: number | undefined
  /** Gets a line for each refusal and failure, never a secret. Default: silent. */
  readonly logger?: Logger | undefined
}

const subject = 'The delivery receiver'

/** @throws `ConfigurationError` with every problem found. Callers in JavaScript may pass anything. */
export function validateReceiverOptions(options: unknown): void {
  const { error } = optionsSchema().safeParse(options)
  if (error) refuseOptions(subject, issuesOf(error))
}

/** @throws `ConfigurationError` about one value unless it is right. */
export function refuseUnless(isRight: boolean, name: string, message: string): void {
  if (!isRight) refuseOptions(subject, [{ path: [name], message }])
}

/** The longest delay that a timer takes; a longer one would fire at once. */
const maxTimeoutMs = 2 ** 31 - 1

// Made when it is needed: parsing deliveries alone needs none of it.
function optionsSchema() {
  const functionSchema = z.custom((value) => typeof value === 'function', 'must be a function')
  return z
    .strictObject({
      secrets: z.unknown().superRefine(checkSecrets),
      allowUnauthenticated: z.boolean(),
      parser: objectWith('safeParse'),
      onInvalid: functionSchema,
      onError: functionSchema,
      ackTimeoutMs: z.number().min(0).max(maxTimeoutMs),
      maxBodyBytes: z.int().min(1),
      logger: objectWith('debug', 'info', 'warn', 'error'),
    })
    .partial()
    .refine(({ secrets, allowUnauthenticated = false }) => (secrets === undefined) === allowUnauthenticated, {
      path: ['secrets'],
      error: ({ input }) =>
        Object(input).secrets
          ? 'contradict `allowUnauthenticated: true`'
          : 'are missing: anyone could send deliveries; `allowUnauthenticated: true` accepts that',
    })
}

function objectWith(...methods: string[]) {
  return z.custom(
    (value) => methods.every((method) => typeof Object(value)[method] === 'function'),
    `must have the methods ${methods.join(', ')}`,
  )
}

function checkSecrets(secrets: unknown, context: z.RefinementCtx): void {
  const refuse = (message: string, ...path: PropertyKey[]) =>
    context.addIssue({ code: 'custom', path, message })
  if (typeof secrets !== 'object' || !secrets || Array.isArray(secrets)) {
    refuse('must be an object: accepted values by header name')
    return
  }
  const headers = Object.entries(secrets)
  if (headers.length === 0) refuse('must name a header')
  const secret = z
    .string()
    .min(1, 'must not be empty')
    .regex(headerValue, `is not the value of an HTTP header: ${headerValueRule}`)
  const severalSecrets = z.array(secret).min(1)
  const seen = new Set<string>()
  for (const [name, accepted] of headers) {
    if (!headerName.test(name)) {
      refuse(`is not the name of an HTTP header: ${headerNameRule}`, name)
    }
    const lowerCase = name.toLowerCase()
    if (seen.has(lowerCase)) refuse('is there twice: header names are the same in any case', name)
    seen.add(lowerCase)
    const { error } = (Array.isArray(accepted) ? severalSecrets : secret).safeParse(accepted)
    for (const { path, message } of error ? issuesOf(error) : []) refuse(message, name, ...path)
  }
}
