/** Parses callback bodies into typed deliveries (docs/service.md, Delivery). */
import * as z from 'zod'
import { ConfigurationError, InvalidDeliveryError, type Issue } from '../errors.js'
import { documentedPayloads } from '../notification-types.js'
import { messageOf, numericId, wholeMessageOf } from '../shared/text.js'
import { formatIssues, issuesOf, ownMessages, validate } from '../shared/validation.js'
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

/** A delivery, or why the body is none. */
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
  validate(
    z.strictObject({ payloads: payloadsSchema() }),
    Object(options),
    (issues, text) => new ConfigurationError(`The delivery parser cannot work: ${text}.`, { issues }),
  )
  return parserOf(options.payloads)
}

/** The schema of the option `payloads`, made when options are checked, so that parsing alone does not cost it. */
export function payloadsSchema() {
  const schema = z.unknown().superRefine((value, context) => {
    const message = schemaProblem(value)
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })
  return z.record(z.string(), schema, 'must be an object of schemas by notification type')
}

function schemaProblem(value: unknown): string | undefined {
  const schema = Object(value)
  if (typeof schema['~standard']?.validate !== 'function') {
    return 'must be a Standard Schema, such as one of zod, valibot or arktype'
  }
  return isKnownAsAsynchronous(schema)
    ? 'must be synchronous, because a callback is parsed before it is answered: await in the handler instead'
    : undefined
}

/** Not every library shows this beforehand: see {@link readerOf}. */
function isKnownAsAsynchronous(schema: PayloadSchemas[string]): boolean {
  // Valibot's mark.
  if ('async' in schema && schema.async === true) return true
  try {
    if (isZodSchema(schema)) z.compile(schema, { strict: true })
    return false
  } catch (error) {
    return error instanceof z.ZodCompileAsyncError
  }
}

/** By the mark of zod 4, classic and mini. Not by `instanceof`, because the user's zod may be another copy. */
function isZodSchema(schema: object): schema is z.core.$ZodType {
  return '_zod' in schema && typeof Object(schema._zod).run === 'function'
}

/** Reads payloads of one type. */
interface PayloadReader {
  readonly type: string
  readonly read: (payload: unknown) => PayloadResult
}

type PayloadResult =
  | { readonly payload: unknown; readonly issues?: undefined }
  | { readonly issues: readonly Issue[]; readonly cause?: unknown }

/** The path of payloads in a body. */
const payloadPath = ['notification', 'payload']

const issuesOfDelivery = checkOf(anyDeliverySchema)

const documentedReaders = Object.entries(documentedPayloads).map(([type, { schema }]): PayloadReader => {
  const issuesOfPayload = checkOf(schema, payloadPath)
  return {
    type,
    read(payload) {
      const issues = issuesOfPayload(payload)
      return issues === undefined ? { payload } : { issues }
    },
  }
})

function parserOf<Payloads extends PayloadSchemas>(payloads: Payloads): DeliveryParser<Payloads> {
  const payloadReaders = [
    ...Object.entries(payloads).map(([type, schema]) => ({ type, read: readerOf(type, schema) })),
    ...documentedReaders,
  ]

  function safeParse(body: unknown): DeliveryResult {
    try {
      const value = withNumericId(valueOfBody(body))
      const issues = issuesOfDelivery(value)
      if (issues) {
        const mistake = mistakeIn(body)
        const error =
          mistake === undefined
            ? invalidDelivery(body, issues)
            : invalidDelivery(body, [{ path: [], message: mistake }])
        return { success: false, error }
      }
      // The rest is checked below.
      const delivery = value as Delivery
      const { subscriptionId, notification } = delivery
      const { id, time, ver, type, payload } = notification
      // The first of a type counts. A scan, because a Map would hash the text of every delivery's type anew,
      // which takes longer than comparing with a few names.
      for (const reader of payloadReaders) {
        if (reader.type !== type) continue
        const result = reader.read(payload)
        if (result.issues)
          return { success: false, error: invalidDelivery(body, result.issues, result.cause) }
        if (result.payload === payload) break
        // A copy, because the delivery may be an object of the caller's. The fields are also named one by one, because
        // a spread leaves out those that come from a prototype's getter.
        const copy = { ...notification, id, time, ver, type, payload: result.payload }
        return { success: true, data: { ...delivery, subscriptionId, notification: copy as never } }
      }
      return { success: true, data: delivery }
    } catch (thrown) {
      return { success: false, error: unreadableDelivery(body, thrown) }
    }
  }

  const parser = {
    safeParse,
    parse(body: unknown): Delivery {
      const { data, error } = safeParse(body)
      if (error) throw error
      return data
    },
  }
  // Every payload goes through the reader of its type, which is what the type parameter states.
  return parser as unknown as DeliveryParser<Payloads>
}

/** A service may write ids as text. */
function withNumericId(value: unknown): unknown {
  const given = Object(value).subscriptionId
  const subscriptionId = numericId(given)
  return subscriptionId === given ? value : { ...Object(value), subscriptionId }
}

/** The parser that knows only the documented payload. */
export const defaultParser = parserOf({})

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

const byteOrderMark = '\uFEFF'
// `ignoreBOM` keeps the byte order mark, which `valueOfText` leaves out.
const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

type Bytes = NonNullable<Parameters<(typeof utf8)['decode']>[0]>

/** An `ArrayBuffer` or any view on one. By tag and not by instanceof: other realms (a worker's vm, Jest) have their own. */
export function isBytes(body: unknown): body is Bytes {
  try {
    return ArrayBuffer.isView(body) || Object.prototype.toString.call(body) === '[object ArrayBuffer]'
  } catch {
    // A `Proxy` may throw even here.
    return false
  }
}

/** Whether a body is larger than `maxBytes`. An object that was parsed before has no size. */
export function isLarger(body: unknown, maxBytes: number): boolean {
  if (typeof body !== 'string') return isBytes(body) && body.byteLength > maxBytes
  // A UTF-16 code unit is one to three bytes of UTF-8: most texts need no counting.
  return body.length > maxBytes || (body.length * 3 > maxBytes && new Blob([body]).size > maxBytes)
}

/**
 * The JSON value in text or bytes; a value that was parsed before is returned as it is.
 *
 * @throws `SyntaxError` for text or bytes without one. Its message is the rest of a sentence that begins with "the body",
 * and quotes nothing of it
 */
export function valueOfBody(body: unknown): unknown {
  if (typeof body === 'string') return valueOfText(body)
  return isBytes(body) ? valueOfText(textOf(body)) : body
}

function textOf(bytes: Bytes): string {
  try {
    return utf8.decode(bytes)
  } catch {
    throw new SyntaxError('is not UTF-8')
  }
}

function valueOfText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    // Checks for a byte order mark only now, because bodies rarely have one.
    if (text[0] === byteOrderMark && text[1] !== byteOrderMark) return valueOfText(text.slice(1))
    if (text.trim() === '') throw new SyntaxError('is empty')
    // Engines quote a few characters around the fault, and some of them name its position.
    const [where] = /position \d+|end of JSON/i.exec(wholeMessageOf(error)) ?? []
    throw new SyntaxError(where === undefined ? 'is not JSON' : `is not JSON (fault at ${where})`)
  }
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
function readerOf(type: string, schema: PayloadSchemas[string]): PayloadReader['read'] {
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
function zodReader(schema: z.core.$ZodType): PayloadReader['read'] {
  let compiled: z.core.$ZodType | undefined
  return (payload) => {
    compiled ??= z.compile(schema)
    const { data, error } = z.safeParse(compiled, payload, ownMessages)
    return error ? { issues: issuesOf(error, payloadPath) } : { payload: data }
  }
}

function standardReader(schema: PayloadSchemas[string]): PayloadReader['read'] {
  return (payload) => {
    const result = schema['~standard'].validate(payload)
    if ('then' in result) {
      result.catch(() => {})
      throw new TypeError('it returned a promise')
    }
    if (!result.issues) return { payload: result.value }
    const issues = result.issues.map(({ message, path = [] }) => ({
      path: [...payloadPath, ...path.map((key) => (typeof key === 'object' ? key.key : key))],
      message,
    }))
    return { issues }
  }
}

/** The error for a body whose reading threw {@link valueOfBody}'s error, or that of an object's getter. */
export function unreadableDelivery(body: unknown, thrown: unknown): InvalidDeliveryError {
  const message = messageOf(thrown)
  const isText = typeof body === 'string' || isBytes(body)
  return isText ? unusableBody(message, body) : unusableBody(`cannot be read (${message})`, body, thrown)
}

/** @param problem - the rest of a sentence that begins with "the body" */
export function unusableBody(problem: string, body: unknown, cause?: unknown): InvalidDeliveryError {
  return invalidDelivery(body, [{ path: [], message: `the body ${problem}` }], cause)
}

/** The error for a body that is no delivery. Its message is short for every body. */
export function invalidDelivery(
  body: unknown,
  issues: readonly Issue[],
  cause?: unknown,
): InvalidDeliveryError {
  return new InvalidDeliveryError(
    `Not a notification delivery: ${formatIssues(issues)}. The body is in error.body.`,
    { issues, body },
    cause === undefined ? undefined : { cause },
  )
}

/** Advice for values that are often passed by mistake instead of a body. */
function mistakeIn(body: unknown): string | undefined {
  if (body === undefined) return 'the body is undefined (did a body parser run, for this content type?)'
  try {
    const { then, text } = Object(body)
    if (typeof then === 'function') return 'the body is a promise: pass `await request.text()`'
    if (typeof text === 'function') return 'the body is a Request: pass `await request.text()`'
  } catch {
    // The object's getters throw: no advice.
  }
  return undefined
}
