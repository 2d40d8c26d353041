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

test('a fault that cannot be is 400 with its issues', async () => {
  expect(await post('inject', { operation: 'create', fault: '{"status":99}', times: '1' })).toMatchObject({
    status: 400,
    answer: { issues: [{ path: ['fault', 'status'] }] },
  })
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
    answer: { message: 'Answered 202' },
  })
  const { subscriptionId, headers, body, notificationId } = failed ?? {}
  expect(emulator.callbacks.at(-1)).toMatchObject({
    subscriptionId,
    headers,
    body,
    notificationId,
    status: 202,
  })
  expect(emulator.subscriptions.map(({ consecutiveFailures }) => consecutiveFailures)).toEqual([0, 0])
})

test('what cannot be sent again is refused: a request, a body that was cut, an event that is gone', async () => {
  await created(emulator)
  await emulator.notify({ ...lowEnergy, payload: { text: 'x'.repeat(20_000) } })
  for (const event of [1, 2, 99]) expect((await post('resend', { event })).status).toBe(400)
})
