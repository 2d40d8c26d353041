/** What a program can do by a POST to the page's server. */
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { created, lowEnergy, Receiver, requestToken } from '../support.js'

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

async function snapshot() {
  const response = await fetch(`${emulator.pageUrl}events`)
  let text = ''
  for await (const piece of response.body ?? []) {
    text += Buffer.from(piece).toString()
    const [, data] = /^event: snapshot\ndata: (.*)\n\n/m.exec(text) ?? []
    if (data !== undefined) return JSON.parse(data)
  }
}

test('notify needs a type and a user, and answers with a result for each subscription', async () => {
  await using receiver = await Receiver.start(emulator)
  const subscriptionId = await created(emulator, { url: `${receiver.url}?key=secret` })
  const callbackUrl = `${receiver.url}?key=••••••••`
  expect(await post('notify', { type: 'lowEnergyAgentOpened', username: 'alice' })).toMatchObject({
    status: 200,
    answer: {
      results: [{ subscriptionId, callbackUrl, status: 204, subscriptionEnded: false }],
    },
  })
})

test('notify without a match lists the newest 20 subscriptions, and the number of all', async () => {
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
    answer: { issues: [{ path: ['type'] }] },
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
    faults: [{ sentence: `The next callback of subscription ${subscriptionId}: status 503` }],
  })
  await post('clear-faults', {})
  expect(await snapshot()).toMatchObject({ faults: [] })
})

test('a fault strikes until it is lifted, and the others stay', async () => {
  await post('fault', { operation: 'create', fault: { status: 503 }, times: null })
  await post('fault', { operation: 'token', fault: { status: 500 } })
  await expect(created(emulator)).rejects.toThrow('503')
  await expect(created(emulator)).rejects.toThrow('503')
  const { faults } = await snapshot()
  expect(faults).toHaveLength(2)
  await post('lift-fault', { id: faults[0].id })
  await created(emulator)
  expect((await snapshot()).faults).toEqual([faults[1]])
})

test('a callback is sent again byte for byte, to the one subscription, with its answer in the time line', async () => {
  await using receiver = await Receiver.start(emulator)
  await created(emulator, { url: receiver.url, fields: { token: 'hush' } })
  await created(emulator, { url: `${receiver.url}?other` })
  receiver.reactions.push(500, 204, 202)
  await emulator.notify(lowEnergy)
  const failed = emulator.callbacks.find(({ status }) => status === 500)
  const { entries } = await snapshot()
  const { id } = entries.find(({ status }: { status: number }) => status === 500)
  expect(await post('resend', { entryId: id })).toMatchObject({
    status: 200,
    answer: { subscriptionId: failed?.subscriptionId, status: 202, subscriptionEnded: false },
  })
  const again = emulator.callbacks.at(-1)
  expect([again?.body, again?.headers, again?.notificationId]).toEqual([
    failed?.body,
    failed?.headers,
    failed?.notificationId,
  ])
  expect(emulator.subscriptions.map(({ consecutiveFailures }) => consecutiveFailures)).toEqual([0, 0])
})

test('what cannot be sent again is refused: a request, a body that was cut, an entry that is gone', async () => {
  await created(emulator)
  await emulator.notify({ ...lowEnergy, payload: { text: 'x'.repeat(20_000) } })
  for (const entryId of [1, 2, 99]) expect((await post('resend', { entryId })).status).toBe(400)
})

test('secrets are masked, also in answers that repeat them; a query keeps what is no secret', async () => {
  await using receiver = await Receiver.start(emulator)
  await created(emulator, {
    url: receiver.url.replace('//', '//user:pass@').concat('?key=secret&tenant=acme&id=0123456789abcdef'),
    fields: { token: 'hush-hush', empty: '' },
  })
  receiver.reactions.push({ status: 401, body: 'wrong token: hush-hush' })
  await emulator.notify(lowEnergy)
  await requestToken(emulator)
  const shown = await snapshot()
  const text = JSON.stringify(shown)
  const issued = JSON.parse(emulator.requests.at(-1)?.answer?.body ?? '').access_token
  const words = ['hush-hush', 'secret', 'pass@', '0123456789abcdef', 'Basic ZW']
  for (const secret of [...words, emulator.clientSecret, issued]) expect(text).not.toContain(secret)
  expect(shown.entries[1].target).toMatch(/\?key=•{8}&tenant=acme&id=•{8}$/)
  expect(shown.entries[1].answer.body).toBe('wrong token: ••••••••')
})

test('a secret that an answer repeats is masked in its body and in every header, also in base64 and JSON', async () => {
  await using receiver = await Receiver.start(emulator)
  const token = 'hush "hush" / hush'
  const basic = `Basic ${btoa('caller:pass-word')}`
  await created(emulator, { url: receiver.url, fields: { token, authorization: basic } })
  const base64 = (text: string) => Buffer.from(text).toString('base64')
  const spellings = [
    token,
    JSON.stringify(token),
    encodeURIComponent(token),
    base64(token),
    Buffer.from(token).toString('base64url'),
    basic,
    'pass-word',
    base64('pass-word'),
  ]
  for (const spelling of spellings) {
    receiver.reactions.push({
      status: 200,
      body: `not ${spelling}.`,
      headers: {
        server: spelling,
        'www-authenticate': `Bearer realm="${spelling}"`,
        location: `/${spelling}`,
      },
    })
    await emulator.notify(lowEnergy)
  }
  const { entries } = await snapshot()
  const answers = entries.filter(({ kind }: { kind: string }) => kind === 'callback')
  for (const [index, { answer }] of answers.entries()) {
    const { server, location, 'www-authenticate': challenge } = Object.fromEntries(answer.headers)
    for (const shown of [answer.body, server, location, challenge]) {
      expect([spellings[index], shown]).toEqual([spellings[index], expect.stringContaining('••••••••')])
    }
  }
  expect(answers).toHaveLength(spellings.length)
  expect(answers[0].answer.body).toBe('not ••••••••.')
})

test('an empty secret is shown as it is', async () => {
  await created(emulator, { fields: { token: '' } })
  expect((await snapshot()).subscriptions).toMatchObject([{ parameters: [['token', '']] }])
})

test('what is copied has its secrets', async () => {
  await created(emulator, { fields: { token: 'hush-hush' } })
  expect((await post('reveal-entry', { entryId: 1 })).answer).toMatchObject({
    target: '/api/subscriptions',
    body: expect.stringContaining('token=hush-hush'),
    answer: { body: '{"subscription_id":1}' },
  })
  expect((await post('reveal-entry', { entryId: 99 })).status).toBe(400)
})

test('the variables of a client are those of the emulator, with those of the option', async () => {
  const { service } = await snapshot()
  const mask = '••••••••'
  expect(Object.fromEntries(service.variables)).toEqual({
    NOTIFICATION_BASE_URL: emulator.baseUrl,
    NOTIFICATION_AUTH_URL: emulator.authUrl,
    NOTIFICATION_DOMAIN: 'emulator',
    NOTIFICATION_CLIENT_ID: 'emulator-client',
    NOTIFICATION_CLIENT_SECRET: mask,
    NOTIFICATION_CA_FILE: 'emulator-ca.pem',
    CALLBACK_TOKEN: mask,
    EXTRA: mask,
  })
  expect((await post('reveal-service', {})).answer).toMatchObject({
    variables: expect.arrayContaining([
      ['NOTIFICATION_CLIENT_SECRET', emulator.clientSecret],
      ['CALLBACK_TOKEN', 'hush'],
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
    entries: [
      { kind: 'request' },
      { kind: 'ended', reason: 'by-request', subscription: { subscriptionId } },
      { kind: 'tokens-revoked' },
    ],
  })
})
