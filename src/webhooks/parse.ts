/** Callback bodies in, typed deliveries out (docs/service.md, Delivery). */
import * as z from 'zod'
import { ConfigurationError, InvalidDeliveryError, type Issue } from '../errors.js'
import { parseJsonText } from '../shared/json.js'
import { messageOf } from '../shared/text.js'
import { formatIssues, issuesOf, ownMessages, validate } from '../shared/validation.js'
import { isBytes } from './body.js'
import {
  anyDeliverySchema,
  type Delivery,
  documentedType,
  lowEnergyAgentOpenedPayloadSchema,
  type NoPayloadSchemas,
  type PayloadSchemas,
} from './schemas.js'

/** What {@link createDeliveryParser} needs. */
export interface DeliveryParserOptions<Payloads extends PayloadSchemas> {
  /**
   * Synchronous zod schemas (zod 4, classic or mini) by `notification.type`. What a schema returns becomes
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
      /** Never there, because the body is a delivery. */
      error?: never
    }
  | {
      /** The body is no delivery. */
      success: false
      /** Why, and the body. */
      error: InvalidDeliveryError
      /** Never there, because the body is no delivery. */
      data?: never
    }

/** Reads callback bodies with the payload schemas it was made with; see {@link createDeliveryParser}. */
export interface DeliveryParser<Payloads extends PayloadSchemas = NoPayloadSchemas> {
  /** Like {@link parseDelivery}. */
  parse(body: unknown): Delivery<Payloads>
  /** Like {@link safeParseDelivery}. */
  safeParse(body: unknown): DeliveryResult<Payloads>
}

/**
 * Makes a parser that also knows the payloads of further notification types: only that of `lowEnergyAgentOpened` is
 * documented (docs/service.md, Resources), and for every other type the payload is any object.
 *
 * @throws `ConfigurationError` if `payloads` is not an object of zod 4 schemas, or another option is given
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

/** The schema of the option `payloads`. Made when options are checked: parsing alone does not pay for it. */
export function payloadsSchema() {
  return z.record(
    z.string(),
    z.custom(isZodSchema, 'must be a zod 4 schema'),
    'must be an object of zod schemas by notification type',
  )
}

/**
 * By zod 4's own mark, which classic and mini share and zod 3 does not have. Not by `instanceof`, because the user's zod
 * may be another copy.
 */
function isZodSchema(value: unknown): boolean {
  return typeof Object(value)._zod?.run === 'function'
}

/** Reads one value, or throws a {@link Failure}. */
type Reader<T = unknown> = (value: unknown) => T

/** The path of payloads in a body. */
const payloadPath = ['notification', 'payload']

const readAnyDelivery = validatingReader(anyDeliverySchema)
const readDocumentedPayload = validatingReader(lowEnergyAgentOpenedPayloadSchema, payloadPath)

function parserOf<Payloads extends PayloadSchemas>(payloads: Payloads): DeliveryParser<Payloads> {
  const payloadReaders = [
    ...Object.entries(payloads).map(([type, schema]) => ({ type, read: transformingReader(type, schema) })),
    { type: documentedType, read: readDocumentedPayload },
  ]

  function parse(body: unknown) {
    try {
      const delivery = readAnyDelivery(valueOfBody(body))
      const { subscriptionId, notification } = delivery
      const { id, time, ver, type, payload } = notification
      // The first of a type counts. A scan, because a Map would hash the text of every delivery's type anew,
      // which takes longer than comparing with a few names.
      for (const reader of payloadReaders) {
        if (reader.type !== type) continue
        const result = reader.read(payload)
        if (result === payload) break
        // A copy, because the delivery may be an object of the caller's. The fields are also named one by one, because
        // a spread leaves out those that come from a prototype's getter.
        const copy = { ...notification, id, time, ver, type, payload: result }
        return { ...delivery, subscriptionId, notification: copy }
      }
      return delivery
    } catch (thrown) {
      throw unreadableDelivery(body, thrown)
    }
  }

  const parser = {
    parse,
    safeParse(body: unknown) {
      try {
        return { success: true, data: parse(body) }
      } catch (error) {
        return { success: false, error }
      }
    },
  }
  // Every payload goes through the reader of its type, which is what the type parameter states.
  return parser as DeliveryParser<Payloads>
}

/** The parser that knows the documented payload and no others. */
export const defaultParser = parserOf({})

/**
 * Reads the body of a callback (docs/service.md, Resources).
 *
 * Unknown fields, notification types and versions are kept: nothing is copied or left out. An object comes back
 * as the same object.
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

/** The JSON value in text or bytes; a value that was parsed before is returned as it is. */
export function valueOfBody(body: unknown): unknown {
  if (typeof body === 'string') return valueOfText(body)
  if (!isBytes(body)) return body
  let text: string
  try {
    text = utf8.decode(body)
  } catch (error) {
    throw Failure.ofBody('is not UTF-8', error)
  }
  return valueOfText(text)
}

function valueOfText(text: string): unknown {
  try {
    return parseJsonText(text)
  } catch (error) {
    // A byte order mark is looked for only now, because hardly any body begins with one.
    if (text[0] === byteOrderMark && text[1] !== byteOrderMark) return valueOfText(text.slice(1))
    // Engines quote a few characters around the fault and, some of them, its position.
    throw Failure.ofBody(text.trim() ? `is not JSON (${messageOf(error)})` : 'is empty', error)
  }
}

/**
 * Makes a reader from a schema of this package: synchronous and without transforms, so that the value itself is the
 * result and nothing is built. Where code generation is not allowed, zod runs the schema uncompiled.
 */
function validatingReader<Schema extends z.core.$ZodType>(
  schema: Schema,
  path?: readonly string[],
): Reader<z.input<Schema>> {
  let compiled: Schema | undefined
  return (value) => {
    compiled ??= z.compile(schema)
    const error = z.validate(compiled, value) ? undefined : z.safeParse(schema, value, ownMessages).error
    if (error) throw new Failure(issuesOf(error, path))
    return value as z.input<Schema>
  }
}

/** Makes a reader from a user's schema for the payload of `type`: the schema's output is the result. */
function transformingReader(type: string, schema: z.core.$ZodType): Reader {
  let compiled: z.core.$ZodType | undefined
  return (payload) => {
    let result: z.core.util.SafeParseResult<unknown>
    try {
      compiled ??= compiledIfPossible(schema)
      result = z.safeParse(compiled, payload, ownMessages)
    } catch (cause) {
      const message = `the schema for "${type}" is asynchronous or failed (${messageOf(cause)})`
      throw new Failure([{ path: payloadPath, message }], cause)
    }
    if (result.error) throw new Failure(issuesOf(result.error, payloadPath))
    return result.data
  }
}

/** @throws for a schema with an async function, which must never run, because nothing would handle its rejection */
function compiledIfPossible(schema: z.core.$ZodType): z.core.$ZodType {
  try {
    return z.compile(schema, { strict: true })
  } catch (error) {
    if (error instanceof z.ZodCompileAsyncError) throw error
    return schema
  }
}

/** Why a body is no delivery: thrown by the steps of parsing. Without a stack, because it never leaves this module. */
class Failure {
  readonly issues: readonly Issue[]
  /** What was thrown, if something was. */
  readonly cause: unknown
  readonly #isFailure = true

  constructor(issues: readonly Issue[], cause?: unknown) {
    this.issues = issues
    this.cause = cause
  }

  /** @param problem - the rest of a sentence that begins with "the body" */
  static ofBody(problem: string, cause?: unknown): Failure {
    return new Failure([{ path: [], message: `the body ${problem}` }], cause)
  }

  /** The failure that was thrown; or a new one about anything else that was thrown, by an object whose getters throw. */
  static of(thrown: unknown): Failure {
    // Not `instanceof`, which a thrown proxy could make throw once more.
    if (Object(thrown) === thrown && #isFailure in (thrown as object)) return thrown as Failure
    return Failure.ofBody(`cannot be read (${messageOf(thrown)})`, thrown)
  }
}

/** The error for a body whose reading threw. */
export function unreadableDelivery(body: unknown, thrown: unknown): InvalidDeliveryError {
  const { issues, cause } = Failure.of(thrown)
  return invalidDelivery(body, issuesOfMistake(body) ?? issues, cause)
}

/** The error for a body that is no delivery. Its message is short, however big or odd the body is. */
export function invalidDelivery(
  body: unknown,
  issues: readonly Issue[],
  cause: unknown,
): InvalidDeliveryError {
  return new InvalidDeliveryError(
    `Not a notification delivery: ${formatIssues(issues)}. The body is in error.body.`,
    { issues, body },
    cause === undefined ? undefined : { cause },
  )
}

/** Advice for values that are often passed by mistake instead of a body. */
function issuesOfMistake(body: unknown): readonly Issue[] | undefined {
  const message = mistakeIn(body)
  return message === undefined ? undefined : [{ path: [], message }]
}

function mistakeIn(body: unknown): string | undefined {
  if (body === undefined) return 'the body is undefined (did a body parser run, for this content type?)'
  try {
    const { then, text } = Object(body)
    if (typeof then === 'function') return 'the body is a promise: pass `await request.text()`'
    if (typeof text === 'function') return 'the body is a Request: pass `await request.text()`'
  } catch {
    // The getters of the object throw: keep the issue without advice.
  }
  return undefined
}
