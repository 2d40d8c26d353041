/** JSON Schemas (2020-12) of what goes over the wire, made from the zod schemas that the package validates with. */
import { z } from 'zod'
import { accessTokenResponseSchema } from '../../src/auth/token-request.js'
import { documentedPayloads } from '../../src/notification-types.js'
import { createSubscriptionResponseSchema } from '../../src/subscriptions/endpoints.js'
import { subscriptionIdSchema } from '../../src/subscriptions/schemas.js'
import { deliverySchema } from '../../src/webhooks/schemas.js'

/** A JSON Schema, of which only what is needed here is known. */
export interface JsonSchema {
  [keyword: string]: unknown
}

/** The body of a callback (docs/service.md, Resources), with the payload of `lowEnergyAgentOpened` where that is the type. */
export function deliveryJsonSchema(): JsonSchema {
  const notification = '/properties/notification'
  const schema = described(z.toJSONSchema(deliverySchema, { io: 'input' }), {
    '/properties/subscriptionId': 'Identifier of the subscription that the notification belongs to.',
    [notification]: 'The notification.',
    [`${notification}/properties/id`]: 'Unique identifier of the notification (UUID-shaped).',
    [`${notification}/properties/time`]:
      "Milliseconds since 1970-01-01 00:00:00 UTC. The unit comes from the service's public developer pages.",
    [`${notification}/properties/ver`]: 'Version of the notification object format, e.g. 1.0.',
    [`${notification}/properties/type`]:
      'Kind of notification, e.g. lowEnergyAgentOpened. A value that is documented nowhere is normal.',
    [`${notification}/properties/payload`]: 'Content that depends on the type.',
  })
  // `z.toJSONSchema` cannot see into a refinement.
  at(schema, notification).allOf = Object.entries(documentedPayloads).map(([type, documented]) => {
    const fields = withoutDialect(z.toJSONSchema(documented.schema))
    const payload = { ...fields, description: `The payload of the type ${type}.` }
    return { anyOf: [{ properties: { type: { not: { const: type } } } }, { properties: { payload } }] }
  })
  const { $schema, ...rest } = schema
  return {
    $schema,
    title: 'Notification delivery',
    description:
      'The JSON body of a callback. Unknown fields, notification types and versions are allowed. ' +
      'Do not answer a callback with an error because of its body: three failures in a row end the subscription.',
    ...rest,
    examples: [
      {
        subscriptionId: 4711,
        notification: {
          id: '6f1c3c1e-5a7c-4c3a-9f61-0b1f0f5b7a11',
          time: 1717000000000,
          ver: '1.0',
          type: 'lowEnergyAgentOpened',
          payload: {
            callId: '9a1f0a52-1f6e-4a41-8b8b-9f1d2d3c4b5a',
            username: 'alice',
            bTime: 21648,
            nTime: 35912,
            idx: 0,
          },
        },
      },
    ],
  }
}

/** A successful answer of the token endpoint (docs/service.md, Resources). */
export function accessTokenJsonSchema(): JsonSchema {
  return described(inputJsonSchema(accessTokenResponseSchema), {
    '/properties/access_token': 'Access token in JWT format, to be sent as `Authorization: Bearer`.',
    '/properties/token_type': 'Always Bearer, in any case.',
    '/properties/expires_in': 'Lifetime in seconds, counted from when the answer was generated.',
  })
}

/** The answer to a successful create (docs/service.md, Endpoints). */
export function createdSubscriptionJsonSchema(): JsonSchema {
  return described(inputJsonSchema(createSubscriptionResponseSchema), {
    '/properties/subscription_id':
      'Identifier of the new subscription: keep it, unsubscribe and update need it.',
  })
}

/** Identifier of a subscription (docs/service.md, Resources). */
export function subscriptionIdJsonSchema(): JsonSchema {
  return withoutDialect(z.toJSONSchema(subscriptionIdSchema))
}

/** What a server may send: fields beyond the known ones are dropped, not refused. */
function inputJsonSchema(schema: z.ZodType): JsonSchema {
  return withoutDialect(z.toJSONSchema(schema, { io: 'input' }))
}

/** A part of an OpenAPI 3.1 document is written in its dialect without saying so. */
export function withoutDialect({ $schema: _, ...schema }: JsonSchema): JsonSchema {
  return schema
}

/** Adds descriptions, each at the place that a JSON Pointer (RFC 6901) names. */
function described(schema: JsonSchema, descriptions: Readonly<Record<string, string>>): JsonSchema {
  for (const [pointer, description] of Object.entries(descriptions)) {
    at(schema, pointer).description = description
  }
  return schema
}

function at(schema: JsonSchema, pointer: string): JsonSchema {
  let value: unknown = schema
  for (const key of pointer.split('/').slice(1)) value = Object(value)[key]
  // A field of the zod schema was renamed: the build is the place to notice.
  if (typeof value !== 'object' || value === null)
    throw new Error(`The JSON Schema has nothing at ${pointer}`)
  return value as JsonSchema
}
