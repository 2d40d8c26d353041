/** Parses callback bodies into typed deliveries (docs/service.md, Delivery). */
import * as z from 'zod'
import type { InvalidDeliveryError } from '../errors.js'
import { configurationError, numericId, validate } from '../shared/validation.js'
import { contentOf, errorOf, invalidDelivery } from './body.js'
import { issueFinder, payloadReaders, payloadsSchema } from './payloads.js'
import { anyDeliverySchema, type Delivery, type NoPayloadSchemas, type PayloadSchemas } from './schemas.js'

/** The options of {@link createDeliveryParser}. */
export interface DeliveryParserOptions<Payloads extends PayloadSchemas> {
  /**
   * Schemas by `notification.type`. A schema's result becomes `notification.payload`. It replaces the documented schema of
   * its type.
   */
  readonly payloads: Payloads
}

/** A delivery, or why the body is no delivery. */
export type DeliveryResult<Payloads extends PayloadSchemas = NoPayloadSchemas> =
  | {
      success: true
      data: Delivery<Payloads>
      error?: never
    }
  | {
      success: false
      error: InvalidDeliveryError
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
 * Makes a parser that also knows the payloads of further notification types: few are documented
 * (docs/service.md, Resources).
 *
 * @throws `ConfigurationError` if `payloads` is not an object of schemas, or another option is given
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

/** Makes the function that reads the JSON `value` of a `body`. @throws `InvalidDeliveryError`, or what a getter throws */
export function deliveryReader<Payloads extends PayloadSchemas>(
  payloads: Payloads,
): (value: unknown, body: unknown) => Delivery<Payloads> {
  const readers = payloadReaders(payloads)

  function read(given: unknown, body: unknown): Delivery {
    const value = withNumericId(given)
    const issues = issuesOfDelivery(value)
    if (issues) throw invalidDelivery(body, mistakeIn(body) ?? issues)
    // The payload is validated below.
    const delivery = value as Delivery
    const { type, payload } = delivery.notification
    // A scan, because a Map would hash the text of every delivery's type anew, which takes longer.
    const result = readers.find((reader) => reader.type === type)?.read(payload)
    if (result?.issues) throw invalidDelivery(body, result.issues, result.cause)
    if (result === undefined || result.payload === payload) return delivery
    // A copy, because the delivery may be an object of the caller's.
    return { ...delivery, notification: { ...delivery.notification, payload: result.payload as never } }
  }
  // Every payload goes through the reader of its type, which is what the type parameter states.
  return read as unknown as (value: unknown, body: unknown) => Delivery<Payloads>
}

const issuesOfDelivery = issueFinder(anyDeliverySchema)

function parserOf<Payloads extends PayloadSchemas>(payloads: Payloads): DeliveryParser<Payloads> {
  const read = deliveryReader(payloads)

  function safeParse(body: unknown): DeliveryResult<Payloads> {
    try {
      return { success: true, data: read(contentOf(body), body) }
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

/** Advice for values that are often passed by mistake instead of a body. */
function mistakeIn(body: unknown): string | undefined {
  if (body === undefined) return 'is undefined (did a body parser run, for this content type?)'
  return body instanceof Promise ? 'is a promise: pass `await request.text()`' : undefined
}

export function logFieldsOf<Payloads extends PayloadSchemas>({
  subscriptionId,
  notification,
}: Delivery<Payloads>) {
  const { id, type }: { id: string; type: string } = notification
  return { subscriptionId, notificationId: id, type }
}
