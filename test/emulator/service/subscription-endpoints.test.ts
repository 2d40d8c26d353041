import { startEmulator } from 'notification-subscriber/emulator'
import { afterAll, beforeEach, describe, expect, test } from 'vitest'
import { expectPage } from '../../support/message-page.js'
import { createPath, routeOf } from '../../support/routes.js'
import {
  type Answer,
  apiAuthorization,
  create,
  created,
  form,
  type Subscription,
  send,
  unsubscribe,
  update,
} from '../support.js'

const emulator = await startEmulator({ permittedHeaders: ['UserData', 'X-Site'] })
afterAll(() => emulator.close())

// One emulator for all: each test has callback URLs of its own.
let url: string
let count = 0
beforeEach(() => {
  url = `https://app.example.com/${++count}`
})

const ids = () =>
  emulator.subscriptions.filter((s) => s.callbackUrl === url).map(({ subscriptionId }) => subscriptionId)

/** The answer that says what was wrong, in two parts: a code, and a sentence for a person. */
const refusalOf = ({ status, body }: Answer) => [status, JSON.parse(body)]

describe('states and transitions (docs/service.md, States)', () => {
  const both: Subscription = { types: 'behavioral,call-score', users: 'alice,bob' }

  test.each([undefined, 'false'])('an identical one with recreateIfExists %s gets 409', async (recreate) => {
    const first = await created(emulator, { ...both, url })
    const refused = await create(emulator, { ...both, url, recreate } as Subscription)
    const message = `Subscription ${first} is identical; recreateIfExists=true would replace it`
    expect(refusalOf(refused)).toEqual([409, { error: 'duplicate_subscription', message }])
    expect(emulator.requests.at(-1)).toMatchObject({
      status: 409,
      refusal: { code: 'duplicate_subscription', message, subscriptionId: first },
    })
    // The request itself is not about that subscription.
    expect(emulator.requests.at(-1)).not.toHaveProperty('subscriptionId')
    expect(ids()).toEqual([first])
  })

  test('a partial overlap gets 409 with and without recreateIfExists', async () => {
    const first = await created(emulator, { ...both, url })
    const message = `Subscription ${first} covers some of the users and types at this callback URL`
    const overlapping: Subscription[] = [
      { ...both, users: 'bob', recreate: 'false' },
      { ...both, types: 'call-score', recreate: 'TRUE' },
      { types: 'conversation-ai,call-score', users: 'carol,bob', recreate: 'true' },
    ]
    for (const subscription of overlapping) {
      const refused = await create(emulator, { ...subscription, url })
      expect(refusalOf(refused)).toEqual([409, { error: 'partial_overlap', message }])
    }
    expect(ids()).toEqual([first])
  })
})

describe('the create request (docs/service.md, Endpoints)', () => {
  test('without good credentials it is 401, whatever the form says', async () => {
    for (const headers of [{ authorization: 'Basic eA==' }, { 'content-type': 'text/plain' }]) {
      const refused = await create(emulator, {
        url,
        types: 'nonsense',
        headers: { authorization: '', ...headers },
      })
      const message = 'Credentials or access token are missing, wrong, expired or revoked'
      expect(refusalOf(refused)).toEqual([401, { error: 'unauthorized', message }])
      expect(refused.headers['cache-control']).toBe('no-store')
    }
  })

  test('answers 415 to another content type and takes one with a charset', async () => {
    const json = await create(emulator, { url, headers: { 'content-type': 'application/json' } })
    const message = 'Content-Type must be application/x-www-form-urlencoded'
    expect(refusalOf(json)).toEqual([415, { error: 'unsupported_media_type', message }])
    const headers = { 'content-type': 'Application/X-WWW-Form-Urlencoded ; charset=utf-8' }
    expect((await create(emulator, { url, headers })).status).toBe(201)
  })

  test('every further field becomes a parameter, and so do the permitted headers, in any case', async () => {
    const headers = { userdata: 'mine', 'x-site': 'north', 'x-other': 'no' }
    await created(emulator, { url, fields: { token: 't+/= 1', 'X-Tag': '', constructor: 'x' }, headers })
    expect(emulator.subscriptions.at(-1)?.parameters).toEqual({
      token: 't+/= 1',
      'X-Tag': '',
      constructor: 'x',
      UserData: 'mine',
      'X-Site': 'north',
    })
  })

  test('http: callback URLs are taken on loopback hosts only', async () => {
    for (const host of ['127.0.0.1:80', 'localhost', '[::1]:8080']) {
      expect((await create(emulator, { url: `http://${host}/` })).status).toBe(201)
    }
    for (const other of ['http://127.0.0.1.example.com/', 'ftp://localhost/']) {
      expect((await create(emulator, { url: other })).status).toBe(400)
    }
  })
})

describe('the update request (docs/service.md, Endpoints)', () => {
  test('answers 200 with an empty body, changes what is given and keeps the rest', async () => {
    const id = await created(emulator, { url, fields: { token: 'old', other: 'kept' } })
    const answer = await update(emulator, id, 'Token=new', { userdata: 'added' })
    expect([answer.status, answer.body]).toEqual([200, ''])
    expect(emulator.subscriptions.at(-1)?.parameters).toEqual({
      Token: 'new',
      other: 'kept',
      UserData: 'added',
    })
  })

  test('answers 404 for a subscription that is not active, 415 and 401 as create does', async () => {
    const id = await created(emulator, { url })
    expect((await update(emulator, id, 'a=1', { 'content-type': 'text/plain' })).status).toBe(415)
    expect((await update(emulator, id, 'a=1', { authorization: 'Basic eA==' })).status).toBe(401)
    await unsubscribe(emulator, id)
    const message = `There is no active subscription ${id}`
    for (const body of ['a=1', 'a=1&a=2', '']) {
      expect(refusalOf(await update(emulator, id, body))).toEqual([404, { error: 'not_found', message }])
    }
  })
})

describe('forms that are answered 400', () => {
  const rest = 'username=a&callback_url=https://a.example/'
  const typeAndUser = 'notification_type=behavioral&username=a'
  const complete = `notification_type=behavioral&${rest}`
  const creates = {
    'no notification type': rest,
    'an unknown type': `notification_type=behavioural&${rest}`,
    'an empty type in the list': `notification_type=behavioral,&${rest}`,
    'no user': 'notification_type=behavioral&callback_url=https://a.example/',
    'an empty user in the list': `${typeAndUser},,b`,
    'a space after the comma': `${typeAndUser},+b`,
    'no callback URL': typeAndUser,
    'a relative callback URL': `${typeAndUser}&callback_url=/a`,
    'an http: callback URL': `${typeAndUser}&callback_url=http://a.example/`,
    'another boolean': `${complete}&recreateIfExists=1`,
    'a user twice': `${typeAndUser}&${rest}`,
    'bad percent-encoding': 'notification_type=behavioral&username=%zz',
    'a field without name': `${typeAndUser}&=x`,
    'JSON in place of a form': '{"notification_type":["behavioral"]}',
    'a name with a space': `${complete}&not+a+token=x`,
    'a value of two lines': `${complete}&line=a%0D%0Ab:+c`,
    'a value beyond Latin-1': `${complete}&beyond=%C4%80`,
    'a name in two spellings': `${complete}&token=1&Token=2`,
    'a header of the callback itself': `${complete}&Content-Type=1`,
  }
  const updates = {
    'no parameter': '',
    'a reserved name': 'host=x',
    'the users': 'username=bob',
    recreateIfExists: 'recreateIfExists=1',
  }

  test('say what is wrong, and change nothing', async () => {
    const id = await created(emulator, { url })
    const before = [...emulator.subscriptions]
    const messages: Record<string, string> = {}
    const refused = async (name: string, method: string, path: string, body: string) => {
      const headers = { authorization: apiAuthorization(emulator), 'content-type': form }
      const answer = await send(emulator, method, path, { headers, body })
      const { error, message } = JSON.parse(answer.body)
      expect([name, answer.status, error]).toEqual([name, 400, 'invalid_request'])
      messages[name] = message
    }
    for (const [name, body] of Object.entries(creates)) await refused(name, 'POST', createPath, body)
    for (const [name, body] of Object.entries(updates)) {
      await refused(`update: ${name}`, 'PUT', routeOf('update', id).path, body)
    }
    await expectPage('emulator-refusals', messages)
    expect(emulator.subscriptions).toEqual(before)
  })

  test('a parameter as field and as header is one of them', async () => {
    const twice = { url, fields: { userdata: '1' }, headers: { UserData: '2' } }
    expect((await create(emulator, twice)).status).toBe(400)
  })
})
