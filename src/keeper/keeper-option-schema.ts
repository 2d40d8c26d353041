/** The shape of a keeper's options, made when it is first needed. */
import * as z from 'zod'
import { ConfigurationError, InvalidRequestError } from '../errors.js'
import { deliveredTypeProblem, notificationTypes } from '../notification-types.js'
import { validate } from '../shared/issues.js'
import { maxDelayMs } from '../shared/max-delay.js'
import { abortSignalSchema, loggerSchema, objectWith } from '../shared/object-schemas.js'
import { callbackUrlProblem } from '../shared/url-problem.js'
import { headersSchema, parametersSchema, refuseSharedNames } from '../subscriptions/associated-values.js'
import type { SubscriptionKeeperOptions } from './keeper-types.js'

const functionFor = (what: string) =>
  z.custom((value) => typeof value === 'function', `must be a function that ${what}`)

const optionsSchema = z.lazy(() =>
  z
    .strictObject({
      client: objectWith(
        ['tryCreateSubscription', 'unsubscribe', 'updateSubscriptionParameters'],
        'a `NotificationClient`, or have its tryCreateSubscription, unsubscribe and updateSubscriptionParameters',
      ),
      name: z
        .string()
        .min(1, 'must not be empty')
        .regex(/^\P{Cc}*$/u, 'must not contain control characters'),
      store: objectWith(['get', 'set', 'delete'], 'a store with get, set and delete, such as `new Map()`'),
      usernames: z.union(
        [z.array(z.string()), functionFor('returns the list')],
        'must be a list of names, or a function that returns one',
      ),
      notificationTypes: z
        .array(z.enum(notificationTypes, { error: ({ input }) => deliveredTypeProblem(input) }))
        .min(1, 'must name at least one notification type')
        .refine((types) => new Set(types).size === types.length, 'must not name a type twice'),
      callbackUrl: z
        .union([z.string(), z.instanceof(URL)], 'must be a URL')
        // Whether `http:` on loopback is allowed is the client's decision.
        .refine((url) => callbackUrlProblem(url, true) === undefined, {
          error: ({ input }) => callbackUrlProblem(String(input), true),
        }),
      parameters: parametersSchema.unwrap().optional(),
      headers: headersSchema.unwrap().optional(),
      onGap: functionFor('takes a gap').optional(),
      onProblem: functionFor('takes a problem').optional(),
      sweepIntervalMs: z.number().positive().max(maxDelayMs).optional(),
      maxRequestsPerSecond: z
        .union([z.number().positive(), z.literal(Number.POSITIVE_INFINITY)], 'must be a positive number')
        .optional(),
      concurrency: z.int().positive().optional(),
      existing: z.enum(['replace', 'report']).optional(),
      maxRemovedShare: z.number().min(0).max(1).optional(),
      reportStrays: z.boolean().optional(),
      logger: loggerSchema().optional(),
    })
    .check(refuseSharedNames),
)

const passOptions = z.lazy(() =>
  z.strictObject({
    onProgress: functionFor('takes the progress').optional(),
    signal: abortSignalSchema().optional(),
  }),
)
const sweepOptions = z.lazy(() =>
  z.strictObject({ ...passOptions.unwrap().shape, allowRemovals: z.boolean().optional() }),
)

/**
 * Looks at the options of one call.
 *
 * @throws `InvalidRequestError`: nothing was done
 */
export function validateCallOptions(
  method: 'sweep' | 'rotateParameters' | 'unsubscribeAll',
  options: unknown,
): void {
  validate<unknown>(method === 'sweep' ? sweepOptions : passOptions, options, (issues, text) => {
    return new InvalidRequestError(`${method} cannot do this: ${text}.`, { issues })
  })
}

/** @throws `ConfigurationError` with every problem found */
export function validateKeeperOptions(options: SubscriptionKeeperOptions): void {
  validate<unknown>(optionsSchema, options, (issues, text) => {
    return new ConfigurationError(`SubscriptionKeeper cannot be made from these options: ${text}.`, {
      issues,
    })
  })
}
