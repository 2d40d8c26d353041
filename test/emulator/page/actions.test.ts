/** What a program can do by a POST to the page's server. */
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { created, lowEnergy, Receiver } from '../support.js'

let emulator: Emulator
beforeEach(async () => {
  emulator = await startEmulator({ page: true })
})
afterEach(() => emulator.close())

async function post(action: string, body: object): Promise<{ status: number; answer: object }> {
  const url = emulator.pageUrl ?? ''
  const response = await fetch(`${url}api/${action}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', origin: new URL(url).origin },
    body: JSON.stringify(body),
  })
  const answer = (await response.json()) as object
  return { status: response.status, answer }
}

test('notify answers with a result for each subscription', async () => {
  await using receiver = await Receiver.start(emulator)
  const subscriptionId = await created(emulator, { url: `${receiver.url}?key=secret` })
  expect(
    await post('notify', { type: 'lowEnergyAgentOpened', username: 'alice', payload: '{"a":1}' }),
  ).toEqual({
    status: 200,
    answer: {
      type: 'lowEnergyAgentOpened',
      username: 'alice',
      results: [{ subscriptionId, callbackUrl: `${receiver.url}?…`, status: 204, subscriptionEnded: false }],
      subscribed: [],
      message: 'Answered 204',
    },
  })
  expect(receiver.callbacks[0]?.body).toMatchObject({ notification: { payload: { a: 1 } } })
})

test('notify without a type and a user sends the documented one to the first user who is subscribed to it', async () => {
  await using receiver = await Receiver.start(emulator)
  await created(emulator, { users: 'zoe', types: 'call-score', url: receiver.url })
  await created(emulator, { users: 'bob,carol', url: receiver.url })
  await created(emulator, { users: 'dora', url: receiver.url })
  const sent = { type: 'lowEnergyAgentOpened', username: 'bob', message: 'Answered 204' }
  expect(await post('notify', {})).toMatchObject({ status: 200, answer: sent })
  expect(receiver.callbacks[0]?.body).toMatchObject({ notification: { payload: { username: 'bob' } } })
  const score = { type: 'cxScoreUpdated', username: 'zoe' }
  expect(await post('notify', { type: score.type })).toMatchObject({ status: 200, answer: score })
})

test('notify without a match lists the newest 20 subscriptions', async () => {
  for (let i = 1; i <= 21; i++) await created(emulator, { users: `user-${i}` })
  const { answer } = await post('notify', { type: 'lowEnergyAgentOpened', username: 'alice' })
  expect(answer).toMatchObject({ results: [], message: 'Nothing was sent: no subscription matches.' })
  const { subscribed } = answer as { subscribed: object[] }
  expect(subscribed).toHaveLength(20)
  expect(subscribed[0]).toEqual({
    subscriptionId: 21,
    notificationTypes: ['behavioral'],
    usernames: ['user-21'],
  })
})

test('a notification or a fault that cannot be is 400 with its issues', async () => {
  for (const wrong of [{ type: 'other' }, { type: 'cxScoreUpdated', payload: '{' }]) {
    const field = 'payload' in wrong ? 'payload' : 'type'
    expect(await post('notify', { username: 'a', ...wrong })).toMatchObject({
      status: 400,
      answer: { issues: [{ path: [field] }] },
    })
  }
  expect(await post('inject', { operation: 'create', fault: '{"status":99}' })).toMatchObject({
    status: 400,
    answer: { issues: [{ path: ['fault', 'status'] }] },
  })
})

test('a fault strikes as often as it is injected, of one subscription, or until all are cleared', async () => {
  const subscriptionId = await created(emulator)
  const fault = '{"status":503}'
  await post('inject', { operation: 'callback', fault, times: '2', subscriptionId: `${subscriptionId}` })
  await emulator.notify(lowEnergy)
  expect(emulator.callbacks).toMatchObject([{ status: 503, fault: { status: 503 } }])
  await post('inject', { operation: 'create', fault, times: 'Infinity' })
  for (let i = 0; i < 3; i++) await expect(created(emulator, { users: 'bob' })).rejects.toThrow('503')
  await post('clear', {})
  await created(emulator, { users: 'bob' })
})

test('a callback is sent again byte for byte, to the one subscription', async () => {
  await using receiver = await Receiver.start(emulator)
  await created(emulator, { url: receiver.url, fields: { token: 'hush' } })
  await created(emulator, { url: `${receiver.url}?other` })
  receiver.reactions.push(500, 204, 202)
  await emulator.notify(lowEnergy)
  const index = emulator.callbacks.findIndex(({ status }) => status === 500)
  const failed = emulator.callbacks[index]
  expect(await post('resend', { event: `${index + 3}` })).toMatchObject({
    status: 200,
    answer: { subscriptionId: failed?.subscriptionId, status: 202, message: 'Answered 202' },
  })
  const again = emulator.callbacks.at(-1)
  expect([again?.body, again?.headers, again?.notificationId]).toEqual([
    failed?.body,
    failed?.headers,
    failed?.notificationId,
  ])
  expect(emulator.subscriptions.map(({ consecutiveFailures }) => consecutiveFailures)).toEqual([0, 0])
})

test('what cannot be sent again is refused: a request, a body that was cut, an event that is gone', async () => {
  await created(emulator)
  await emulator.notify({ ...lowEnergy, payload: { text: 'x'.repeat(20_000) } })
  for (const event of [1, 2, 99]) expect((await post('resend', { event })).status).toBe(400)
})

test('end and revoke-tokens do what the emulator does', async () => {
  const subscriptionId = await created(emulator)
  expect((await post('end', { subscriptionId })).answer).toEqual({ ended: true })
  expect((await post('end', { subscriptionId })).answer).toEqual({ ended: false })
  await post('revoke-tokens', {})
  expect(await (await fetch(emulator.pageUrl ?? '')).text()).toContain('Access tokens revoked')
})
