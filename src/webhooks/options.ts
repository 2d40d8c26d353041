/** The options of a receiver, and their validation. */
import * as z from 'zod'
import type { ConfigurationError, InvalidDeliveryError } from '../errors.js'
import type { Logger } from '../logger.js'
import { configurationError, loggerSchema } from '../shared/validation.js'
import { maxDelayMs } from '../shared/waits.js'
import type { DeliveryContext } from './handlers.js'
import { payloadsSchema } from './payloads.js'
import type { NoPayloadSchemas, Notification, PayloadSchemas } from './schemas.js'
import { type Secrets, secretsIssues } from './secrets.js'
import { type SecretsSource, sourceIssues } from './secrets-source.js'

/** The options of a `DeliveryReceiver`: `secrets` or `allowUnauthenticated: true` is required. */
export type DeliveryReceiverOptions<Payloads extends PayloadSchemas = NoPayloadSchemas> =
  // In this order TypeScript asks for `secrets` where both are missing.
  OptionalOptions<Payloads> & (Unauthenticated | Authenticated)

/** @inline */
interface Authenticated {
  /**
   * The headers that prove the sender (docs/service.md, Authentication), each with its accepted values. The subscription has
   * the header as a parameter or header. A callback is accepted if every named header was sent once, with an accepted value;
   * give two values during a rotation. A placeholder is an error, and a value of fewer than 16 characters is logged.
   *
   * For secrets that change or depend on a header, give a synchronous function (docs/receiver.md, Secrets that change). It is
   * called for each callback, and once when the receiver is made. If it returns `undefined`, the callback is refused. If it
   * throws or returns unusable secrets, the callback is refused, too, and `secrets.failed` is logged.
   *
   * @example
   * ```ts
   * new DeliveryReceiver({ secrets: { token: [currentToken, previousToken] } })
   * new DeliveryReceiver({ secrets: ({ header }) => tenants.get(header('x-tenant') ?? '') })
   * ```
   */
  readonly secrets: Secrets | SecretsSource
  /** Cannot be `true` together with `secrets`. Default: `false`. */
  readonly allowUnauthenticated?: false | undefined
}

/** @inline */
interface Unauthenticated {
  /** Cannot be given together with `allowUnauthenticated: true`. */
  readonly secrets?: undefined
  /** Accepts callbacks from every sender. */
  readonly allowUnauthenticated: true
}

/** @inline */
interface OptionalOptions<Payloads extends PayloadSchemas> {
  /**
   * Payload schemas by `notification.type`, as for {@link createDeliveryParser}. Default: only the documented payloads.
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
  /**
   * Called for every body that is no delivery, which is answered with 204: `error.issues` says why, `error.body` is the
   * received body. May be asynchronous. Default: only a log line.
   */
  readonly onInvalid?: ((error: InvalidDeliveryError) => unknown) | undefined
  /** Called with a handler's error, and the handler's arguments. May be asynchronous. Default: only a log line. */
  readonly onError?:
    | ((
        error: unknown,
        notification: Notification<string, Payloads>,
        context: DeliveryContext<Payloads>,
      ) => unknown)
    | undefined
  /** Called for each request refused with 401, 405 or 413. May be asynchronous; the answer does not wait. Default: a log line. */
  readonly onRefused?: ((refused: RefusedCallback) => unknown) | undefined
  /**
   * How long an answer waits for the handlers, in milliseconds. Slower handlers continue after the answer. How long
   * the service waits is not documented; 2 seconds are less than senders' usual limits. Default: 2,000.
   */
  readonly ackTimeoutMs?: number | undefined
  /** The largest body that is read, in bytes. Default: 1,048,576 (1 MiB). */
  readonly maxBodyBytes?: number | undefined
  /**
   * Gets the events of docs/observability.md, Receiver; never a secret. `false` turns logging off. Default: failures that
   * no function gets are logged to `console.error`, refusals at most once a minute for each reason.
   */
  readonly logger?: Logger | false | undefined
}

/** A refused request, the argument of `onRefused`. */
export interface RefusedCallback {
  /** 401: a secret is missing, wrong or sent twice; 405: not POST; 413: the body is larger than `maxBodyBytes`. */
  readonly status: 401 | 405 | 413
  /** Why the request was refused, for people; never holds a value of a header. */
  readonly reason: string
  /** With a 401: the name of the header whose value was not accepted, as written in `secrets`. */
  readonly header?: string | undefined
}

export const invalidReceiver = configurationError('The delivery receiver cannot work')

export const invalidRoute = configurationError('The callback route cannot work')

export function routeError(message: string): ConfigurationError {
  return invalidRoute([{ path: [], message }])
}

/** The error of a route that gets the arguments of another framework. */
export function wrongAdapter(problem: string): ConfigurationError {
  return routeError(`${problem}: use the adapter of your framework (docs/receiver.md)`)
}

/** A time in milliseconds that a timer takes. */
export function delaySchema() {
  return z.number().min(0).max(maxDelayMs)
}

export const defaults = { ackTimeoutMs: 2_000, maxBodyBytes: 2 ** 20 } as const

/** Made with each receiver, so that parsing alone does not pay for the schema. */
export function optionsSchema() {
  return z
    .strictObject({
      secrets: z.unknown().superRefine((secrets, context) => {
        const issues =
          typeof secrets === 'function' ? sourceIssues(secrets as SecretsSource) : secretsIssues(secrets)
        for (const { path, message } of issues) context.addIssue({ code: 'custom', path: [...path], message })
      }),
      allowUnauthenticated: z.boolean(),
      payloads: payloadsSchema(),
      onInvalid: z.function(),
      onError: z.function(),
      onRefused: z.function(),
      ackTimeoutMs: delaySchema(),
      maxBodyBytes: z.int().min(1),
      logger: loggerSchema(),
    })
    .partial()
    .superRefine(({ secrets, allowUnauthenticated = false }, context) => {
      if ((secrets === undefined) === allowUnauthenticated) return
      const message = allowUnauthenticated
        ? 'cannot be given together with `allowUnauthenticated: true`: leave one out'
        : 'is missing: set `secrets: { token: "…" }`, or `allowUnauthenticated: true` to accept callbacks from anyone'
      context.addIssue({ code: 'custom', path: ['secrets'], message })
    })
}
