import { ApiError } from 'notification-subscriber'
import { expect, test } from 'vitest'
import { onCommandLine } from '../../src/cli/words.js'
import { inCode, messageIn } from '../../src/shared/words.js'
import { failureOf } from '../support/failure.js'
import { fakeService, subscription, tokenAnswer } from '../support/fake-service.js'

/** What only code can set or read. */
const ofCode = /`|error\.body/

const statuses = [301, 302, 400, 401, 403, 404, 405, 409, 418, 429, 500, 501, 503]

test.each([
  ...statuses.map((status) => `${status} of the service`),
  ...statuses.map((status) => `${status} of the token endpoint`),
])('on the command line no option of code is named: %s', async (name) => {
  const service = fakeService()
  const answer = () => new Response('', { status: Number.parseInt(name, 10) })
  if (name.endsWith('service')) service.onCall = answer
  else service.onToken = answer
  const client = service.client({ retry: false })
  const calls = [
    client.createSubscription(subscription),
    client.createSubscription({ ...subscription, recreateIfExists: true }),
    client.unsubscribe(7),
    client.updateSubscriptionParameters(7, { parameters: { token: 'x' } }),
  ]
  for (const call of calls) {
    const error = await failureOf(call)
    if (!(error instanceof Error)) expect.fail(String(error))
    expect(messageIn(inCode, error)).toBe(error.message)
    expect(messageIn(onCommandLine, error)).not.toMatch(ofCode)
  }
})

test('an error that is in an error is in the same words', async () => {
  const service = fakeService()
  service.onToken = () => tokenAnswer('token')
  service.onCall = () => new Response('nothing', { status: 502 })
  const error = await failureOf(service.client({ retry: false }).createSubscription(subscription))
  if (!(error instanceof Error)) expect.fail(String(error))
  expect(error.message).toContain('`recreateIfExists: true`')
  expect(messageIn(onCommandLine, error)).toMatch(/--recreate-if-exists.*502/)
})

test('an error of somebody else is in its own words', () => {
  const error = new ApiError('check `auth`', { status: 401, body: '' })
  expect(messageIn(onCommandLine, error)).toBe('check `auth`')
})
