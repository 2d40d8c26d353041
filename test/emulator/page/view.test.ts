/** What the page shows, as HTML; test/integration/browser has what a person does with it. */
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { create, created, lowEnergy, Receiver, requestToken, update } from '../support.js'

let emulator: Emulator
beforeEach(async () => {
  emulator = await startEmulator({ page: { environment: { CALLBACK_TOKEN: 'hush' } } })
})
afterEach(() => emulator.close())

const source = async (query = '') => (await fetch(`${emulator.pageUrl}?${query}`)).text()

/** What a person reads in the part of the page with this id. */
async function shown(id: string, query = ''): Promise<string> {
  const [, part = ''] =
    new RegExp(`id="${id}"[^>]*>(.*?)</(?:section|ol)>`, 's').exec(await source(query)) ?? []
  return part
    .replace(/<span class="secret">.*?<\/span>/gs, '••••')
    .replace(/<[^>]*>/g, ' ')
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))
    .replace(/\s+/g, ' ')
    .trim()
}

test('an emulator where nothing has happened says what to do', async () => {
  const text = await shown('time-line')
  expect(text).toContain('Nothing has happened yet')
  expect(text).toContain(`NOTIFICATION_BASE_URL=${emulator.baseUrl}`)
  expect(text).toContain(
    'NOTIFICATION_CLIENT_SECRET=•••• NOTIFICATION_CA_FILE=emulator-ca.pem CALLBACK_TOKEN=••••',
  )
  expect(text).toContain("callbackUrl: 'http://127.0.0.1:3000/notifications'")
  expect(await source()).toContain(`NOTIFICATION_CLIENT_SECRET=${emulator.clientSecret}`)
})

test('a failed callback begins with the reason and the parameters that were sent', async () => {
  await using receiver = await Receiver.start(emulator)
  await created(emulator, { url: receiver.url, fields: { token: 'hush' } })
  await created(emulator, { url: `${receiver.url}?other` })
  receiver.reactions.push({ status: 404, body: '<h1>Cannot POST /</h1>' }, 401)
  await emulator.notify(lowEnergy)
  const failed = emulator.callbacks.map(({ status }, index) => ({ status, number: index + 3 }))
  for (const { status, number } of failed) {
    const text = await shown('details', `open=entry-${number}`)
    const reason = status === 404 ? 'Cannot POST /' : "status 401: see callback.refused in the receiver's log"
    expect(text).toContain(reason)
    expect(text).toContain(
      emulator.callbacks[number - 3]?.headers.token ? 'token ••••' : 'Sent without a parameter',
    )
  }
})

test('a 409 to an identical subscription is no failure, one to an overlap is', async () => {
  await created(emulator)
  await create(emulator)
  await create(emulator, { users: 'alice,bob' })
  expect(await shown('time-line', 'show=failure')).toMatch(
    /^↙ create #1 409 \d+ ms [\d:.]+ Subscription 1 covers/,
  )
  expect(await shown('details', 'open=entry-2')).toContain('Subscription 1 is identical')
})

test('subscriptions have their failures in a row; an ended one its reason and its time line', async () => {
  await created(emulator, { users: 'bob' })
  await created(emulator)
  emulator.injectFault('callback', { status: 503 }, { times: 4 })
  await emulator.notify({ ...lowEnergy, username: 'bob' })
  for (let i = 0; i < 3; i++) await emulator.notify(lowEnergy)
  expect(await source()).toContain('aria-label="1 of 3 failures in a row"')
  expect(await shown('subscriptions')).toMatch(/^bob #1 .* alice #2 ended three callbacks in a row failed/)
  const text = await shown('details', 'open=subscription-2')
  expect(text).toContain('It ended because three callbacks in a row failed.')
  expect(text.match(/fault: status 503/g)).toHaveLength(3)
})

test('the filter takes words, a status and the number of a subscription', async () => {
  for (let i = 1; i <= 12; i++) await created(emulator, { users: `user-${i}`, fields: { note: 'é' } })
  const titles = async (q: string) =>
    (await shown('time-line', new URLSearchParams({ q }).toString())).match(/create #\d+/g)
  expect(await titles('#1')).toEqual(['create #1'])
  expect(await titles('USER-1 201')).toEqual(['create #12', 'create #11', 'create #10', 'create #1'])
  expect(await titles('é user-7')).toEqual(['create #7'])
  expect(await shown('time-line', 'q=nobody')).toBe('None of 12 entries is shown. Show all')
  expect(await shown('subscriptions', 'q=user-7')).toMatch(/^user-7 #7/)
  expect(await shown('time-line', 'after=12')).toContain('None of 12')
})

test('secrets are marked, also in a token answer; what is harmless and what is empty is not', async () => {
  await created(emulator, { fields: { token: 'hush', empty: '' } })
  await requestToken(emulator)
  const issued = JSON.parse(emulator.requests.at(-1)?.answer?.body ?? '').access_token
  expect(await shown('details', 'open=entry-1')).toContain(
    'callback_url https://app.example.com/ token •••• empty empty',
  )
  expect(await shown('details', 'open=entry-1')).toContain('authorization ••••')
  expect(await shown('details', 'open=entry-2')).not.toContain(issued)
  expect(await source('open=entry-2')).toContain(issued)
})

test('foreign text cannot become markup', async () => {
  const evil = `<img src=x onerror="alert('1')">`
  await created(emulator, { users: evil })
  await update(emulator, 1, `a=${encodeURIComponent(evil)}`)
  for (const query of [
    '',
    'open=entry-1',
    'open=subscription-1',
    'open=send',
    `q=${encodeURIComponent(evil)}`,
  ]) {
    expect(await source(query)).not.toContain('<img')
  }
})

test('the form begins with the oldest subscription, or with the notification of a callback', async () => {
  await created(emulator, { types: 'call-score', users: 'bob' })
  expect(await source('open=send')).toMatch(
    /name="username" value="bob".*name="type" value="cxScoreUpdated"/s,
  )
  await emulator.notify({ type: 'cxScoreUpdated', username: 'bob', payload: { score: 4.25 } })
  expect(await source('open=send-2')).toContain('&#34;score&#34;: 4.25')
})

test('what is gone is said', async () => {
  for (const open of ['entry-99', 'subscription-99'])
    expect(await shown('details', `open=${open}`)).toContain('Gone')
})

test('a reader of events is told that something has changed, once for many changes', async () => {
  const events = await fetch(`${emulator.pageUrl}events`)
  const reader = events.body?.pipeThrough(new TextDecoderStream()).getReader()
  await reader?.read()
  await created(emulator)
  emulator.revokeTokens()
  expect((await reader?.read())?.value).toBe('event: changed\ndata:\n\n')
})

test('curl gets an address without patterns, and a request goes to the emulator whatever its path', async () => {
  await created(emulator, { url: 'https://app.example.com/x?ids[]=1&in={a,b}', fields: { token: "it's" } })
  await emulator.fetch(new Request(`${emulator.baseUrl}//api?a=b`))
  emulator.injectFault('callback', { status: 503 })
  await emulator.notify(lowEnergy)
  const copied = async (number: number) => {
    const [, text = ''] = /data-copy="(curl[^"]*)"/.exec(await source(`open=entry-${number}`)) ?? []
    return text.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))
  }
  expect(await copied(2)).toContain(`--request GET '${emulator.baseUrl}//api?a=b'`)
  expect(await copied(3)).toContain("--request POST 'https://app.example.com/x?ids[]=1&in={a,b}'")
  expect(await copied(3)).toContain(`--header 'token: it'\\''s'`)
})
