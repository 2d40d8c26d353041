/** What a program can do by a POST to the page's server. */
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { created, lowEnergy, Receiver } from '../support.js'

let emulator: Emulator
beforeEach(async () => {
  emulator = await startEmulator({ page: { environment: { CALLBACK_TOKEN: 'hush', EXTRA: 'x' } } })
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

/** The first event that a page gets. */
async function snapshot() {
  const response = await fetch(`${emulator.pageUrl}events`)
  let text = ''
  for await (const piece of response.body ?? []) {
    text += Buffer.from(piece).toString()
    const [, data] = /^event: snapshot\n.*\ndata: (.*)\n\n/m.exec(text) ?? []
    if (data !== undefined) return JSON.parse(data)
  }
}

test('notify needs a type and a user, and answers with a result for each subscription', async () => {
  await using receiver = await Receiver.start(emulator)
  const subscriptionId = await created(emulator, { url: `${receiver.url}?key=secret` })
  const { status, answer } = await post('notify', { type: 'lowEnergyAgentOpened', username: 'alice' })
  expect([status, answer]).toEqual([
    200,
    {
      results: [
        {
          subscriptionId,
          callbackUrl: `${receiver.url}?key=••••••••`,
          status: 204,
          subscriptionEnded: false,
        },
      ],
    },
  ])
})

test('notify says who is subscribed where nobody was notified: the newest 20, and how many', async () => {
  for (let i = 1; i <= 21; i++) await created(emulator, { users: `user-${i}` })
  const { answer } = await post('notify', { type: 'lowEnergyAgentOpened', username: 'alice' })
  expect(answer).toMatchObject({ results: [], subscribedCount: 21 })
  const { subscribed } = answer as { subscribed: object[] }
  expect(subscribed).toHaveLength(20)
  expect(subscribed[0]).toEqual({
    subscriptionId: 21,
    notificationTypes: ['behavioral'],
    usernames: ['user-21'],
  })
})

test('a notification or a fault that cannot be is 400 with its issues', async () => {
  expect(await post('notify', { type: 'other', username: 'a' })).toMatchObject({
    status: 400,
    answer: { issues: [{ path: ['category'] }] },
  })
  expect(await post('fault', { operation: 'create', fault: { status: 99 } })).toMatchObject({
    status: 400,
    answer: { issues: [{ path: ['fault', 'status'] }] },
  })
})

test('a fault that is planned is named where it strikes', async () => {
  const subscriptionId = await created(emulator)
  await post('fault', { operation: 'callback', fault: { status: 503 }, times: 2, subscriptionId })
  await emulator.notify(lowEnergy)
  expect(await snapshot()).toMatchObject({
    entries: [{ kind: 'request' }, { kind: 'callback', username: 'alice', fault: 'status 503', status: 503 }],
    faults: [{ operation: 'callback', fault: 'status 503', remaining: 1, subscriptionId }],
  })
  await post('clear-faults', {})
  expect(await snapshot()).toMatchObject({ faults: [] })
})

test('secrets are masked until they are asked for, one by one', async () => {
  const subscriptionId = await created(emulator, {
    url: 'https://user:pass@app.example.com/?key=secret',
    fields: { token: 'hush' },
  })
  const shown = await snapshot()
  const text = JSON.stringify(shown)
  for (const secret of ['hush', 'secret"', 'pass@', emulator.clientSecret, 'Basic ZW']) {
    expect(text).not.toContain(secret)
  }
  const [{ id }] = shown.entries
  const { answer: entry } = await post('reveal', { entryId: id })
  expect(entry).toMatchObject({ path: '/api/subscriptions', body: expect.stringContaining('token=hush') })
  const { answer: subscription } = await post('reveal', { subscriptionId })
  expect(subscription).toEqual({
    callbackUrl: 'https://user:pass@app.example.com/?key=secret',
    parameters: [{ name: 'token', value: 'hush' }],
  })
  expect((await post('reveal', { entryId: 99 })).status).toBe(400)
})

test('the variables of a client are those of the emulator, with those of the option', async () => {
  const { service } = await snapshot()
  const variables = Object.fromEntries(
    service.variables.map(({ name, value }: { name: string; value: string }) => [name, value]),
  )
  const mask = '••••••••'
  expect(variables).toEqual({
    NOTIFICATION_BASE_URL: emulator.baseUrl,
    NOTIFICATION_AUTH_URL: emulator.authUrl,
    NOTIFICATION_DOMAIN: 'emulator',
    NOTIFICATION_CLIENT_ID: 'emulator-client',
    NOTIFICATION_CLIENT_SECRET: mask,
    NOTIFICATION_CA_FILE: 'emulator-ca.pem',
    CALLBACK_TOKEN: mask,
    EXTRA: mask,
  })
  expect((await post('reveal', { credentials: true })).answer).toMatchObject({
    variables: expect.arrayContaining([
      { name: 'NOTIFICATION_CLIENT_SECRET', value: emulator.clientSecret },
      { name: 'CALLBACK_TOKEN', value: 'hush' },
    ]),
  })
})

test('end and revoke-tokens do what the emulator does', async () => {
  const subscriptionId = await created(emulator)
  expect((await post('end', { subscriptionId })).answer).toEqual({ ended: true })
  expect((await post('end', { subscriptionId })).answer).toEqual({ ended: false })
  await post('revoke-tokens', {})
  expect(await snapshot()).toMatchObject({
    subscriptions: [],
    ended: [{ subscriptionId, ended: { reason: 'by-request' } }],
    entries: [{ kind: 'request' }, { note: 'ended', subscriptionId }, { note: 'tokens-revoked' }],
  })
})
