/** The options of a keeper and of a sweep: validated, and with their defaults. The schemas are made when first needed. */
import * as z from 'zod'
import type { NotificationClient } from '../client/notification-client.js'
import type { Logger } from '../logger.js'
import type { NotificationType } from '../notification-types.js'
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
import type { KeyValueStore } from '../stores/key-value-store.js'
import {
  associatedFields,
  type CreateSubscriptionInput,
  callbackUrlSchema,
  notificationTypesSchema,
  validateAssociatedValues,
} from '../subscriptions/schemas.js'
import type { KeeperGap, KeeperProblem, SweepProgress } from './types.js'

/**
 * What makes the keeper's calls: a `NotificationClient`, or anything else that has these three methods. Without `service`
 * the keeper cannot tell one service from another, so each needs a `name` or a store of its own.
 */
export type KeeperClient = Pick<
  NotificationClient,
  'tryCreateSubscription' | 'unsubscribe' | 'updateSubscriptionParameters'
> &
  Partial<Pick<NotificationClient, 'service'>>

/**
 * The users to subscribe: a list, or a function that is called once per interval and before every sweep. It has 30 seconds
 * to return; after a failure it is called again after 5 s, 10 s and so on.
 */
export type Roster = readonly string[] | (() => readonly string[] | Promise<readonly string[]>)

/** The options of a `SubscriptionKeeper`. `callbackUrl` and everything down to `notificationTypes` are required. */
export interface SubscriptionKeeperOptions
  extends Pick<CreateSubscriptionInput, 'callbackUrl' | 'parameters' | 'headers'> {
  /** Makes the calls. The keeper repeats failed calls itself, so it makes each with `retry: false`. */
  readonly client: KeeperClient
  /** Prefix of the keeper's keys in the store: one name for each roster, the same in all its processes. */
  readonly name: string
  /**
   * Where the keeper remembers ids. `redisStore` of `notification-subscriber/redis` lets several processes share the work;
   * a store without `compareAndSet` is for one process; `new Map()` forgets at a restart.
   */
  readonly store: KeyValueStore
  /** The users to subscribe; the same in all processes. */
  readonly usernames: Roster
  readonly notificationTypes: readonly NotificationType[]
  /**
   * Gets each interval in which notifications of a user may have been lost. The function may be asynchronous. Default:
   * a line to the logger, or to `console.error` if there is none.
   */
  readonly onGap?: ((gap: KeeperGap) => unknown) | undefined
  /**
   * Gets each problem: when it begins, when its users double, and when it is resolved. The function may be asynchronous.
   * Default: a line to the logger, or to `console.error` if there is none.
   */
  readonly onProblem?: ((problem: KeeperProblem) => unknown) | undefined
  /** How often each user's subscription is proven, in milliseconds; well below a day. Default: 900,000 (15 minutes). */
  readonly sweepIntervalMs?: number | undefined
  /** Requests of all processes together per second, on average; `Infinity` for no limit. Default: 50. */
  readonly maxRequestsPerSecond?: number | undefined
  /** How many requests of this process are in flight at most. Default: 8. */
  readonly concurrency?: number | undefined
  /**
   * What to do when a user already has such a subscription: replace it, because its id is unknown, or keep it and report a
   * `CONFLICT`. Default: `'replace'`.
   */
  readonly existing?: 'replace' | 'report' | undefined
  /**
   * If a roster lacks more than this share of more than ten recorded users, no user is removed; 1 allows every removal.
   * Default: 0.5.
   */
  readonly maxRemovedShare?: number | undefined
  /** Whether deliveries of unknown subscriptions are reported: `false` where keepers of one service share a receiver. Default: `true`. */
  readonly reportStrays?: boolean | undefined
  /**
   * Gets a line for what the keeper does, never a secret; `false` logs nothing. Default: gaps and problems alone
   * go to `console.error`, see `onGap` and `onProblem`.
   */
  readonly logger?: Logger | false | undefined
}

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
      // `service` is the address, a space and the tenant.
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

/** What a caller may set on a sweep. */
export interface SweepOptions {
  /** Called after every user. Default: none. */
  readonly onProgress?: ((progress: SweepProgress) => unknown) | undefined
}

/** @throws `InvalidRequestError` for wrong options of one sweep: nothing was done */
export function validateSweepOptions(options: unknown): void {
  const schema = z.strictObject({ onProgress: functionFor('a function that takes the progress').optional() })
  validate(schema, options, invalidRequest('sweep cannot do this'))
}
