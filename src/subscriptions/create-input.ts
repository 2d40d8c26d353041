/** What a caller gives to create a subscription (docs/service.md, Resources and Endpoints). */
import * as z from 'zod'
import { deliveredTypeProblem, type NotificationType, notificationTypes } from '../notification-types.js'
import { callbackUrlProblem } from '../shared/url-problem.js'
import {
  type AssociatedValues,
  headersSchema,
  parametersSchema,
  refuseSharedNames,
} from './associated-values.js'

/** A subscription to create: every notification of any listed type, about any listed user (docs/service.md, Delivery). */
export interface CreateSubscriptionInput {
  /** One or more of `behavioral`, `call-score`, `conversation-ai`. */
  readonly notificationTypes: readonly NotificationType[]
  /** One or more usernames of the users (agents) that notifications are wanted about. */
  readonly usernames: readonly string[]
  /**
   * Where the service sends its notifications, `https:`. A text must be spelled as `URL` spells it, without a fragment,
   * because the service tells subscriptions apart by their callback URL; the error shows the right spelling.
   */
  readonly callbackUrl: string | URL
  /**
   * Replaces an existing subscription that has exactly the same types, users and callback URL, instead of
   * answering 409. A partial overlap is a 409 all the same (docs/service.md, States). Default: `false`.
   */
  readonly recreateIfExists?: boolean | undefined
  /** Sent as fields of the form; come back as headers of every callback, such as a `token`. Default: none. */
  readonly parameters?: AssociatedValues | undefined
  /**
   * Sent as request headers; come back as headers of every callback, if the service is configured to permit their names
   * (docs/service.md, Endpoints). Default: none.
   */
  readonly headers?: AssociatedValues | undefined
}

/**
 * Validates the input of `createSubscription`: refuses everything that the service could not take, or would take wrongly
 * (docs/service.md, Endpoints).
 */
export const createSubscriptionInputSchema: z.ZodType<CreateSubscriptionInput, CreateSubscriptionInput> =
  createInputSchema({ allowInsecureLoopback: false })

/** For a client with `allowInsecureLoopback`: takes `http:` callback URLs on loopback hosts, too. */
export const loopbackSubscriptionInputSchema = createInputSchema({ allowInsecureLoopback: true })

function createInputSchema({
  allowInsecureLoopback,
}: {
  allowInsecureLoopback: boolean
}): z.ZodType<CreateSubscriptionInput, CreateSubscriptionInput> {
  // As a rule all subscriptions have one callback URL: what was found right last is not looked at again.
  let usualUrl: string | undefined
  function isUsable(url: string | URL): boolean {
    const text = String(url)
    if (text !== usualUrl && callbackUrlProblem(text, allowInsecureLoopback) !== undefined) return false
    usualUrl = text
    return true
  }

  // Lazy, so that importing the package builds none of it.
  return z.lazy(() =>
    z
      .strictObject({
        notificationTypes: z
          .array(z.enum(notificationTypes, { error: ({ input }) => deliveredTypeProblem(input) }))
          .min(1, 'must name at least one notification type')
          .check(refuseRepetitions),
        usernames: z
          .array(
            z.string().refine((name) => usernameProblem(name) === undefined, {
              error: ({ input }) => usernameProblem(String(input)),
            }),
          )
          .min(1, 'must name at least one user')
          .check(refuseRepetitions),
        callbackUrl: z.union([z.string(), z.instanceof(URL)], 'must be a URL').refine(isUsable, {
          error: ({ input }) => callbackUrlProblem(String(input), allowInsecureLoopback),
        }),
        recreateIfExists: z.boolean().optional(),
        parameters: parametersSchema.unwrap().optional(),
        headers: headersSchema.unwrap().optional(),
      })
      .check(refuseSharedNames),
  )
}

/** A username that reaches the service as it was given. `Cs`: half a surrogate pair, which cannot be encoded. */
const usernamePattern = /^(?!\s)[^,\p{Cc}\p{Cs}]+(?<!\s)$/u

/** Why a name cannot be sent, or `undefined`. */
export function usernameProblem(name: string): string | undefined {
  if (usernamePattern.test(name)) return undefined
  if (name === '') return 'must not be empty'
  if (name.includes(',')) return 'must not contain a comma: the service reads it as two usernames'
  if (name.trim() !== name) return 'must not begin or end with white space'
  if (!name.isWellFormed()) return 'must not contain half a surrogate pair: it cannot be encoded'
  return 'must not contain control characters'
}

function refuseRepetitions({ value: values, issues }: z.core.ParsePayload<readonly string[]>): void {
  const seen = new Set<string>()
  values.forEach((value, index) => {
    if (seen.has(value)) {
      issues.push({ code: 'custom', continue: true, input: value, path: [index], message: 'is listed twice' })
    }
    seen.add(value)
  })
}
