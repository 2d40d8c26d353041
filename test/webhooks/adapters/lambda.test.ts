import {
  ConfigurationError,
  DeliveryReceiver,
  type LambdaEvent,
  toLambdaHandler,
} from 'notification-subscriber/webhooks'
import { expect, test } from 'vitest'
import { lowEnergyDelivery } from '../deliveries.js'
import { authenticated, recordingReceiver, secrets } from '../support.js'

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
  'VPC Lattice': { method: 'POST', headers, body },
  'VPC Lattice with lists of values': { method: 'POST', headers: lists, requestContext: {}, body },
}

test.each(Object.entries(events))('an event of %s is answered in its own form', async (_, event) => {
  const { receiver, received } = recordingReceiver()
  const handler = toLambdaHandler(receiver)
  const hasLists = event.multiValueHeaders !== undefined
  expect(await handler(event)).toEqual({
    statusCode: 204,
    headers: {},
    ...(hasLists && { multiValueHeaders: {} }),
    body: '',
    isBase64Encoded: false,
  })
  expect(received).toEqual([lowEnergyDelivery()])
  const put = JSON.parse(JSON.stringify(event).replace('"POST"', '"PUT"'))
  expect(await handler(put)).toMatchObject({
    statusCode: 405,
    headers: { allow: 'POST' },
    ...(hasLists && { multiValueHeaders: { allow: ['POST'] } }),
  })
})

test('a body that a middleware has parsed is read, also if its event still says base64', async () => {
  const { receiver, received } = recordingReceiver()
  const parsed = { ...byContext, ...encoded, body: lowEnergyDelivery() as never }
  expect(await toLambdaHandler(receiver)(parsed)).toMatchObject({ statusCode: 204 })
  expect(received).toEqual([lowEnergyDelivery()])
})

test('odd multiValueHeaders are answered', async () => {
  const handler = toLambdaHandler(new DeliveryReceiver({ secrets, logger: false }))
  for (const multiValueHeaders of ['text', 5, { token: null }, { token: [null] }]) {
    const odd = { httpMethod: 'POST', ...plain, multiValueHeaders: multiValueHeaders as never }
    expect(await handler(odd)).toMatchObject({ statusCode: 401 })
    expect(await handler({ ...odd, headers })).toMatchObject({ statusCode: 204 })
  }
})

test('no body, and what its event calls base64 and is none, goes to onInvalid with the text', async () => {
  const { receiver, errors, problems } = recordingReceiver()
  const handler = toLambdaHandler(receiver)
  const noBase64 = { ...byContext, ...plain, isBase64Encoded: true }
  for (const event of [noBase64, { ...noBase64, body: null }]) {
    expect(await handler(event)).toMatchObject({ statusCode: 204 })
  }
  expect(problems()).toEqual(['the body is not in base64, as its event says', 'the body is empty'])
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
