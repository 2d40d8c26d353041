/** What a service that answers 200 to a create would mean here: one line of the statuses, and nothing is believed that was not. */
import { expect, test, vi } from 'vitest'
import type * as Statuses from '../../src/shared/statuses.js'
import { failureOf } from '../support/failure.js'
import { fakeService, subscription } from '../support/fake-service.js'

vi.mock('../../src/shared/statuses.js', async (importOriginal) => ({
  ...(await importOriginal<typeof Statuses>()),
  isCreated: (status: number) => status === 200,
}))

test('a create that the service answers 200 has its id', async () => {
  const service = fakeService()
  service.onCall = () => Response.json({ subscription_id: 7 })
  expect(await service.client().createSubscription(subscription)).toEqual({ subscriptionId: 7 })
})

test.each<[what: string, answer: () => Response, code: string]>([
  [
    'a login page',
    () => new Response('<!doctype html><form>log in</form>', { headers: { 'content-type': 'text/html' } }),
    'RESPONSE_VALIDATION',
  ],
  ['an error in JSON', () => Response.json({ error: 'session expired' }), 'RESPONSE_VALIDATION'],
  ['a challenge', () => new Response('{}', { headers: { 'cf-mitigated': 'challenge' } }), 'API'],
])('%s with 200 is no subscription, and does not say that there may be one', async (_what, answer, code) => {
  const service = fakeService()
  service.onCall = answer
  const error = await failureOf(service.client().createSubscription(subscription))
  expect(error).toMatchObject({ code, status: 200, message: expect.not.stringMatching(/exists?\b/) })
})
