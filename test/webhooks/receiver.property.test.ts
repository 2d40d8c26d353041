import fc from 'fast-check'
import { type CallbackRequest, DeliveryReceiver } from 'notification-subscriber/webhooks'
import { describe, expect, test } from 'vitest'
import { tries } from '../support/random-runs.js'
import { lowEnergyDelivery } from './deliveries.js'
import { post, secrets } from './support.js'

const anything = fc.anything({
  withBigInt: true,
  withMap: true,
  withNullPrototype: true,
  withTypedArray: true,
})
const token = fc.oneof(fc.constantFrom(...secrets.token), fc.string(), anything)
const headers = fc.oneof(
  fc.record({ token }),
  fc.dictionary(fc.oneof(fc.string(), fc.constantFrom('token', 'Token')), token),
  fc.constantFrom(...secrets.token).map((value) => new Headers({ token: value })),
  anything,
)
const body = fc.oneof(
  fc.constant(JSON.stringify(lowEnergyDelivery())),
  fc.string({ unit: 'binary' }),
  fc.uint8Array(),
  anything,
)
const method = fc.oneof(fc.constantFrom('POST', 'GET', undefined), fc.string())
const request = fc.record({ method, headers, body })

describe('handle answers every request with 204, 401, 405 or 413', () => {
  for (const options of [{ secrets }, { allowUnauthenticated: true } as const]) {
    test(`whatever the request has, with ${Object.keys(options)}`, async () => {
      const counts: Record<number, number> = {}
      const receiver = new DeliveryReceiver({ ...options, maxBodyBytes: 500, logger: false }).onAny(() => {
        throw new Error('no')
      })
      await fc.assert(
        fc.asyncProperty(request, async (value) => {
          const { status } = await receiver.handle(value as CallbackRequest)
          expect([204, 401, 405, 413]).toContain(status)
          counts[status] = (counts[status] ?? 0) + 1
        }),
        { numRuns: tries(3_000) },
      )
      expect(counts[204]).toBeGreaterThan(tries(30))
    })
  }

  test('a body whose properties cannot be read', async () => {
    const body = Object.defineProperty({}, 'subscriptionId', { get: () => expect.unreachable() })
    const receiver = new DeliveryReceiver({ secrets, logger: false })
    expect((await receiver.handle({ ...post(), body })).status).toBe(204)
  })
})
