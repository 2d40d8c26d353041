/** Callback bodies in, typed deliveries out (interface.md section 2.3). */
import type { z } from 'zod'
import { ConfigurationError, type InvalidDeliveryError, type Issue } from '../errors.js'
import { formatIssues } from '../issues.js'
import { messageOf } from '../text.js'
import { valueOfBody } from './body.js'
import type { Delivery, DeliveryOf, NoPayloadSchemas, PayloadSchemas } from './delivery.js'
import { Failure, failure } from './failure.js'
import { invalidDelivery } from './invalid-delivery.js'
import { type Reader, transformingReader, validatingReader } from './payload-reader.js'
import { documentedPayloadSchemas } from './payload-schemas.js'
import { anyDeliverySchema } from './schemas.js'

/** What {@link createDeliveryParser} needs. */
export interface DeliveryParserOptions<Payloads extends PayloadSchemas> {
  /**
   * Synchronous zod schemas (zod 4, classic or mini) by `notification.type`. What a schema returns becomes
   * `notification.payload`. One for `lowEnergyAgentOpened` replaces the documented one. Transforms and refinements
   * may run twice on a payload that is refused.
   */
  readonly payloads: Payloads
}

/** A delivery, or why the body is none. */
export type DeliveryResult<Payloads extends PayloadSchemas = NoPayloadSchemas> =
  | {
      /** The body is a delivery. */
      success: true
      /** The delivery. */
      data: DeliveryOf<Payloads>
      /** Not there. */
      error?: never
    }
  | {
      /** The body is no delivery. */
      success: false
      /** Why, and the body. */
      error: InvalidDeliveryError
      /** Not there. */
      data?: never
    }

/** Reads callback bodies with the payload schemas it was made with; see {@link createDeliveryParser}. */
export interface DeliveryParser<Payloads extends PayloadSchemas = NoPayloadSchemas> {
  /** Like {@link parseDelivery}. */
  parse(body: unknown): DeliveryOf<Payloads>
  /** Like {@link safeParseDelivery}. */
  safeParse(body: unknown): DeliveryResult<Payloads>
}

/**
 * Makes a parser that also knows the payloads of further notification types: the interface document gives
 * those of `lowEnergyAgentOpened` only (section 2.3), and for every other type the payload is any object.
 *
 * @throws ConfigurationError if `payloads` is not an object of zod 4 schemas.
 *
 * @example
 * ```ts
 * import { z } from 'zod'
 *
 * const parser = createDeliveryParser({ payloads: { cxScoreUpdated: z.object({ score: z.number() }) } })
 * const { notification } = parser.parse(body)
 * if (notification.type === 'cxScoreUpdated') notification.payload.score // number
 * ```
 */
export function createDeliveryParser<Payloads extends PayloadSchemas>(
  options: DeliveryParserOptions<Payloads>,
): DeliveryParser<Payloads> {
  const payloads = Object.entries(checkedPayloadSchemas(options))
  const documented = Object.entries(documentedPayloadSchemas)
  const payloadReaders = [
    ...payloads.map(([type, schema]) => ({ type, read: transformingReader(type, schema) })),
    ...documented.map(([type, schema]) => ({ type, read: validatingReader(schema) })),
  ]
  // Every payload goes through the reader of its type, which is what the type parameter states.
  const read = deliveryReader(payloadReaders) as Reader<DeliveryOf<Payloads>>

  return {
    parse(body) {
      try {
        return read(body)
      } catch (thrown) {
        throw invalidDelivery(body, failureOf(thrown))
      }
    },
    safeParse(body) {
      try {
        return { success: true, data: read(body) }
      } catch (thrown) {
        return { success: false, error: invalidDelivery(body, failureOf(thrown)) }
      }
    },
  }
}

const defaultParser = createDeliveryParser({ payloads: {} })

/**
 * Reads the body of a callback (interface.md section 2.3).
 *
 * Unknown fields, notification types and versions are kept: nothing is copied or left out. An object comes back
 * as the same object.
 *
 * @param body The body as text, as bytes (any `ArrayBuffer` or view on one, in UTF-8) or already parsed.
 * @throws InvalidDeliveryError, and nothing else, if it is not a delivery: `issues` says why, `body` keeps it.
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

interface PayloadReader {
  readonly type: string
  readonly read: Reader
}

type AnyDelivery = z.input<typeof anyDeliverySchema>

function deliveryReader(payloadReaders: readonly PayloadReader[]): Reader {
  const readAnyDelivery = validatingReader(anyDeliverySchema)
  return (body) => {
    const delivery = readAnyDelivery(valueOfBody(body))
    const { type, payload } = delivery.notification
    // The first of a type counts. A scan, because a Map would hash the text of every delivery's type anew,
    // which takes longer than comparing with a few names.
    for (const reader of payloadReaders) {
      if (reader.type !== type) continue
      const result = readPayload(reader, payload)
      return result === payload ? delivery : withPayload(delivery, result)
    }
    return delivery
  }
}

function readPayload({ read }: PayloadReader, payload: unknown): unknown {
  try {
    return read(payload)
  } catch (thrown) {
    const { issues, cause } = failureOf(thrown)
    throw new Failure(issues.map(belowPayload), cause)
  }
}

/** Other things are thrown by an object whose getters or proxy traps throw. */
function failureOf(thrown: unknown): Failure {
  return Failure.is(thrown) ? thrown : failure(`the body cannot be read (${messageOf(thrown)})`, thrown)
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

const belowPayload = ({ path, message }: Issue): Issue => ({
  path: ['notification', 'payload', ...path],
  message,
})

/** A shallow copy: the delivery may be an object of the caller's. */
function withPayload(delivery: AnyDelivery, payload: unknown) {
  // By name too, because a spread leaves out fields that come from a prototype's getter.
  const { subscriptionId, notification } = delivery
  const { id, time, ver, type } = notification
  return { ...delivery, subscriptionId, notification: { ...notification, id, time, ver, type, payload } }
}

function checkedPayloadSchemas<Payloads extends PayloadSchemas>(options: DeliveryParserOptions<Payloads>) {
  // Callers in JavaScript may pass anything.
  const payloads: unknown = (options as Partial<typeof options> | undefined)?.payloads
  const issues: Issue[] = []
  if (!isObject(payloads)) {
    issues.push({ path: ['payloads'], message: 'expected an object of zod schemas by notification type' })
  } else {
    for (const [type, schema] of Object.entries(payloads)) {
      if (!isZodSchema(schema)) issues.push({ path: ['payloads', type], message: 'expected a zod 4 schema' })
    }
  }
  if (issues.length === 0) return options.payloads
  throw new ConfigurationError(`The options of the delivery parser cannot work: ${formatIssues(issues)}.`, {
    issues,
  })
}

// zod 4's own mark, which classic and mini share and zod 3 does not have. Not instanceof: the user's zod may be
// another copy.
function isZodSchema(value: unknown): value is z.core.$ZodType {
  return isObject(value) && '_zod' in value && isObject(value._zod) && 'run' in value._zod
}
