/** An answer counts for what its maker can know: what stands between client and service knows no subscription. */

import { readFileSync } from 'node:fs'
import type { NotificationClient } from 'notification-subscriber'
import { beforeEach, expect, test } from 'vitest'
import { intermediaryOf } from '../../src/http/intermediary.js'
import { failureOf } from '../support/failure.js'
import { baseUrl, type FakeService, fakeService, subscription } from '../support/fake-service.js'
import { createPath, routeOf } from '../support/routes.js'

let service: FakeService
let client: NotificationClient
beforeEach(async () => {
  service = fakeService()
  client = service.client({ retry: false })
  const { subscriptionId } = await client.createSubscription(subscription)
  service.onCall = () => new Response(null, { status: 204 })
  // Both routes are proven: a 404 of the service counts.
  await client.updateSubscriptionParameters(subscriptionId, { parameters: { token: 'x' } })
  await client.unsubscribe(subscriptionId)
})

interface Recorded {
  readonly name: string
  readonly product: string | undefined
  readonly status: number
  readonly headers: Record<string, string>
  readonly body: string
}

const recorded = readFileSync(new URL('answers.http', import.meta.url), 'utf8')
  .split('\n### ')
  .slice(1)
  .map((text): Recorded => {
    const [head = '', ...paragraphs] = text.trimEnd().split('\n\n')
    const [title = '', status = '', ...fields] = head.split('\n')
    const [name = '', product] = title.split(' -> ')
    const headers = Object.fromEntries(fields.map((field) => /^(.+?): (.+)$/.exec(field)?.slice(1) ?? []))
    return { name, product, status: Number(status.slice(-3)), headers, body: paragraphs.join('\n\n') }
  })
const madeInBetween = recorded.filter(({ product }) => product !== undefined)
const madeByServices = recorded.filter(({ product }) => product === undefined)

const madeBy = (shape: Recorded) =>
  intermediaryOf({ ...shape, header: (name) => new Headers(shape.headers).get(name) ?? undefined })

const answer = ({ body, headers, status }: Recorded) => new Response(body || null, { headers, status })

test.each(madeInBetween)('what a product in between has made: $name', async (shape) => {
  const product = madeBy(shape)
  service.onCall = () => answer(shape)

  // No conflict, no missing subscription, no removal.
  const calls = [
    () => client.createSubscription(subscription),
    () => client.tryCreateSubscription(subscription),
    () => client.updateSubscriptionParameters(1, { parameters: { token: 'x' } }),
    () => client.unsubscribe(1),
  ]
  for (const call of calls) {
    const error = Object(await failureOf(call()))
    const refusal = error.code === 'OUTCOME_UNKNOWN' ? Object(error.cause) : error
    expect(refusal).toMatchObject({ code: 'API', status: shape.status, intermediary: product })
    expect(product).toBeDefined()
    expect(refusal.message).toContain(product)
    expect(error.message).not.toMatch(/check `auth`|another route/)
  }

  service.onToken = () => answer(shape)
  const another = service.client({ retry: false })
  const refused = Object(await failureOf(another.getAccessToken()))
  expect(refused).toMatchObject({ code: 'TOKEN_REQUEST', status: shape.status, intermediary: product })
  expect(refused.message).not.toContain('clientSecret')
})

test.each(madeByServices)('what a service has made counts: $name', async (shape) => {
  const end = baseUrl + routeOf('unsubscribe', 1).path
  const statuses: Record<string, number> = { [baseUrl + createPath]: 409, [end]: 404 }
  service.onCall = ({ method, url }) =>
    answer({ ...shape, status: method === 'PUT' ? 403 : (statuses[url] ?? 500) })
  expect(await failureOf(client.createSubscription(subscription))).toMatchObject({
    code: 'SUBSCRIPTION_CONFLICT',
    intermediary: undefined,
  })
  expect(await failureOf(client.unsubscribe(1))).toMatchObject({
    code: 'SUBSCRIPTION_NOT_FOUND',
    provesEnded: true,
  })
  const update = client.updateSubscriptionParameters(1, { parameters: { token: 'x' } })
  expect(await failureOf(update)).toMatchObject({ code: 'API', status: 403, intermediary: undefined })
})
