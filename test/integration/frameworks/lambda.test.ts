/** The block of docs/receiver.md for AWS Lambda, with the events that only a function URL makes. */
import { DeliveryReceiver, type InvalidDeliveryError } from 'notification-subscriber/webhooks'
import { beforeEach, describe, expect, test, vi } from 'vitest'
import type { FunctionUrlEvent, LambdaHandler } from './support/function-url.js'
import { lowEnergy } from './support/notifications.js'
import { runBlock } from './support/page-blocks.js'
import { callbackToken } from './support/subscribed.js'

const { category: _category, ...notification } = lowEnergy
const delivery = JSON.stringify({ subscriptionId: 7, notification })

const event: FunctionUrlEvent = {
  requestContext: { http: { method: 'POST' } },
  // AWS writes names in lower case, and joins what was sent twice with a comma.
  headers: { 'content-type': 'application/json', token: callbackToken },
  body: delivery,
  isBase64Encoded: false,
}

const accepted = { statusCode: 204, headers: {}, body: '', isBase64Encoded: false }

const handled = vi.fn<(callId: string) => void>()
const onInvalid = vi.fn<(error: InvalidDeliveryError) => void>()
const receiver = new DeliveryReceiver({ secrets: { token: callbackToken }, onInvalid, logger: false }).on(
  'lowEnergyAgentOpened',
  ({ payload }) => handled(payload.callId),
)
const exported = await runBlock('AWS Lambda', { receiver })
const handler = exported.handler as LambdaHandler

beforeEach(() => {
  vi.clearAllMocks()
})

describe('a Lambda function with a function URL', () => {
  // A plain body: page.test.ts.
  test('hands a notification to the handler from a body in base64', async () => {
    const body = Buffer.from(delivery).toString('base64')
    expect(await handler({ ...event, body, isBase64Encoded: true })).toEqual(accepted)
    expect(handled).toHaveBeenCalledExactlyOnceWith(lowEnergy.payload.callId)
  })

  test.each([
    ['no body', { ...event, body: undefined }],
    ['a body that is no base64', { ...event, body: '%', isBase64Encoded: true }],
  ])('accepts and reports %s', async (_name, delivered) => {
    expect(await handler(delivered)).toEqual(accepted)
    expect(onInvalid).toHaveBeenCalledOnce()
  })
})
