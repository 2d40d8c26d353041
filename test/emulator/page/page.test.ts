/** What the page shows, as HTML; test/integration/browser has what a person does with it. */
import { readFile } from 'node:fs/promises'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { createPath, routeOf } from '../../support/routes.js'
import {
  apiAuthorization,
  create,
  created,
  form,
  lowEnergy,
  Receiver,
  requestToken,
  send,
  update,
} from '../support.js'

let emulator: Emulator
beforeEach(async () => {
  emulator = await startEmulator({ page: { environment: { CALLBACK_TOKEN: 'hush' } } })
})
afterEach(() => emulator.close())

const get = async (path: string) => (await fetch(`${emulator.pageUrl}${path}`)).text()
const source = (query = '') => get(`?${query}`)

/** What a person reads in HTML. */
function textOf(html: string): string {
  return html
    .replace(/<[^>]*>/g, ' ')
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code))
    .replace(/\s+/g, ' ')
    .trim()
}

/** What a person reads in the part of the page with this id. */
async function shown(id: string, query = ''): Promise<string> {
  const [, part = ''] =
    new RegExp(`id="${id}"[^>]*>(.*?)</(?:section|ol)>`, 's').exec(await source(query)) ?? []
  return textOf(part)
}

describe('Connect', () => {
  test('has the first program of README, and says what to do with it', async () => {
    const [, first = ''] = /```ts\n(.*?)```/s.exec(await readFile('README.md', 'utf8')) ?? []
    expect(await get('copy/program')).toBe(first)
    const text = await shown('time-line')
    expect(text).toContain('Nothing has happened yet 1. Put these lines into .env')
    expect(text).toContain(first.replace(/\s+/g, ' ').trim())
    expect(text).toContain('node --env-file=.env app.mjs')
  })

  test('names the file that has the variables, if there is one', async () => {
    await using other = await startEmulator({ page: { envFile: '.emulator/env' } })
    const page = textOf(await (await fetch(`${other.pageUrl}?open=connect`)).text())
    expect(page).toContain('The file .emulator/env is written')
    expect(page).toContain('node --env-file=.emulator/env app.mjs')
  })
})

test('a failed callback begins with the reason and the parameters that were sent', async () => {
  await using receiver = await Receiver.start(emulator)
  await created(emulator, { url: receiver.url, fields: { token: 'hush' } })
  await created(emulator, { url: `${receiver.url}?other` })
  receiver.reactions.push({ status: 404, body: '<h1>Cannot POST /</h1>' }, 401)
  await emulator.notify(lowEnergy)
  const failed = emulator.callbacks.map(({ status, headers }, index) => ({
    status,
    headers,
    number: index + 3,
  }))
  for (const { status, headers, number } of failed) {
    const text = await shown('details', `open=event-${number}`)
    const reason = status === 404 ? 'Cannot POST /' : "status 401: see callback.refused in the receiver's log"
    expect(text).toContain(reason)
    expect(text).toContain(headers.token ? 'token ••••' : 'Sent without a parameter')
  }
})

test('a refused create is not that of another subscription, and links to it', async () => {
  await created(emulator)
  await create(emulator)
  await create(emulator, { users: 'alice,bob' })
  expect(await shown('time-line', 'show=failure')).toMatch(
    /^↙ create 409 \d+ ms [\d:.]+ Subscription 1 covers some [^↙]*$/,
  )
  const details = await source('open=event-2')
  expect(textOf(details)).toContain('Subscription 1 is identical')
  expect(details).toContain('<a class="button" href="?open=subscription-1">Subscription #1</a>')
  expect(details).toContain('<a class="close" id="close" data-live href="?"')
})

test('subscriptions are active, failing or ended; an ended one has its reason and its time line', async () => {
  await created(emulator, { users: Array.from({ length: 12 }, (_, n) => `agent-${n}`).join() })
  await created(emulator, { users: 'bob' })
  await created(emulator)
  emulator.injectFault('callback', { status: 503 }, { times: 4 })
  await emulator.notify({ ...lowEnergy, username: 'bob' })
  for (let i = 0; i < 3; i++) await emulator.notify(lowEnergy)
  expect(await source()).toContain('aria-label="1 of 3 callbacks failed"')
  expect(await shown('rail')).toContain('Active 2 Failing 1 Ended 1')
  expect(await shown('subscriptions')).toMatch(
    /^bob #2 .* agent-0 and 11 more #1 behavioral → app.example.com/,
  )
  expect(await shown('subscriptions', 'state=failing')).toMatch(/^bob #2 [^#]*$/)
  expect(await shown('subscriptions', 'state=ended')).toMatch(
    /^alice #3 ended three callbacks in a row failed/,
  )
  const text = await shown('details', 'open=subscription-3')
  expect(text).toContain('It ended because three callbacks in a row failed.')
  expect(text.match(/fault: status 503/g)).toHaveLength(3)
})

describe('the filter', () => {
  const titles = async (q: string) =>
    (await shown('time-line', new URLSearchParams({ q }).toString())).match(
      /(create|lowEnergy\w+) #\d+|↙ token/g,
    )

  test('takes words, a status and the number of a subscription', async () => {
    for (let i = 1; i <= 12; i++) await created(emulator, { users: `é-user-${i}` })
    expect(await titles('#1')).toEqual(['create #1'])
    expect(await titles('É-USER-1 201')).toEqual(['create #12', 'create #11', 'create #10', 'create #1'])
    expect(await shown('time-line', 'q=nobody')).toBe('None of 12 events is shown. Show all')
    expect(await shown('subscriptions', 'q=user-7')).toMatch(/^é-user-7 #7/)
  })

  test('finds no part of a token, of a secret, of an id or of a number', async () => {
    const url = 'https://app.example.com:40123/?key=bob'
    await created(emulator, { users: 'alice', url, fields: { token: 'bob' }, headers: { 'x-id': 'bob' } })
    for (let i = 0; i < 30; i++) await requestToken(emulator)
    emulator.injectFault('callback', { status: 503 })
    const id = '0bb0ada0-0000-4000-8000-000000000bob'
    await emulator.notify({ ...lowEnergy, id, payload: {} })
    for (const q of ['bob', 'ada', 'eyj', '401', '4012', '0123'])
      expect([q, await titles(q)]).toEqual([q, null])
    expect(await titles(id)).toEqual(['lowEnergyAgentOpened #1'])
    expect(await titles('503')).toEqual(['lowEnergyAgentOpened #1'])
    expect(await titles('40123')).toEqual(['lowEnergyAgentOpened #1', 'create #1'])
  })
})

describe('secrets', () => {
  const url = 'https://me:pass-in-url@app.example.com/?key=key-in-url&bare-in-url&pad=pad-in-url=='
  const hidden = [
    'hush',
    'pass-in-url',
    'key-in-url',
    'bare-in-url',
    'pad-in-url',
    'key-of-nothing',
    'key-in-path',
  ]

  /** Every page that shows what was sent. */
  const pages = async (query = '') => {
    const events = [1, 2, 3, 4, 5, 6, 7, 8].map((number) => `event-${number}`)
    const opened = ['', 'connect', 'send', 'send-3', 'faults', 'subscription-1', ...events]
    return (await Promise.all(opened.map((open) => source(`open=${open}${query}`)))).join()
  }

  test('are in no page that does not ask for them, whatever carries them', async () => {
    await created(emulator, { url, fields: { token: 'hush', empty: '' }, headers: { UserData: 'hush too' } })
    await requestToken(emulator)
    emulator.injectFault('callback', { status: 401 })
    await emulator.notify(lowEnergy)
    await update(emulator, 1, '{"token":"hush"}')
    await send(emulator, 'POST', createPath, { body: 'token=hush' })
    emulator.injectFault('token', { malformedBody: true })
    await requestToken(emulator)
    await send(emulator, 'GET', '/elsewhere?key=key-of-nothing')
    const headers = { authorization: apiAuthorization(emulator), 'content-type': form }
    await send(emulator, 'PUT', `${routeOf('update', 1).path}?key=key-in-path`, { headers, body: 'a=hush' })
    // Whole and half: `{"access_token":"…`
    const tokens = [1, 4].map((index) => emulator.requests[index]?.answer?.body.slice(20, 60) ?? '')
    const basic = apiAuthorization(emulator).slice('Basic '.length)
    const secrets = [...hidden, ...tokens, emulator.clientSecret, basic]
    expect(tokens.map(({ length }) => length)).toEqual([40, 40])
    const masked = await pages()
    for (const secret of secrets) expect([secret, masked.includes(secret)]).toEqual([secret, false])
    const plain = await pages('&secrets=shown')
    for (const secret of secrets) expect([secret, plain.includes(secret)]).toEqual([secret, true])
    const text = await shown('details', 'open=event-1')
    expect(text).toContain('callback_url https://••••••••@app.example.com/?… ')
    expect(text).toContain('token •••••••• empty empty')
    expect(text).toContain('authorization Basic ••••••••')
  })

  test('are copied when a person copies, with what belongs to a command', async () => {
    await created(emulator, { url: 'https://app.example.com/x?ids[]=1&in={a,b}', fields: { token: "it's" } })
    await emulator.fetch(new Request(`${emulator.baseUrl}//api?a=b`))
    emulator.injectFault('callback', { status: 503 })
    await emulator.notify(lowEnergy)
    expect(await get('copy/2')).toContain(`--request GET '${emulator.baseUrl}//api?a=b'`)
    const callback = await get('copy/3')
    expect(callback).toContain("--request POST 'https://app.example.com/x?ids[]=1&in={a,b}'")
    expect(callback).toContain(`--header 'token: it'\\''s'`)
    expect(await get('copy/variables')).toContain(`NOTIFICATION_CLIENT_SECRET=${emulator.clientSecret}\n`)
    for (const nothing of ['99', 'constructor']) {
      expect((await fetch(`${emulator.pageUrl}copy/${nothing}`)).status).toBe(404)
    }
  })
})

test('foreign text cannot become markup', async () => {
  const evil = `<img src=x onerror="alert('1')">`
  await created(emulator, { users: evil })
  await update(emulator, 1, `a=${encodeURIComponent(evil)}`)
  emulator.injectFault('callback', { status: 500 })
  await emulator.notify({ type: evil, category: 'behavioral', username: evil, payload: { [evil]: evil } })
  await emulator.fetch(new Request(`${emulator.baseUrl}/?${evil}`, { method: 'POST', body: evil }))
  const names = ['subscription-1', 'send', 'send-3', evil, 'constructor']
  const opened = ['', 'event-1', 'event-2', 'event-3', 'event-4', ...names]
  for (const open of opened) {
    const query = { open, state: open, show: open, q: open && evil, [evil]: evil, secrets: 'shown' }
    const page = await source(new URLSearchParams(query).toString())
    expect([open, /<img/.test(page), page.includes('</html>')]).toEqual([open, false, true])
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

test('what is gone is said, and so is that a page without script only shows', async () => {
  for (const open of ['event-99', 'subscription-99'])
    expect(await shown('details', `open=${open}`)).toContain('Gone')
  expect(await source()).toContain('<noscript>Without JavaScript')
})

test('the page asks for a version, which is another one after every change, and the same without one', async () => {
  const seen = [await get('version')]
  const changes = [
    () => created(emulator),
    () => update(emulator, 1, 'token=1'),
    () => emulator.injectFault('callback', { status: 500 }, { times: 2 }),
    () => emulator.notify(lowEnergy),
    () => emulator.endSubscription(1),
    () => emulator.clearFaults(),
  ]
  for (const change of changes) {
    await change()
    seen.push(await get('version'))
  }
  expect(new Set(seen).size).toBe(changes.length + 1)
  expect(await get('version')).toBe(seen.at(-1))
})

test('a name or an address of any length is a short row', async () => {
  const long = 'x'.repeat(500_000)
  await created(emulator, { users: long, url: `https://app.example.com/${long}` })
  expect((await source()).length).toBeLessThan(100_000)
})

test('10,000 subscriptions are a page of 300 rows, and the filter finds each', async () => {
  for (let i = 0; i < 10_000; i++) {
    const body = `notification_type=behavioral&username=user-${i}&callback_url=https%3A%2F%2Fa.example%2F`
    const headers = { 'content-type': form, authorization: apiAuthorization(emulator) }
    await emulator.fetch(emulator.baseUrl + createPath, { method: 'POST', headers, body })
  }
  const page = await source()
  expect(page).toContain('Active 10000')
  expect(page.match(/id="subscription-/g)).toHaveLength(300)
  expect(page.length).toBeLessThan(1_000_000)
  expect(await shown('subscriptions', 'q=user-77 %2378')).toMatch(/^user-77 #78 [^#]*$/)
}, 60_000)
