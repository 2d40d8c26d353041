/** The tracing channels of calls, token requests and callbacks (docs/observability.md, Traces). */
import { AsyncLocalStorage } from 'node:async_hooks'
import { tracingChannel } from 'node:diagnostics_channel'
import { DeliveryReceiver, sampleDelivery } from 'notification-subscriber/webhooks'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { failureOf, refused } from '../support/failure.js'
import { type FakeService, fakeService, subscription } from '../support/fake-service.js'
import { expectNoSecretIn } from '../support/secrets.js'

let ended: { readonly name: string; readonly context: Record<string, unknown> }[]

function listenTo(name: 'call' | 'token' | 'receive') {
  const channel = tracingChannel(`notification-subscriber:${name}`)
  const handlers = {
    start() {},
    end() {},
    asyncStart() {},
    asyncEnd: (context: object) => void ended.push({ name, context: { ...context } }),
    error() {},
  }
  channel.subscribe(handlers)
  onTestFinished(() => void channel.unsubscribe(handlers))
}

let service: FakeService
beforeEach(() => {
  service = fakeService()
  ended = []
  listenTo('call')
  listenTo('token')
})

const contexts = (name: string) => ended.filter((each) => each.name === name).map(({ context }) => context)

test('a create: its method, its requests after the token, and the last status; no result', async () => {
  service.onCall = (_call, count) =>
    count < 3 ? new Response('', { status: 503 }) : Response.json({ subscription_id: 1 }, { status: 201 })
  await service.client({ retry: { baseDelayMs: 0 } }).createSubscription(subscription)
  expect(contexts('call')).toEqual([{ method: 'createSubscription', attempts: 3, status: 201 }])
  expect(contexts('token')).toEqual([{ status: 200 }])
})

test('a call whose last request got no answer has no status, although one before had', async () => {
  service.onCall = (_call, count) => (count === 1 ? new Response('', { status: 503 }) : refused())
  await failureOf(service.client({ retry: { baseDelayMs: 0, maxAttempts: 2 } }).unsubscribe(7))
  const error = expect.objectContaining({ code: 'CONNECTION' })
  expect(contexts('call')).toEqual([{ method: 'unsubscribe', attempts: 2, error }])
})

test('a refused token: the status of the token endpoint, and the error, in both channels', async () => {
  service.onToken = () => Response.json({ error: 'invalid_client' }, { status: 401 })
  await failureOf(service.client().unsubscribe(7))
  const error = expect.objectContaining({ code: 'TOKEN_REQUEST' })
  expect(contexts('token')).toEqual([{ status: 401, error }])
  expect(contexts('call')).toEqual([{ method: 'unsubscribe', attempts: 0, error }])
  expectNoSecretIn(ended)
})

test('a callback publishes type, subscription and status, as far as they are known, and runs its handlers inside', async () => {
  listenTo('receive')
  const storage = new AsyncLocalStorage<string>()
  const { start } = tracingChannel('notification-subscriber:receive')
  start.bindStore(storage, () => 'span')
  const stores: unknown[] = []
  const secrets = { token: 'the-current-secret' }
  const receiver = new DeliveryReceiver({ secrets, logger: false }).onAny(() =>
    stores.push(storage.getStore()),
  )
  const { body, headers } = sampleDelivery('cxScoreUpdated', { subscriptionId: 7, headers: secrets })
  await receiver.handle({ method: 'POST', headers, body })
  await receiver.handle({ method: 'POST', headers, body: '{' })
  await receiver.handle({ method: 'POST', headers: {}, body })
  start.unbindStore(storage)
  expect(stores).toEqual(['span'])
  expect(contexts('receive')).toEqual([
    { type: 'cxScoreUpdated', subscriptionId: 7, status: 204 },
    { type: undefined, subscriptionId: undefined, status: 204 },
    { type: undefined, subscriptionId: undefined, status: 401 },
  ])
})
