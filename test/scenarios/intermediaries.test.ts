/** An answer counts for what its maker can know: what stands between client and service knows no subscription. */

import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { NotificationClient } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { checkService } from '../../src/cli/check/service.js'
import { clientVariables } from '../../src/emulator/words.js'
import { sendCall } from '../../src/keeper/loop/call.js'
import { type AnswerShape, madeByServices, madeInBetween } from '../support/answers-in-between.js'
import { failureOf } from '../support/failure.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const subscription = {
  notificationTypes: ['behavioral'],
  usernames: ['alice'],
  callbackUrl: 'https://app.example.com/',
} as const

let users = 0
let emulator: Emulator
let client: NotificationClient
let folder: Awaited<ReturnType<typeof temporaryFolder>>
beforeAll(async () => {
  emulator = await startEmulator()
  folder = await temporaryFolder()
  await writeFile(join(folder.path, 'ca.pem'), emulator.ca)
})
afterAll(async () => {
  await emulator.close()
  await folder[Symbol.asyncDispose]()
})
beforeEach(() => {
  client = new NotificationClient({ ...emulator.clientOptions, retry: false })
})
afterEach(async () => {
  emulator.clearFaults()
  await client.close()
})

function answerWith(
  shape: AnswerShape,
  ...operations: ('token' | 'create' | 'update' | 'unsubscribe')[]
): void {
  const { status, headers = {}, body } = shape
  for (const operation of operations) {
    emulator.injectFault(operation, { status, headers, body }, { times: Number.POSITIVE_INFINITY })
  }
}

/** The steps of `check` that failed. */
async function failedSteps(): Promise<string[]> {
  const environment = clientVariables(emulator, join(folder.path, 'ca.pem'))
  const messages: string[] = []
  for await (const { name, outcome, message } of checkService(environment, emulator.ca)) {
    if (outcome === 'failed') messages.push(`${name}: ${message}`)
  }
  return messages
}

const { signal } = new AbortController()
const spec = `behavioral ${subscription.callbackUrl}` as const

describe('what a product in between has made', () => {
  test.each(Object.entries(madeInBetween))('%s', async (_name, shape) => {
    const { product } = shape
    const { subscriptionId } = await client.createSubscription({
      ...subscription,
      usernames: [`user${++users}`],
    })
    // Both routes are proven: a 404 of the service would count.
    await client.updateSubscriptionParameters(subscriptionId, { parameters: { token: 'x' } })
    await client.unsubscribe(subscriptionId)
    answerWith(shape, 'create', 'update', 'unsubscribe')

    // No conflict, no missing subscription, no removal.
    const calls = [
      () => client.createSubscription(subscription),
      () => client.tryCreateSubscription(subscription),
      () => client.updateSubscriptionParameters(1, { parameters: { token: 'x' } }),
      () => client.unsubscribe(1),
    ]
    for (const call of calls) {
      const error = Object(await failureOf(call()))
      const answer = error.code === 'OUTCOME_UNKNOWN' ? Object(error.cause) : error
      expect(answer).toMatchObject({ code: 'API', status: shape.status, intermediary: product })
      expect(answer.message).toContain(product)
      expect(error.message).not.toContain('check `auth`')
    }

    // The keeper takes nothing for proven, and blames neither credentials nor routes.
    for (const call of [
      { kind: 'create', spec },
      { kind: 'recreate', spec },
      { kind: 'update', id: 1 },
      { kind: 'unsubscribe', id: 1 },
    ] as const) {
      const result = await sendCall(client, call, 'alice', { parameters: { token: 'x' } }, signal)
      expect(result).toMatchObject({ failure: { kind: 'SERVICE' } })
    }

    expect(await failedSteps()).toEqual([
      expect.stringContaining(`Authorization: ${product}, and not the service,`),
    ])

    // The token endpoint.
    emulator.clearFaults()
    answerWith(shape, 'token')
    await using another = new NotificationClient({ ...emulator.clientOptions, retry: false })
    const refused = Object(await failureOf(another.getAccessToken()))
    expect(refused).toMatchObject({ code: 'TOKEN_REQUEST', status: shape.status, intermediary: product })
    expect(refused.message).not.toContain('clientSecret')
    const kept = await sendCall(another, { kind: 'create', spec }, 'alice', {}, signal)
    expect(kept).toMatchObject({ kind: 'refused', failure: { kind: 'SERVICE' } })
    expect(await failedSteps()).toEqual([expect.stringContaining(`Token: ${product}, and not the service,`)])
  })
})

describe('what a service has made counts', () => {
  test.each(Object.entries(madeByServices))('%s', async (_name, shape) => {
    const { subscriptionId } = await client.createSubscription({
      ...subscription,
      usernames: [`user${++users}`],
    })
    await client.unsubscribe(subscriptionId)
    answerWith({ ...shape, status: 409 }, 'create')
    answerWith({ ...shape, status: 404 }, 'unsubscribe')
    answerWith({ ...shape, status: 403 }, 'update')
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
    const conflict = await sendCall(client, { kind: 'create', spec }, 'alice', {}, signal)
    expect(conflict).toMatchObject({ kind: 'answered', reply: { kind: 'conflict' } })
  })
})
