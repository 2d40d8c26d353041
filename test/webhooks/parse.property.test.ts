import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import {
  deliverySchema,
  InvalidDeliveryError,
  parseDelivery,
  safeParseDelivery,
} from 'notification-subscriber/webhooks'
import { afterEach, describe, expect, test } from 'vitest'
import * as z from 'zod'
import { deliveryJsonSchema } from '../../scripts/api-descriptions/json-schemas.js'
import { tries } from '../support/random-runs.js'
import { deliveryOf, lowEnergyDelivery, lowEnergyPayload } from './deliveries.js'

const validateJsonSchema = new Ajv2020().compile(deliveryJsonSchema())
const compiledSchema = z.compile(deliverySchema)

/** The delivery with one thing changed: a value replaced by any JSON value, a key removed, or one added. */
const nearlyADelivery = fc
  .record({
    delivery: fc.oneof(
      fc.constant(lowEnergyDelivery()),
      fc.string().map((type) => deliveryOf(type, { score: 1 })),
      fc
        .dictionary(fc.string(), fc.jsonValue())
        .map((payload) => deliveryOf('lowEnergyAgentOpened', payload)),
      fc.dictionary(fc.string(), fc.jsonValue()).map((payload) => deliveryOf('new', payload)),
      fc
        .jsonValue()
        .map((value) => deliveryOf('lowEnergyAgentOpened', { ...lowEnergyPayload(), added: value })),
    ),
    place: fc.nat({ max: 30 }),
    change: fc.oneof(
      fc.constant({ kind: 'none' } as const),
      fc.constant({ kind: 'remove' } as const),
      fc.record({
        kind: fc.constantFrom('replace', 'add'),
        value: fc.oneof(
          fc.jsonValue(),
          fc.double(),
          fc.integer(),
          fc.constantFrom('lowEnergyAgentOpened', 'new'),
        ),
      }),
    ),
    key: fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', 'toString')),
  })
  .map(({ delivery, place, change, key }) => {
    const copy = structuredClone(delivery) as Record<string, unknown>
    const places = placesOf(copy)
    const [parent, name] = places[place % places.length] ?? [copy, 'subscriptionId']
    const define = (at: string, value: unknown) =>
      Object.defineProperty(parent, at, { value, enumerable: true, configurable: true, writable: true })
    if (change.kind === 'remove') delete parent[name]
    if (change.kind === 'replace') define(name, change.value)
    if (change.kind === 'add') define(key, change.value)
    return copy
  })

function placesOf(value: Record<string, unknown>): [Record<string, unknown>, string][] {
  return Object.entries(value).flatMap(([key, child]) => [
    [value, key],
    ...(typeof child === 'object' && child !== null && !Array.isArray(child)
      ? placesOf(child as Record<string, unknown>)
      : []),
  ])
}

/** Asserts that the body gives a delivery equal to `json` or an InvalidDeliveryError; returns whether it did. */
function isDelivery(body: unknown, json: unknown): boolean {
  const result = safeParseDelivery(body)
  if (result.success) {
    // As text: that compares own __proto__ and constructor keys too.
    expect(JSON.stringify(result.data)).toBe(JSON.stringify(json))
    expect(JSON.stringify(parseDelivery(body))).toBe(JSON.stringify(json))
  } else {
    expect(result.error).toBeInstanceOf(InvalidDeliveryError)
    expect(result.error.body).toBe(body)
    expect(result.error.issues.length).toBeGreaterThan(0)
    expect(result.error.message.length).toBeLessThan(3000)
    expect(() => parseDelivery(body)).toThrow(InvalidDeliveryError)
  }
  return result.success
}

describe('any JSON value gives a delivery or an InvalidDeliveryError (docs/service.md, Resources)', () => {
  const prototype = Object.getOwnPropertyNames(Object.prototype)
  afterEach(() => expect(Object.getOwnPropertyNames(Object.prototype)).toEqual(prototype))

  test('a JSON value: the same verdict from parseDelivery in every form, deliverySchema and the JSON Schema', () => {
    let accepted = 0
    fc.assert(
      fc.property(
        fc.oneof({ arbitrary: fc.jsonValue(), weight: 1 }, { arbitrary: nearlyADelivery, weight: 4 }),
        (value) => {
          const text = JSON.stringify(value)
          const json: unknown = JSON.parse(text)
          const verdict = isDelivery(text, json)
          if (verdict) accepted += 1
          if (typeof json !== 'string') expect(isDelivery(json, json)).toBe(verdict)
          expect(isDelivery(new TextEncoder().encode(text), json)).toBe(verdict)
          expect(deliverySchema.safeParse(json).success).toBe(verdict)
          expect(compiledSchema.safeParse(json).success).toBe(verdict)
          expect(validateJsonSchema(json)).toBe(verdict)
        },
      ),
      { numRuns: tries(3_000) },
    )
    expect(accepted).toBeGreaterThan(tries(500))
  })
})
