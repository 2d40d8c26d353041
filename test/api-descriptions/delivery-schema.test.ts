import { Ajv2020 } from 'ajv/dist/2020.js'
import { safeParseDelivery, sampleDelivery } from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import { deliveryJsonSchema } from '../../scripts/api-descriptions/json-schemas.js'

const schema = deliveryJsonSchema()
const validate = new Ajv2020({ strict: true, strictTypes: true }).compile(schema)

describe('delivery.schema.json (docs/service.md, Resources)', () => {
  // Any other delivery: test/webhooks/parse.property.test.ts.
  test.each([
    ...['-0', '1.0', '1.5', '1e3', '1e21', '1e308', '1e400', '-1e400', '1e-400', '9007199254740991'],
    ...['9007199254740992', '-9007199254740992', '9007199254740991.5', `${2n ** 70n}`, 'null'],
  ])('gives the verdict of parseDelivery on the number %s, wherever one is', (number) => {
    const { body } = sampleDelivery('lowEnergyAgentOpened', { subscriptionId: 77, time: 77 })
    for (const field of ['subscriptionId', 'time', 'bTime', 'nTime', 'idx']) {
      const text = body.replace(new RegExp(`"${field}":\\d+`), `"${field}":${number}`)
      expect(text).not.toBe(body)
      expect([field, validate(JSON.parse(text))]).toEqual([field, safeParseDelivery(text).success])
    }
  })

  test('says what is wrong with the payload of a lowEnergyAgentOpened, and takes any of another type', () => {
    const delivery = (type: string) => ({
      subscriptionId: 1,
      notification: { id: 'a', time: 1, ver: '1.0', type, payload: { callId: 7 } },
    })
    expect(validate(delivery('cxScoreUpdated'))).toBe(true)
    expect(validate(delivery('lowEnergyAgentOpened'))).toBe(false)
    expect(validate.errors).toContainEqual(expect.objectContaining({ instancePath: '/notification/payload' }))
  })

  test('has an example that matches it, and a description of every field', () => {
    expect(schema.examples).toHaveLength(1)
    for (const example of schema.examples as unknown[]) expect(validate(example)).toBe(true)
    const fields = [...fieldsIn(schema)]
    expect(fields.map(([name]) => name)).toEqual(expect.arrayContaining(['subscriptionId', 'type', 'idx']))
    expect(fields.filter(([, field]) => typeof field.description !== 'string')).toEqual([])
  })
})

type Field = [name: string, schema: { description?: unknown }]

/** Every property with a type of its own, however deep; `not` only says which type an alternative is not for. */
function* fieldsIn(value: unknown): Generator<Field> {
  if (Array.isArray(value)) for (const item of value) yield* fieldsIn(item)
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return
  const { properties = {}, allOf, anyOf }: { properties?: object; allOf?: unknown; anyOf?: unknown } = value
  for (const [name, field] of Object.entries(properties)) {
    if (!('not' in field)) yield [name, field]
    yield* fieldsIn(field)
  }
  yield* fieldsIn(allOf)
  yield* fieldsIn(anyOf)
}
