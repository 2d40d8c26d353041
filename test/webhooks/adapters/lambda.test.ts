import {
  ConfigurationError,
  DeliveryReceiver,
  type LambdaEvent,
  toLambdaHandler,
} from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import { lowEnergyDelivery } from '../deliveries.js'
import { authenticated, recordingOnInvalid, secrets } from '../support.js'

const body = JSON.stringify(lowEnergyDelivery())
const base64 = Buffer.from(body).toString('base64')
const lists = { 'content-type': ['application/json'], token: [authenticated.token] }
const headers = { 'content-type': 'application/json', ...authenticated }

/** As AWS records them, with the fields that hold no secret cut. */
const plain = { body, isBase64Encoded: false }
const encoded = { body: base64, isBase64Encoded: true }
const byContext = { requestContext: { http: { method: 'POST' } }, headers }
const ofBalancer = { httpMethod: 'POST', requestContext: {} }
const events: Readonly<Record<string, LambdaEvent>> = {
  'a REST API (1.0)': { httpMethod: 'POST', headers, multiValueHeaders: lists, ...plain },
  'an HTTP API (2.0)': { ...byContext, ...plain },
  'a function URL': { ...byContext, ...encoded },
  'a load balancer': { ...ofBalancer, headers, ...encoded },
  'a load balancer with multi-value headers': { ...ofBalancer, multiValueHeaders: lists, ...plain },
}

describe.each(Object.entries(events))('an event of %s', (_, event) => {
  function serve() {
    const received: unknown[] = []
    const { onInvalid, problems } = recordingOnInvalid()
    const receiver = new DeliveryReceiver({ secrets, onInvalid, logger: false })
    return {
      handler: toLambdaHandler(receiver.onAny((_n, { delivery }) => received.push(delivery))),
      received,
      problems,
    }
  }

  test('reaches the handlers, and is answered in its own form', async () => {
    const { handler, received } = serve()
    const answer = await handler(event)
    expect(answer).toEqual({
      statusCode: 204,
      headers: {},
      ...(event.multiValueHeaders && { multiValueHeaders: {} }),
      body: '',
      isBase64Encoded: false,
    })
    expect(received).toEqual([lowEnergyDelivery()])
  })

  test('without a body goes to onInvalid', async () => {
    const { handler, problems } = serve()
    expect(await handler({ ...event, body: null })).toMatchObject({ statusCode: 204 })
    expect(problems()).toEqual(['the body is empty'])
  })

  test('of another method gets 405 with Allow', async () => {
    const { handler } = serve()
    const method = event.httpMethod ? { httpMethod: 'PUT' } : { requestContext: { http: { method: 'PUT' } } }
    const { statusCode, headers, multiValueHeaders } = await handler({ ...event, ...method })
    expect([statusCode, headers]).toEqual([405, { allow: 'POST' }])
    if (event.multiValueHeaders) expect(multiValueHeaders).toEqual({ allow: ['POST'] })
  })
})

test.each<LambdaEvent>([
  { method: 'POST', headers },
  { method: 'POST', headers: lists, requestContext: {} },
])('an event of VPC Lattice reaches the handlers', async (event) => {
  const received: unknown[] = []
  const receiver = new DeliveryReceiver({ secrets }).onAny((_, { delivery }) => received.push(delivery))
  expect(await toLambdaHandler(receiver)({ ...event, body })).toMatchObject({ statusCode: 204 })
  expect(received).toEqual([lowEnergyDelivery()])
})

test.each<unknown>(['text', 5, [], { token: null }, { token: 'the-current-secret' }, { token: [null] }])(
  'odd multiValueHeaders, %j, are answered',
  async (multiValueHeaders) => {
    const handler = toLambdaHandler(new DeliveryReceiver({ secrets, logger: false }))
    const odd = { httpMethod: 'POST', ...plain, multiValueHeaders } as LambdaEvent
    expect([204, 401]).toContain((await handler(odd)).statusCode)
    expect(await handler({ ...odd, headers })).toMatchObject({ statusCode: 204 })
  },
)

test('what its event calls base64, and is none, goes to onInvalid with the text', async () => {
  const { onInvalid, errors, problems } = recordingOnInvalid()
  const handler = toLambdaHandler(new DeliveryReceiver({ secrets, onInvalid }))
  expect(await handler({ ...byContext, ...plain, isBase64Encoded: true })).toMatchObject({ statusCode: 204 })
  expect(problems()).toEqual(['the body is not in base64, as its event says'])
  expect(errors[0]?.body).toBe(body)
})

test.each([undefined, null, {}, 'test', { Records: [{ body: '{}' }] }])(
  'an event of %j is no request, and no success to a queue',
  async (event) => {
    const handler = toLambdaHandler(new DeliveryReceiver({ secrets, logger: false }))
    await expect(handler(event as never)).rejects.toThrow(ConfigurationError)
    await expect(handler(event as never)).rejects.toThrow(/not an HTTP request .* \(its keys: \S.*\)/)
  },
)
