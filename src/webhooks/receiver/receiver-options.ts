/** How a receiver is configured: the options and their validation. */
import * as z from 'zod'
import type { InvalidDeliveryError } from '../../errors.js'
import type { Logger } from '../../logger.js'
import { headerName, headerNameRule, headerValue, headerValueRule } from '../../shared/header-syntax.js'
import { validate } from '../../shared/issues.js'
import { maxDelayMs } from '../../shared/max-delay.js'
import { loggerSchema, objectWith } from '../../shared/object-schemas.js'
import type { NoPayloadSchemas, Notification, PayloadSchemas } from '../delivery/delivery.js'
import type { DeliveryParser } from '../delivery/delivery-parser.js'
import { payloadsOptionSchema } from '../delivery/payloads-option.js'
import { refuseOptions } from '../delivery/refuse-options.js'
import type { DeliveryContext } from './handlers.js'
import type { RefusedCallback } from './refusal.js'

/** What a `DeliveryReceiver` needs: either `secrets` or `allowUnauthenticated: true`, the rest has defaults. */
export type DeliveryReceiverOptions<Payloads extends PayloadSchemas = NoPayloadSchemas> =
  OptionalOptions<Payloads> & (Authenticated | Unauthenticated)

/**
 * Options of a receiver that lets in only what carries the secrets.
 *
 * @inline
 */
interface Authenticated {
  /**
   * What proves that a callback comes from the service (docs/service.md, Authentication): accepted values by the
   * name of a header, in any case. The headers are parameters or headers that the subscription was created with.
   * Every header named here must be there once, with one of its accepted values; two values let a secret be
   * rotated while deliveries arrive.
   *
   * @example
   * ```ts
   * new DeliveryReceiver({ secrets: { token: [currentToken, previousToken] } })
   * ```
   */
  readonly secrets: Readonly<Record<string, string | readonly string[]>>
  /** Cannot be `true` together with `secrets`. Default: `false`. */
  readonly allowUnauthenticated?: false | undefined
}

/**
 * Options of a receiver that lets everybody in.
 *
 * @inline
 */
interface Unauthenticated {
  /** Cannot be given together with `allowUnauthenticated: true`. */
  readonly secrets?: undefined
  /** Accepts callbacks from anyone who can reach the route. */
  readonly allowUnauthenticated: true
}

/**
 * Everything that can be set besides who is let in.
 *
 * @inline
 */
interface OptionalOptions<Payloads extends PayloadSchemas> {
  /**
   * Payload schemas by `notification.type`, as {@link createDeliveryParser} takes them: they check and type the
   * payloads of further notification types. Default: the documented one alone.
   *
   * @example
   * ```ts
   * import * as z from 'zod'
   *
   * new DeliveryReceiver({
   *   secrets: { token: currentToken },
   *   payloads: { cxScoreUpdated: z.object({ score: z.number() }) },
   * }).on('cxScoreUpdated', ({ payload }) => console.log(payload.score.toFixed(1)))
   * ```
   */
  readonly payloads?: Payloads | undefined
  /** A parser from `createDeliveryParser`, in place of `payloads`, where one is shared. Default: made from `payloads`. */
  readonly parser?: DeliveryParser<Payloads> | undefined
  /**
   * Gets every body that was answered with 204 although it is no delivery: `error.issues` says why, `error.body` is what
   * was received. The function may be asynchronous. Default: a line to the logger, or to `console.error` if there is
   * none.
   */
  readonly onInvalid?: ((error: InvalidDeliveryError) => unknown) | undefined
  /**
   * Gets what a handler threw or rejected with, and what the handler got. The function may be asynchronous. Default: a
   * line to the logger, or to `console.error` if there is none.
   */
  readonly onError?:
    | ((
        error: unknown,
        notification: Notification<string, Payloads>,
        context: DeliveryContext<Payloads>,
      ) => unknown)
    | undefined
  /**
   * Gets every request that was refused with 401, 405 or 413. The function may be asynchronous; the answer does not wait
   * for it. Default: a line to the logger, or at most one a minute to `console.error` if there is none.
   */
  readonly onRefused?: ((refused: RefusedCallback) => unknown) | undefined
  /**
   * How long an answer waits for the handlers, in milliseconds. Handlers that take longer go on after the answer. How
   * long the service waits before it counts a failure is not documented; 2 seconds are less than the limits that senders
   * usually set. Default: 2,000.
   */
  readonly ackTimeoutMs?: number | undefined
  /** The largest body that is read, in bytes, also after decompression. Default: 1,048,576 (1 MiB). */
  readonly maxBodyBytes?: number | undefined
  /**
   * Gets a line for each delivery, refusal and failure, never a secret; `false` silences the receiver. Default: what
   * would be lost goes to `console.error`, and nothing else: see `onInvalid`, `onError` and `onRefused`.
   */
  readonly logger?: Logger | false | undefined
}

const subject = 'The delivery receiver'
const routeSubject = 'The callback route'

/** @throws `ConfigurationError` with every problem found; callers in JavaScript may pass anything */
export function validateReceiverOptions(options: unknown): void {
  validate(optionsSchema(), options, (issues) => refuseOptions(subject, issues))
}

/** @throws `ConfigurationError` about an argument that is not of a type */
export function requireType(type: 'string' | 'function', value: unknown, name: string): void {
  const message = type === 'string' ? 'must be text' : 'must be a function'
  if (typeof value !== type) refuseOptions(subject, [{ path: [name], message }])
}

/** @throws `ConfigurationError` about options of `drain` that are unknown, or no time that a timer can wait for */
export function validateDrainOptions(options: unknown): void {
  const schema = z.strictObject({ timeoutMs: delaySchema().optional() })
  validate(schema, options, (issues) => refuseOptions(subject, issues))
}

/** @throws `ConfigurationError` about options of a callback route */
export function validateRouteOptions(shape: z.core.$ZodShape, options: unknown): void {
  validate(z.strictObject(shape), options, (issues) => refuseOptions(routeSubject, issues))
}

/** @throws `ConfigurationError` that a callback route has no receiver, always */
export function refuseReceiver(): never {
  refuseOptions(routeSubject, [{ path: [], message: 'the first argument must be a DeliveryReceiver' }])
}

function delaySchema() {
  return z.number().min(0).max(maxDelayMs)
}

// Made when a receiver is made: parsing deliveries alone does not pay for it.
function optionsSchema() {
  return z
    .strictObject({
      secrets: z.unknown().superRefine(checkSecrets),
      allowUnauthenticated: z.boolean(),
      payloads: payloadsOptionSchema(),
      parser: objectWith(['safeParse'], 'a parser from createDeliveryParser'),
      onInvalid: z.function(),
      onError: z.function(),
      onRefused: z.function(),
      ackTimeoutMs: delaySchema(),
      maxBodyBytes: z.int().min(1),
      logger: loggerSchema(),
    })
    .partial()
    .superRefine(({ secrets, allowUnauthenticated = false, parser, payloads }, context) => {
      const refuse = (message: string, path: string) =>
        context.addIssue({ code: 'custom', path: [path], message })
      if (secrets === undefined && !allowUnauthenticated) {
        refuse('is missing: give it, or `allowUnauthenticated: true`, which lets everyone in', 'secrets')
      }
      if (secrets !== undefined && allowUnauthenticated) {
        refuse(
          'cannot go with `allowUnauthenticated: true`, which lets everyone in: leave one out',
          'secrets',
        )
      }
      if (parser !== undefined && payloads !== undefined) {
        refuse('cannot go with `parser`, which has payload schemas of its own: leave one out', 'payloads')
      }
    })
}

function checkSecrets(secrets: unknown, context: z.RefinementCtx): void {
  const refuse = (message: string, ...path: PropertyKey[]) =>
    context.addIssue({ code: 'custom', path, message })
  const headers = Array.isArray(secrets) || typeof secrets !== 'object' ? [] : Object.entries(Object(secrets))
  if (headers.length === 0) refuse('must hold accepted values by header name')
  const seen = new Set<string>()
  for (const [name, accepted] of headers) {
    if (!headerName.test(name)) refuse(`is no header name: those have ${headerNameRule}`, name)
    const lowerCase = name.toLowerCase()
    if (seen.has(lowerCase)) refuse('is there twice: case does not count', name)
    seen.add(lowerCase)
    if (!Array.isArray(accepted)) refuseSecret(accepted, (problem) => refuse(problem, name))
    else if (accepted.length === 0) refuse('has no accepted value', name)
    for (const [index, value] of Array.isArray(accepted) ? accepted.entries() : []) {
      refuseSecret(value, (problem) => refuse(problem, name, index))
    }
  }
}

/** Says what is wrong with an accepted value, if something is, and never the value itself. */
function refuseSecret(value: unknown, refuse: (problem: string) => void): void {
  if (value === undefined) refuse('is missing (is its environment variable set?)')
  else if (typeof value !== 'string') refuse('must be text')
  else if (value === '') refuse('is empty (is its environment variable set?)')
  else if (!headerValue.test(value)) refuse(`cannot be the value of a header: ${headerValueRule}`)
}
