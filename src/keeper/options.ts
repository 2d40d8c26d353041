/** The options of a keeper and of a sweep: validated, and with their defaults. The schemas are made when first needed. */
import * as z from 'zod'
import { loopbackCallbackProblem } from '../shared/addresses.js'
import {
  configurationError,
  functionFor,
  invalidRequest,
  loggerSchema,
  objectWith,
  validate,
} from '../shared/validation.js'
import { maxDelayMs } from '../shared/waits.js'
import {
  associatedFields,
  callbackUrlSchema,
  notificationTypesSchema,
  validateAssociatedValues,
} from '../subscriptions/schemas.js'
import type { SubscriptionKeeperOptions } from './types.js'

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
      store: objectWith(
        ['get', 'set', 'delete'],
        'a store with get, set and delete, such as `new Map()`',
      ).refine(
        (store) => ['function', 'undefined'].includes(typeof Object(store).compareAndSet),
        'has a compareAndSet that is no function',
      ),
      usernames: z.union(
        [z.array(z.string()), functionFor('a function that returns the list')],
        'must be a list of names, or a function that returns one',
      ),
      notificationTypes: notificationTypesSchema(),
      callbackUrl: callbackUrlSchema(),
      ...associatedFields(),
      onGap: functionFor('a function that takes a gap').optional(),
      onProblem: functionFor('a function that takes a problem').optional(),
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
    .check(validateAssociatedValues)
    .check(({ value: { callbackUrl, client }, issues }) => {
      // The address and the tenant, as `NotificationClient` has them.
      const [address] = String(Object(client).service ?? '').split(' ')
      const message = loopbackCallbackProblem(callbackUrl, address)
      if (message !== undefined)
        issues.push({ code: 'custom', input: callbackUrl, path: ['callbackUrl'], message })
    }),
)

const defaults = {
  concurrency: 8,
  existing: 'replace',
  maxRemovedShare: 0.5,
  maxRequestsPerSecond: 50,
  reportStrays: true,
  sweepIntervalMs: 900_000,
} as const

export type ResolvedOptions = SubscriptionKeeperOptions & {
  readonly [Name in keyof typeof defaults]-?: NonNullable<SubscriptionKeeperOptions[Name]>
}

/** @throws `ConfigurationError` with every problem found */
export function resolveOptions(options: SubscriptionKeeperOptions): ResolvedOptions {
  const invalid = configurationError('SubscriptionKeeper cannot be made from these options')
  validate<unknown>(optionsSchema, options, invalid)
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  return { ...options, ...defaults, ...given }
}

const sweepOptionsSchema = z.lazy(() =>
  z.strictObject({ onProgress: functionFor('a function that takes the progress').optional() }),
)

/** @throws `InvalidRequestError` for wrong options of one sweep: nothing was done */
export function validateSweepOptions(options: unknown): void {
  validate<unknown>(sweepOptionsSchema, options, invalidRequest('sweep cannot do this'))
}
