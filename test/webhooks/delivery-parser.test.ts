import {
  ConfigurationError,
  createDeliveryParser,
  InvalidDeliveryError,
  type PayloadSchemas,
} from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import * as mini from 'zod/mini'
import { deliveryOf, lowEnergyDelivery } from './deliveries.js'

const scoreDelivery = () => deliveryOf('cxScoreUpdated', { score: '87', added: true })

const parserFor = (schema: z.core.$ZodType) => createDeliveryParser({ payloads: { cxScoreUpdated: schema } })

describe('payload schemas for types whose payload is not documented', () => {
  test('what the schema returns becomes the payload', () => {
    const parser = parserFor(z.object({ score: z.coerce.number() }))
    expect(parser.parse(JSON.stringify(scoreDelivery()))).toEqual(deliveryOf('cxScoreUpdated', { score: 87 }))
  })

  test.each<[string, z.core.$ZodType, unknown]>([
    ['strips', z.object({ score: z.string() }), { score: '87' }],
    ['keeps', z.looseObject({ score: z.string() }), { score: '87', added: true }],
    ['transforms', z.object({ score: z.string().transform(Number) }), { score: 87 }],
    ['adds defaults', z.object({ trend: z.string().default('flat') }), { trend: 'flat' }],
    ['catches', z.object({ score: z.number().catch(-1) }), { score: -1 }],
    ['replaces', z.object({}).transform(() => undefined), undefined],
    ['is mini', mini.object({ score: mini.string() }), { score: '87' }],
    ['is lazy', z.lazy(() => z.object({ score: z.string() })), { score: '87' }],
    [
      'is recursive',
      z.object({
        score: z.string(),
        get next() {
          return z.optional(z.object({}))
        },
      }),
      { score: '87' },
    ],
    ['accepts anything', z.any(), { score: '87', added: true }],
  ])('a schema that %s', (_, schema, payload) => {
    const { notification } = parserFor(schema).parse(scoreDelivery())
    expect(notification.payload).toEqual(payload)
  })

  test('a refused payload is an InvalidDeliveryError with paths from the root', () => {
    const result = parserFor(z.object({ scores: z.array(z.number()) })).safeParse(
      deliveryOf('cxScoreUpdated', { scores: [1, 'two'] }),
    )
    expect(result.error).toBeInstanceOf(InvalidDeliveryError)
    expect(result.error?.issues).toEqual([
      { path: ['notification', 'payload', 'scores', 1], message: 'must be a number, not text' },
    ])
    expect(result.error?.message).toContain('`notification.payload.scores[1]` must be a number, not text')
  })

  test('the payload stays an object whatever the schema accepts', () => {
    expect(parserFor(z.any()).safeParse(deliveryOf('cxScoreUpdated', 'text')).success).toBe(false)
  })

  test('other types are read as without a schema', () => {
    const parser = parserFor(z.never())
    expect(parser.parse(lowEnergyDelivery())).toEqual(lowEnergyDelivery())
    expect(parser.parse(deliveryOf('somethingNew', { a: 1 }))).toEqual(deliveryOf('somethingNew', { a: 1 }))
    expect(parser.safeParse(deliveryOf('lowEnergyAgentOpened', {})).success).toBe(false)
  })

  test('a schema for lowEnergyAgentOpened replaces the documented one', () => {
    const parser = createDeliveryParser({
      payloads: { lowEnergyAgentOpened: z.object({ callId: z.number() }) },
    })
    expect(parser.parse(deliveryOf('lowEnergyAgentOpened', { callId: 1 })).notification.payload).toEqual({
      callId: 1,
    })
    expect(parser.safeParse(lowEnergyDelivery()).success).toBe(false)
    const any = createDeliveryParser({ payloads: { lowEnergyAgentOpened: z.any() } })
    expect(any.parse(deliveryOf('lowEnergyAgentOpened', {})).notification.payload).toEqual({})
  })

  test('the methods work without their parser', () => {
    const { parse, safeParse } = parserFor(z.object({ score: z.string() }))
    expect(parse(scoreDelivery()).notification.payload).toEqual({ score: '87' })
    expect(safeParse(scoreDelivery()).success).toBe(true)
  })
})

describe('a caller’s object', () => {
  test('is never changed', () => {
    const body = scoreDelivery()
    const delivery = parserFor(z.object({ score: z.coerce.number() })).parse(body)
    expect(body).toEqual(scoreDelivery())
    expect(delivery).not.toBe(body)
    expect(delivery.notification).not.toBe(body.notification)
  })

  const withProto = JSON.stringify(scoreDelivery()).replaceAll('{"', '{"__proto__":{"polluted":true},"')
  test.each<[string, unknown]>([
    ['a caller’s object', JSON.parse(withProto)],
    ['text', withProto],
  ])('%s has its unknown fields kept, one named __proto__ too', (_, body) => {
    const delivery = parserFor(z.object({ score: z.string() })).parse(body)
    expect(delivery.notification.payload).toEqual({ score: '87' })
    expect(Object.hasOwn(delivery, '__proto__')).toBe(true)
    expect(Object.hasOwn(delivery.notification, '__proto__')).toBe(true)
    expect(({} as Record<string, unknown>).polluted).toBeUndefined()
  })

  test('may have its fields on a prototype', () => {
    const gettersOf = (fields: object) =>
      Object.create(
        Object.defineProperties(
          {},
          Object.fromEntries(
            Object.entries(fields).map(([name, value]) => [name, { get: () => value, enumerable: false }]),
          ),
        ),
      )
    const { notification, ...fields } = scoreDelivery()
    const body = gettersOf({ ...fields, notification: gettersOf(notification) })
    const delivery = parserFor(z.object({ score: z.coerce.number() })).parse(body)
    expect(delivery).toEqual(deliveryOf('cxScoreUpdated', { score: 87 }))
  })
})

describe('names that every object has', () => {
  test.each(['constructor', 'toString', 'hasOwnProperty'])('%s is a type without a schema', (type) => {
    const delivery = deliveryOf(type, { a: 1 })
    expect(parserFor(z.never()).parse(delivery)).toBe(delivery)
  })

  test.each(['__proto__', 'constructor'])('%s can be given a schema', (type) => {
    const parser = createDeliveryParser({
      payloads: { [type]: z.object({ a: z.string() }) } as PayloadSchemas,
    })
    expect(parser.safeParse(deliveryOf(type, { a: 'a' })).success).toBe(true)
    expect(parser.safeParse(deliveryOf(type, { a: 1 })).success).toBe(false)
  })
})

describe('a schema that cannot answer', () => {
  test('an asynchronous schema is named as the reason and leaves no rejection behind', async () => {
    const unhandled: unknown[] = []
    const note = (reason: unknown) => unhandled.push(reason)
    process.on('unhandledRejection', note)
    const rejecting = async () => {
      throw new Error('rejected')
    }
    const schemas = [
      z.object({}).refine(rejecting),
      z.object({}).transform(rejecting),
      z.object({ score: z.string().refine(rejecting) }),
      z.object({}).transform((payload) => Promise.resolve(payload)),
      z.object({}).refine(() => Promise.resolve(true)),
    ]
    for (const schema of schemas) {
      const parser = parserFor(schema)
      for (const body of [scoreDelivery(), scoreDelivery()]) {
        const { error } = parser.safeParse(body)
        expect(error).toBeInstanceOf(InvalidDeliveryError)
        expect(error?.message).toContain(
          '`notification.payload`: the schema for "cxScoreUpdated" is asynchronous or failed (',
        )
        expect(error?.cause).toBeInstanceOf(Error)
      }
    }
    await new Promise((resolve) => setTimeout(resolve, 10))
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
  })

  test.each<[string, (value: unknown) => unknown]>([
    [
      'transform',
      (cause) =>
        z.object({}).transform(() => {
          throw cause
        }),
    ],
    [
      'refinement',
      (cause) =>
        z.object({}).refine(() => {
          throw cause
        }),
    ],
  ])('a %s that throws is named with its message and is the cause', (_, schemaThrowing) => {
    const cause = new Error('boom')
    const { error } = parserFor(schemaThrowing(cause) as z.core.$ZodType).safeParse(scoreDelivery())
    expect(error).toBeInstanceOf(InvalidDeliveryError)
    expect(error?.message).toContain('the schema for "cxScoreUpdated" is asynchronous or failed (boom)')
    expect(error?.cause).toBe(cause)
  })

  test('a lazy schema that throws is named', () => {
    const schema = z.lazy((): z.ZodType => {
      throw new Error('boom')
    })
    expect(() => parserFor(schema).parse(scoreDelivery())).toThrow(
      /^Not a notification delivery: `notification\.payload`: the schema for "cxScoreUpdated" is asynchronous or failed/,
    )
  })

  test('whatever it throws, nothing but an InvalidDeliveryError comes out', () => {
    const trap = () => {
      throw new Error('trap')
    }
    for (const thrown of [
      undefined,
      null,
      Symbol('odd'),
      Object.create(null),
      new Proxy({}, { getPrototypeOf: trap, get: trap }),
    ]) {
      const schema = z.object({}).transform(() => {
        throw thrown
      })
      expect(() => parserFor(schema).parse(scoreDelivery())).toThrow(InvalidDeliveryError)
    }
  })
})

describe('the message about many or long problems', () => {
  test('lists the first few and counts the rest', () => {
    const error = parserFor(z.object({ scores: z.array(z.number()) })).safeParse(
      deliveryOf('cxScoreUpdated', { scores: new Array(100_000).fill('x') }),
    ).error
    expect(error?.message).toContain('scores[4]')
    expect(error?.message).not.toContain('scores[5]')
    expect(error?.message).toContain('; and 99995 more. The body')
    expect(error?.issues).toHaveLength(100_000)
  })

  test('shows what was cut, also where lines were joined', () => {
    const schema = z.object({}).transform(() => {
      throw new Error(`begins\n${' '.repeat(300)}ends`)
    })
    expect(parserFor(schema).safeParse(scoreDelivery()).error?.message).toContain('(begins …)')
  })

  test('cuts long keys and long sentences', () => {
    const key = 'k'.repeat(1e6)
    const bodies = [deliveryOf('cxScoreUpdated', { [key]: 'x' })]
    for (const schema of [
      z.record(z.string(), z.number()),
      z.strictObject({}),
      z.object({ [key]: z.number() }),
    ]) {
      for (const body of bodies) {
        const { error } = parserFor(schema).safeParse(body)
        expect(error?.message.length).toBeLessThan(1000)
      }
    }
  })
})

describe('options that cannot work', () => {
  const notPayloads = 'must be an object of zod schemas by notification type'
  const missing = (rule: string) => `is missing: it ${rule}`
  const notASchema = 'must be a zod 4 schema'
  test.each<[string, unknown, string[], string]>([
    ['no options', undefined, ['payloads'], missing(notPayloads)],
    ['no payloads', {}, ['payloads'], missing(notPayloads)],
    ['null', { payloads: null }, ['payloads'], notPayloads],
    ['an array', { payloads: [z.object({})] }, ['payloads'], notPayloads],
    ['not a schema', { payloads: { a: z.object({}), b: { parse() {} } } }, ['payloads', 'b'], notASchema],
    ['undefined for a schema', { payloads: { a: undefined } }, ['payloads', 'a'], missing(notASchema)],
    ['something like a schema', { payloads: { a: { _zod: null } } }, ['payloads', 'a'], notASchema],
    ['something more like it', { payloads: { a: { _zod: { def: {} } } } }, ['payloads', 'a'], notASchema],
    ['what cannot run', { payloads: { a: { _zod: { run: true } } } }, ['payloads', 'a'], notASchema],
  ])('%s is a ConfigurationError with the path', (_, options, path, message) => {
    const create = () => createDeliveryParser(options as { payloads: PayloadSchemas })
    expect(create).toThrow(ConfigurationError)
    expect(create).toThrow(expect.objectContaining({ issues: [{ path, message }] }))
    const where = `\`${path.join('.')}\` `
    expect(create).toThrow(`The delivery parser cannot work: ${where}${message}.`)
  })

  test('a name that is no option is a ConfigurationError, and not left out in silence', () => {
    const options = { payloads: {}, payload: { cxScoreUpdated: z.object({ score: z.number() }) } }
    expect(() => createDeliveryParser(options)).toThrow(ConfigurationError)
    expect(() => createDeliveryParser(options)).toThrow('there is no `payload` (did you mean `payloads`?)')
  })
})
