import { Ajv2020 } from 'ajv/dist/2020.js'
import fc from 'fast-check'
import { safeParseDelivery } from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import { deliveryJsonSchema } from '../../scripts/api-descriptions/json-schemas.js'

const schema = deliveryJsonSchema()
const validate = new Ajv2020({ strict: true, strictTypes: true }).compile(schema)

/** Numbers as a sender may write them: JavaScript reads some of them as other ones. */
const numberText = fc.oneof(
  fc.integer().map(String),
  fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n }).map(String),
  fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => JSON.stringify(value)),
  fc.constantFrom('-0', '1.0', '1.5', '1e3', '1e21', '1e308', '1e400', '-1e400', '1e-400'),
  fc.constantFrom('9007199254740991', '9007199254740992', '-9007199254740992', '9007199254740991.5'),
)
const integerText = fc.integer().map(String)
const stringText = fc.string({ unit: 'binary' }).map((text) => JSON.stringify(text))
const typeText = fc.constantFrom('"lowEnergyAgentOpened"', '"lowEnergyAgentClosed"', '"new"')
const anyText = fc.oneof(numberText, stringText, fc.json({ maxDepth: 2 }))

/** Texts of objects with these fields: mostly right ones, some missing, some of any value, and at times one more. */
function objectText(fields: Record<string, fc.Arbitrary<string>>): fc.Arbitrary<string> {
  const entries = Object.entries(fields).map(([name, right]) =>
    fc
      .oneof({ weight: 30, arbitrary: right }, { weight: 1, arbitrary: anyText }, fc.constant(undefined))
      .map((text) => (text === undefined ? [] : [`${JSON.stringify(name)}:${text}`])),
  )
  const oneMore = fc
    .tuple(fc.oneof(fc.string(), fc.constantFrom('__proto__', 'constructor', 'type')), anyText)
    .map(([name, text]) => `${JSON.stringify(name)}:${text}`)
  const further = fc.array(oneMore, { maxLength: 1 })
  return fc.tuple(further, ...entries).map((parts) => `{${parts.flat().join(',')}}`)
}

const integer = fc.oneof({ weight: 4, arbitrary: integerText }, { weight: 1, arbitrary: numberText })
const lowEnergyPayload = objectText({
  callId: stringText,
  username: stringText,
  bTime: integer,
  nTime: integer,
  idx: integer,
})
const deliveryText = objectText({
  subscriptionId: integer,
  notification: objectText({
    id: stringText,
    time: integer,
    ver: stringText,
    type: fc.oneof({ weight: 3, arbitrary: typeText }, { weight: 1, arbitrary: stringText }),
    payload: fc.oneof({ weight: 3, arbitrary: lowEnergyPayload }, { weight: 1, arbitrary: objectText({}) }),
  }),
})

describe('delivery.schema.json (docs/service.md, Resources)', () => {
  test('gives the verdict of parseDelivery over deliveries of any kind', () => {
    const verdicts = { accepted: 0, refused: 0, acceptedBeyondSafeIntegers: 0 }
    fc.assert(
      fc.property(fc.oneof({ weight: 9, arbitrary: deliveryText }, fc.json()), (text) => {
        const json: unknown = JSON.parse(text)
        const { success, data } = safeParseDelivery(text)
        expect(validate(json)).toBe(success)
        verdicts[success ? 'accepted' : 'refused'] += 1
        if (success && !Number.isSafeInteger(data.notification.time)) verdicts.acceptedBeyondSafeIntegers += 1
      }),
      { numRuns: 5_000 },
    )
    expect(verdicts.accepted).toBeGreaterThan(500)
    expect(verdicts.refused).toBeGreaterThan(500)
    expect(verdicts.acceptedBeyondSafeIntegers).toBeGreaterThan(5)
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
