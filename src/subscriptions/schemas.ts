/** The input to create, update and end a subscription (docs/service.md, Resources and Endpoints). */
import * as z from 'zod'
import { requestHeaderNames } from '../http/send.js'
import { deliveredTypeProblem, type NotificationType, notificationTypes } from '../notification-types.js'
import { callbackUrlProblem } from '../shared/addresses.js'
import { framingHeaders, headerNameProblem, headerValueProblem } from '../shared/headers.js'
import { placeholderProblem } from '../shared/mistakes.js'
import { createFields } from '../shared/routes.js'
import { invalidRequest, issueFrom, validate } from '../shared/validation.js'

/**
 * Values by name, which come back as headers of the same name on every callback (docs/service.md, Resources). Names
 * that differ only in case are equal. Parameters and headers are at most 100 together, with at most 8 KiB of names and
 * values in UTF-8 (docs/client.md, What can go wrong).
 */
export type AssociatedValues = Readonly<Record<string, string>>

/** A subscription to create: every notification of any listed type, about any listed user (docs/service.md, Delivery). */
export interface CreateSubscriptionInput {
  /** One or more types, each once. */
  readonly notificationTypes: readonly NotificationType[]
  /** The usernames of the users (agents) to subscribe: at least one, each once, without a comma. */
  readonly usernames: readonly string[]
  /**
   * Where the service sends notifications: `https:`, or `http:` on loopback if the service is on loopback, too. Spell a text
   * as `URL` does, without a fragment, because the service compares callback URLs as text. The error shows the right spelling.
   */
  readonly callbackUrl: string | URL
  /**
   * Replaces an existing subscription that has exactly the same types, users and callback URL, instead of
   * answering 409. A partial overlap is a 409 even then (docs/service.md, States). Default: `false`.
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

/** The pairs to change: at least one; others keep their values. Later callbacks carry the new ones (docs/service.md, Rules). */
export type UpdateSubscriptionParametersInput = Pick<CreateSubscriptionInput, 'parameters' | 'headers'>

/** @throws `InvalidRequestError` that lists every problem of the input; nothing was sent */
export function validInput<Output>(method: string, schema: z.ZodType<Output>, input: unknown): Output {
  return validate(schema, input, invalidRequest(`${method} sent nothing`))
}

/** Validates the input of `createSubscription`: refuses what the service refuses or misreads (docs/service.md, Endpoints). */
export const createSubscriptionInputSchema: z.ZodType<CreateSubscriptionInput, CreateSubscriptionInput> =
  // Lazy, so that importing the package does not build this schema.
  z.lazy(() =>
    z.compile(
      z
        .strictObject({
          notificationTypes: notificationTypesSchema(),
          usernames: z
            .array(z.string().refine(...issueFrom(usernameProblem)))
            .min(1, 'must name at least one user')
            .check(eachOnce),
          callbackUrl: callbackUrlSchema(),
          recreateIfExists: z.boolean().optional(),
          ...associatedFields(),
        })
        .check(validateAssociatedValues),
    ),
  )

/** At least one type, and each once. */
export function notificationTypesSchema() {
  return z
    .array(z.enum(notificationTypes, { error: ({ input }) => deliveredTypeProblem(input) }))
    .min(1, 'must name at least one notification type')
    .check(eachOnce)
}

/** A callback URL that is spelled as `URL` spells it. */
export function callbackUrlSchema() {
  // Usually all subscriptions have the same callback URL: checking it each time would take a fifth of a create.
  let usualUrl: string | undefined
  function problemOf(text: string): string | undefined {
    const problem = text === usualUrl ? undefined : callbackUrlProblem(text)
    if (problem === undefined) usualUrl = text
    return problem
  }
  return z.union([z.string(), z.instanceof(URL)], 'must be a URL').refine(...issueFrom(problemOf))
}

/** Validates the input of `updateSubscriptionParameters` (docs/service.md, Endpoints). */
export const updateSubscriptionParametersInputSchema: z.ZodType<
  UpdateSubscriptionParametersInput,
  UpdateSubscriptionParametersInput
> = z.lazy(() =>
  z
    .strictObject(associatedFields())
    .check(validateAssociatedValues)
    .refine(
      ({ parameters, headers }) => Object.keys({ ...parameters, ...headers }).length > 0,
      'at least one parameter or header must be given',
    ),
)

/** Validates a subscription id: the integer that creating returned (docs/service.md, Resources). */
export const subscriptionIdSchema = z.lazy(() =>
  z.int('the subscription id must be the integer that createSubscription returned'),
)

/** A username that can be sent unchanged. `Cs` is half a surrogate pair, which cannot be encoded. */
const usernamePattern = /^(?!\s)[^,\p{Cc}\p{Cs}\u2028\u2029]+(?<!\s)$/u

function usernameProblem(name: string): string | undefined {
  if (usernamePattern.test(name)) return undefined
  if (name === '') return 'must not be empty'
  if (name.includes(',')) return 'must not contain a comma: the service reads it as two usernames'
  if (name.trim() !== name) return 'must not begin or end with white space'
  if (!name.isWellFormed()) return 'must not contain half a surrogate pair: it cannot be encoded'
  return 'must not contain control characters or line separators'
}

function eachOnce({ value: values, issues }: z.core.ParsePayload<readonly string[]>): void {
  const seen = new Set<string>()
  for (const [index, input] of values.entries()) {
    if (seen.has(input)) {
      issues.push({ code: 'custom', continue: true, input, path: [index], message: 'is listed twice' })
    }
    seen.add(input)
  }
}

/** Headers that describe the message or the connection: the sender of the callback must set these itself. */
const messageHeaders = [...framingHeaders, 'content-encoding', 'proxy-authenticate', 'proxy-authorization']

/** The fields of an input; {@link validateAssociatedValues} validates both together. */
export function associatedFields() {
  const fieldNames = createFields.map((name) => name.toLowerCase())
  const parameters = associatedValuesSchema((name) => {
    if (fieldNames.includes(name)) return 'is reserved: it is a field of the request'
    return messageHeaders.includes(name) ? 'is reserved: as a header it would break the callback' : undefined
  })
  return { parameters: parameters.optional(), headers: headersSchema().optional() }
}

export function headersSchema() {
  const names = [...messageHeaders, ...requestHeaderNames]
  return associatedValuesSchema((name) =>
    names.includes(name) ? 'is reserved: it is a header of the request' : undefined,
  )
}

/** @param reservedProblem - of a name in lower case */
function associatedValuesSchema(reservedProblem: (name: string) => string | undefined) {
  return z
    .record(
      z.string(),
      z.string('must be text').refine(...issueFrom(valueProblem)),
      'must be a plain object of names and values',
    )
    .check(({ value: values, issues }) => {
      const seen = new Set<string>()
      for (const name of Object.keys(values)) {
        const lowerCase = name.toLowerCase()
        const twice = seen.has(lowerCase)
          ? 'is given twice: header names are the same in any case'
          : undefined
        seen.add(lowerCase)
        for (const message of [headerNameProblem(name), reservedProblem(lowerCase), twice]) {
          if (message === undefined) continue
          issues.push({ code: 'custom', continue: true, input: name, path: [name], message })
        }
      }
    })
}

/** Why a text cannot be the value of a header, or is probably a mistake. */
function valueProblem(value: string): string | undefined {
  if (value === '') return 'must not be empty (is a variable not set?)'
  return placeholderProblem(value) ?? headerValueProblem(value)
}

/** The most parameters and headers together; more could make a server refuse the callback (docs/receiver.md). */
const maxValues = 100
/** The most UTF-8 bytes of their names and values together. Node.js refuses requests with more than 16 KiB of headers. */
const maxValueBytes = 8 * 1024

/** Validates both kinds together, because all become headers of a callback: refuses too many, and a name in both kinds. */
export function validateAssociatedValues({
  value,
  issues,
}: z.core.ParsePayload<UpdateSubscriptionParametersInput>): void {
  const add = (path: PropertyKey[], message: string) =>
    issues.push({ code: 'custom', continue: true, input: value, path, message })
  const { parameters = {}, headers = {} } = value
  const pairs = [...Object.entries(parameters), ...Object.entries(headers)]
  const bytes = Buffer.byteLength(pairs.flat().join(''))
  const why = 'all of them come back as headers of every callback, and servers limit those'
  if (pairs.length > maxValues) {
    add([], `there are ${pairs.length} parameters and headers, more than the limit of ${maxValues}: ${why}`)
  } else if (bytes > maxValueBytes) {
    add([], `parameters and headers have ${bytes} bytes, more than the limit of ${maxValueBytes}: ${why}`)
  }
  const parameterNames = new Set(Object.keys(parameters).map((name) => name.toLowerCase()))
  for (const name of Object.keys(headers)) {
    if (!parameterNames.has(name.toLowerCase())) continue
    add(['headers', name], 'is a parameter, too: on callbacks both would be the same header')
  }
}
