/** `payloads` takes the schemas of every library that implements Standard Schema (https://standardschema.dev). */
import { type } from 'arktype'
import {
  createDeliveryParser,
  InvalidDeliveryError,
  type PayloadSchemas,
} from 'notification-subscriber/webhooks'
import * as v from 'valibot'
import { describe, expect, test } from 'vitest'
import * as z from 'zod'
import * as mini from 'zod/mini'
import { z as z3 } from 'zod3'
import { deliveryOf } from '../webhooks/deliveries.js'

const payloads = {
  zod: z.object({ scores: z.array(z.string().transform(Number)) }),
  mini: mini.object({ scores: mini.array(mini.pipe(mini.string(), mini.transform(Number))) }),
  zod3: z3.object({ scores: z3.array(z3.string().transform(Number)) }),
  valibot: v.object({ scores: v.array(v.pipe(v.string(), v.transform(Number))) }),
  arktype: type({ scores: type('string').pipe(Number).array() }),
}
const { parse, safeParse } = createDeliveryParser({ payloads })

const fail = () => {
  throw new Error('boom')
}
const throwing: Record<keyof typeof payloads, PayloadSchemas[string]> = {
  zod: z.object({}).transform(fail),
  mini: mini.pipe(mini.object({}), mini.transform(fail)),
  zod3: z3.object({}).transform(fail),
  valibot: v.pipe(v.object({}), v.transform(fail)),
  arktype: type({}).pipe(fail),
}

const later = async () => true
const asynchronous: Record<string, PayloadSchemas[string]> = {
  zod: z.object({}).refine(later),
  valibot: v.pipeAsync(v.object({}), v.checkAsync(later)),
}

describe.each(Object.keys(payloads) as (keyof typeof payloads)[])('a schema of %s', (name) => {
  test('gives the payload its output', () => {
    const { notification } = parse(JSON.stringify(deliveryOf(name, { scores: ['1', '2'] })))
    expect(notification.payload).toEqual({ scores: [1, 2] })
  })

  test('that refuses a payload says where, from the root, and why in its own words', () => {
    const { error } = safeParse(deliveryOf(name, { scores: ['1', true] }))
    expect(error).toBeInstanceOf(InvalidDeliveryError)
    expect(error?.issues).toEqual([
      { path: ['notification', 'payload', 'scores', 1], message: expect.stringMatching(/string|text/) },
    ])
  })

  test('that throws is an InvalidDeliveryError with the cause, which names the schema', () => {
    const parser = createDeliveryParser({ payloads: { mine: throwing[name] } })
    // By the standard, zod validates anew, asynchronously, after its first try has thrown.
    const reason = ['valibot', 'arktype'].includes(name) ? 'boom' : 'it returned a promise'
    const message = `the schema for "mine" is asynchronous or failed (${reason})`
    const { error } = parser.safeParse(deliveryOf('mine', {}))
    expect(error?.issues).toEqual([{ path: ['notification', 'payload'], message }])
    expect(error?.cause).toHaveProperty('message', reason)
  })
})

test.each(Object.entries(asynchronous))('an asynchronous schema of %s is refused', (_, schema) => {
  const parseWithIt = () => createDeliveryParser({ payloads: { mine: schema } }).parse(deliveryOf('mine', {}))
  expect(parseWithIt).toThrow(/synchronous/)
  expect(parseWithIt).toThrow(
    expect.objectContaining({ issues: [{ path: expect.any(Array), message: expect.any(String) }] }),
  )
})
