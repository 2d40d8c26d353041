/** How a receiver is configured: the options and their validation. */
import * as z from 'zod'
import type { InvalidDeliveryError } from '../../errors.js'
import type { Logger } from '../../logger.js'
import { headerName, headerNameRule, headerValue, headerValueRule } from '../../shared/header-syntax.js'
import { issuesOf } from '../../shared/issues.js'
import { maxDelayMs } from '../../shared/max-delay.js'
import type { NoPayloadSchemas, NotificationOf, PayloadSchemas } from '../delivery/delivery.js'
import type { DeliveryParser } from '../delivery/delivery-parser.js'
import { refuseOptions } from '../delivery/refuse-options.js'
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
export const validateReceiverOptions = (options: unknown): void => {
  const { error } = optionsSchema().safeParse(options)
  if (error) refuseOptions(subject, issuesOf(error))
}

/** @throws `ConfigurationError` about a value that is not of a type. */
export const requireType = (type: 'string' | 'function', value: unknown, name: string): void => {
  if (typeof value !== type) refuseOptions(subject, [{ path: [name], message: `must be a ${type}` }])
}

// Made when it is needed: parsing deliveries alone needs none of it.
const optionsSchema = () =>
  z
    .strictObject({
      secrets: z.unknown().superRefine(checkSecrets),
      allowUnauthenticated: z.boolean(),
      parser: objectWith('safeParse'),
      onInvalid: z.function(),
      onError: z.function(),
      ackTimeoutMs: z.number().min(0).max(maxDelayMs),
      maxBodyBytes: z.int().min(1),
      logger: objectWith('debug', 'info', 'warn', 'error'),
    })
    .partial()
    .refine(({ secrets, allowUnauthenticated = false }) => (secrets === undefined) === allowUnauthenticated, {
      path: ['secrets'],
      error: 'either these or `allowUnauthenticated: true`, which lets everyone in',
    })

const objectWith = (...methods: string[]) =>
  z.custom(
    (value) => methods.every((method) => typeof Object(value)[method] === 'function'),
    `must have the methods ${methods.join(', ')}`,
  )

const checkSecrets = (secrets: unknown, context: z.RefinementCtx): void => {
  const refuse = (message: string, ...path: PropertyKey[]) =>
    context.addIssue({ code: 'custom', path, message })
  const headers = Array.isArray(secrets) || typeof secrets !== 'object' ? [] : Object.entries(Object(secrets))
  if (headers.length === 0) refuse('must hold accepted values by header name')
  const seen = new Set<string>()
  for (const [name, accepted] of headers) {
    if (!headerName.test(name)) {
      refuse(`a header name has ${headerNameRule}`, name)
    }
    const lowerCase = name.toLowerCase()
    if (seen.has(lowerCase)) refuse('is there twice: case does not count', name)
    seen.add(lowerCase)
    const isList = Array.isArray(accepted) && accepted.length > 0
    for (const [index, value] of (isList ? accepted : [accepted]).entries()) {
      if (typeof value !== 'string' || value === '' || !headerValue.test(value)) {
        refuse(`must be text, not empty: ${headerValueRule}`, name, ...(isList ? [index] : []))
      }
    }
  }
}
