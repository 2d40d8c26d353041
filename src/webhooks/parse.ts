/** Parses callback bodies into typed deliveries (docs/service.md, Delivery). */
import * as z from 'zod'
import type { InvalidDeliveryError, Issue } from '../errors.js'
import { documentedPayloads } from '../notification-types.js'
import { messageOf } from '../shared/text.js'
import { configurationError, issuesOf, numericId, ownMessages, validate } from '../shared/validation.js'
import { errorOf, invalidDelivery, isBytes } from './body.js'
import { contentOf } from './content.js'
import { anyDeliverySchema, type Delivery, type NoPayloadSchemas, type PayloadSchemas } from './schemas.js'

/** The options of {@link createDeliveryParser}. */
export interface DeliveryParserOptions<Payloads extends PayloadSchemas> {
  /**
   * Synchronous schemas by `notification.type`, of any library that implements Standard Schema
   * (https://standardschema.dev), such as zod, valibot and arktype. A schema's result becomes
   * `notification.payload`. A schema for `lowEnergyAgentOpened` replaces the documented one. Transforms and
   * refinements may run twice on a payload that is refused.
   */
  readonly payloads: Payloads
}

/** A delivery, or why the body is no delivery. */
export type DeliveryResult<Payloads extends PayloadSchemas = NoPayloadSchemas> =
  | {
      /** The body is a delivery. */
      success: true
      /** The delivery. */
      data: Delivery<Payloads>
      /** Always missing, because the body is a delivery. */
      error?: never
    }
  | {
      /** The body is no delivery. */
      success: false
      /** Why, and the body. */
      error: InvalidDeliveryError
      /** Always missing, because the body is no delivery. */
      data?: never
    }

/** Reads callback bodies with its payload schemas; see {@link createDeliveryParser}. */
export interface DeliveryParser<Payloads extends PayloadSchemas = NoPayloadSchemas> {
  /** Like {@link parseDelivery}. */
  parse(body: unknown): Delivery<Payloads>
  /** Like {@link safeParseDelivery}. */
  safeParse(body: unknown): DeliveryResult<Payloads>
}

/**
 * Makes a parser that also knows the payloads of further notification types. Only the payload of `lowEnergyAgentOpened` is
 * documented (docs/service.md, Resources); otherwise a payload is any object.
 *
 * @throws `ConfigurationError` if `payloads` is not an object of synchronous schemas, or another option is given
 *
 * @example
 * ```ts
 * import * as z from 'zod'
 *
 * const parser = createDeliveryParser({ payloads: { cxScoreUpdated: z.object({ score: z.number() }) } })
 * const { notification } = parser.parse(body)
 * if (notification.type === 'cxScoreUpdated') notification.payload.score // number
 * ```
 */
export function createDeliveryParser<Payloads extends PayloadSchemas>(
  options: DeliveryParserOptions<Payloads>,
): DeliveryParser<Payloads> {
  const schema = z.strictObject({ payloads: payloadsSchema() })
  validate(schema, Object(options), configurationError('The delivery parser cannot work'))
  return parserOf(options.payloads)
}

/** The schema of the option `payloads`, made when options are checked, so that parsing alone does not cost it. */
export function payloadsSchema() {
  const schema = z.unknown().superRefine((value, context) => {
    const message = schemaProblem(Object(value))
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })
  return z.record(z.string(), schema, 'must be an object of schemas by notification type')
}

function schemaProblem(schema: PayloadSchemas[string]): string | undefined {
  if (typeof schema['~standard']?.validate !== 'function') {
    return 'must be a Standard Schema, such as one of zod, valibot or arktype'
  }
  return isAsynchronous(schema)
    ? 'must be synchronous, because a callback is parsed before it is answered: await in the handler instead'
    : undefined
}

/** By the mark of zod and valibot, or by one call. A schema may still turn out to be asynchronous: see {@link readerOf}. */
function isAsynchronous(schema: PayloadSchemas[string]): boolean {
  // Valibot's mark.
  if ('async' in schema && schema.async === true) return true
  try {
    if (isOwnZodSchema(schema)) z.compile(schema, { strict: true })
    // Zod 3 also answers what a schema throws with a promise.
    else if (Object(schema['~standard']).vendor !== 'zod') standardReader(schema)({})
    return false
  } catch (error) {
    return error instanceof z.ZodCompileAsyncError || error instanceof AsynchronousError
  }
}

/** By the mark of zod 4, classic and mini. Not by `instanceof`, because the user's zod may be another copy. */
function isZodSchema(schema: object): schema is z.core.$ZodType {
  return '_zod' in schema
}

/** Whether a schema may be compiled: the compiler knows only the schemas of its own version. */
function isOwnZodSchema(schema: object): schema is z.core.$ZodType {
  if (!isZodSchema(schema)) return false
  const { major, minor, patch } = schema._zod.version
  const own = anyDeliverySchema._zod.version
  return major === own.major && minor === own.minor && patch === own.patch
}

/** Reads a payload of one type: returns the parsed payload, or what is wrong with it. */
type PayloadReader = (
  payload: unknown,
) =>
  | { readonly payload: unknown; readonly issues?: undefined }
  | { readonly issues: readonly Issue[]; readonly cause?: unknown }

/** The path of payloads in a body. */
const payloadPath = ['notification', 'payload']

const issuesOfDelivery = checkOf(anyDeliverySchema)

const documentedReaders = Object.entries(documentedPayloads).map(([type, { schema }]) => {
  const issuesOfPayload = checkOf(schema, payloadPath)
  const read: PayloadReader = (payload) => {
    const issues = issuesOfPayload(payload)
    return issues === undefined ? { payload } : { issues }
  }
  return { type, read }
})

/** Makes the function that reads the JSON `value` of a `body`. @throws `InvalidDeliveryError`, or what a getter throws */
export function deliveryReader<Payloads extends PayloadSchemas>(
  payloads: Payloads,
): (value: unknown, body: unknown) => Delivery<Payloads> {
  const readers = [
    ...Object.entries(payloads).map(([type, schema]) => ({ type, read: readerOf(type, schema) })),
    ...documentedReaders,
  ]

  function read(given: unknown, body: unknown): Delivery {
    const value = withNumericId(given)
    const issues = issuesOfDelivery(value)
    if (issues) throw invalidDelivery(body, mistakeIn(body) ?? issues)
    // The payload is checked below.
    const delivery = value as Delivery
    const { subscriptionId, notification } = delivery
    const { id, time, ver, type, payload } = notification
    // The first of a type counts. A scan, because a Map would hash the text of every delivery's type anew,
    // which takes longer than comparing with a few names.
    const result = readers.find((reader) => reader.type === type)?.read(payload)
    if (result === undefined) return delivery
    if (result.issues) throw invalidDelivery(body, result.issues, result.cause)
    if (result.payload === payload) return delivery
    // A copy, because the delivery may be an object of the caller's. The fields are also named one by one, because
    // a spread leaves out those that come from a prototype's getter.
    const copy = { ...notification, id, time, ver, type, payload: result.payload }
    return { ...delivery, subscriptionId, notification: copy as never }
  }
  // Every payload goes through the reader of its type, which is what the type parameter states.
  return read as unknown as (value: unknown, body: unknown) => Delivery<Payloads>
}

function parserOf<Payloads extends PayloadSchemas>(payloads: Payloads): DeliveryParser<Payloads> {
  const read = deliveryReader(payloads)

  function safeParse(body: unknown): DeliveryResult<Payloads> {
    try {
      return { success: true, data: read(contentOf(body).value, body) }
    } catch (thrown) {
      return { success: false, error: errorOf(body, thrown) }
    }
  }

  return {
    safeParse,
    parse(body) {
      const { data, error } = safeParse(body)
      if (error) throw error
      return data
    },
  }
}

/** A service may write ids as text. */
function withNumericId(value: unknown): unknown {
  const given = Object(value).subscriptionId
  const subscriptionId = numericId(given)
  return subscriptionId === given ? value : { ...Object(value), subscriptionId }
}

const defaultParser = parserOf({})

/**
 * Reads the body of a callback (docs/service.md, Resources).
 *
 * Unknown fields, notification types and versions are kept. A parsed object is returned as the same object.
 *
 * @param body - the body as text, as bytes (any `ArrayBuffer` or view on one, in UTF-8) or already parsed
 * @throws `InvalidDeliveryError`, and nothing else, if the body is no delivery: `issues` says why, `body` keeps it
 *
 * @example
 * ```ts
 * const { subscriptionId, notification } = parseDelivery(await request.text())
 * if (notification.type === 'lowEnergyAgentOpened') notification.payload.callId // string
 * ```
 */
export function parseDelivery(body: unknown): Delivery {
  return defaultParser.parse(body)
}

/** Like {@link parseDelivery}, but returns the error instead of throwing it: the shape of zod's `safeParse`. */
export function safeParseDelivery(body: unknown): DeliveryResult {
  return defaultParser.safeParse(body)
}

/**
 * Makes a check from a schema of this package: synchronous and without transforms, so that the value itself is the
 * result and nothing is built. Where code generation is not allowed, zod runs the schema uncompiled.
 */
function checkOf(schema: z.core.$ZodType, path?: readonly string[]): (value: unknown) => Issue[] | undefined {
  let compiled: z.core.$ZodType | undefined
  return (value) => {
    compiled ??= z.compile(schema)
    const error = z.validate(compiled, value) ? undefined : z.safeParse(schema, value, ownMessages).error
    return error && issuesOf(error, path)
  }
}

/** Makes a reader from a user's schema for the payload of `type`: the schema's output is the result. */
function readerOf(type: string, schema: PayloadSchemas[string]): PayloadReader {
  const read = isZodSchema(schema) ? zodReader(schema) : standardReader(schema)
  return (payload) => {
    try {
      return read(payload)
    } catch (cause) {
      const message = `the schema for "${type}" is asynchronous or failed (${messageOf(cause)})`
      return { issues: [{ path: payloadPath, message }], cause }
    }
  }
}

/** Not by the standard: with that, zod answers what a transform throws with a promise, as if it were asynchronous. */
function zodReader(schema: z.core.$ZodType): PayloadReader {
  let compiled: z.core.$ZodType | undefined
  return (payload) => {
    compiled ??= isOwnZodSchema(schema) ? z.compile(schema) : schema
    const { data, error } = z.safeParse(compiled, payload, ownMessages)
    return error ? { issues: issuesOf(error, payloadPath) } : { payload: data }
  }
}

class AsynchronousError extends TypeError {}

function standardReader(schema: PayloadSchemas[string]): PayloadReader {
  return (payload) => {
    const result = schema['~standard'].validate(payload)
    if ('then' in result) {
      result.catch(() => {})
      throw new AsynchronousError('it returned a promise')
    }
    if (!result.issues) return { payload: result.value }
    const issues = result.issues.map(({ message, path = [] }) => ({
      path: [...payloadPath, ...path.map((key) => (typeof key === 'object' ? key.key : key))],
      message,
    }))
    return { issues }
  }
}

/** Advice for values that are often passed by mistake instead of a body. */
function mistakeIn(body: unknown): string | undefined {
  if (body === undefined) return 'is undefined (did a body parser run, for this content type?)'
  try {
    const { then, text, getReader, pipe } = Object(body)
    const what = [
      typeof then === 'function' && 'a promise',
      typeof text === 'function' && 'a Request',
      (typeof getReader === 'function' || typeof pipe === 'function') && 'a stream',
      Array.isArray(body) && body.some(isBytes) && 'a list of chunks',
    ].find(Boolean)
    if (what) return `is ${what}: pass \`await request.text()\``
  } catch {
    // The object's getters throw: no advice.
  }
  return undefined
}

/** The log fields of a delivery. */
export function namesOf<Payloads extends PayloadSchemas>({
  subscriptionId,
  notification,
}: Delivery<Payloads>) {
  const { id, type }: { id: string; type: string } = notification
  return { subscriptionId, notificationId: id, type }
}
