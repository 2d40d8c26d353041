/** Callback bodies in, typed deliveries out (docs/service.md, Delivery). */
import * as z from 'zod'
import type { InvalidDeliveryError } from '../../errors.js'
import { validate } from '../../shared/issues.js'
import { valueOfBody } from './body.js'
import type { Delivery, NoPayloadSchemas, PayloadSchemas } from './delivery.js'
import { Failure } from './failure.js'
import { invalidDelivery } from './invalid-delivery.js'
import { payloadPath, transformingReader, validatingReader } from './payload-reader.js'
import { documentedType, lowEnergyAgentOpenedPayloadSchema } from './payload-schemas.js'
import { payloadsOptionSchema } from './payloads-option.js'
import { refuseOptions } from './refuse-options.js'
import { anyDeliverySchema } from './schemas.js'

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
  validate(z.strictObject({ payloads: payloadsOptionSchema() }), Object(options), (issues) =>
    refuseOptions('The delivery parser', issues),
  )
  return parserOf(options.payloads)
}

const readDocumentedPayload = validatingReader(lowEnergyAgentOpenedPayloadSchema, payloadPath)
const readAnyDelivery = validatingReader(anyDeliverySchema)

/** The notification types whose payloads a parser reads with a schema of the user's. */
const typesOfParsers = new WeakMap<object, readonly string[]>()

/** The notification types that a user gave this parser schemas for, as far as this copy of the package made it. */
export function typesWithSchemaOf(parser: object): readonly string[] {
  return typesOfParsers.get(parser) ?? []
}

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
      throw invalidDelivery(body, Failure.of(thrown))
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
  typesOfParsers.set(parser, Object.keys(payloads))
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
