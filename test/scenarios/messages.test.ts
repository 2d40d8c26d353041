/** What a user reads who gives something wrong: all of it side by side, so that it can be read as one voice. */
import { NotificationClient, NotificationError } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { redisStore } from 'notification-subscriber/redis'
import { DeliverySpool } from 'notification-subscriber/spool'
import {
  createDeliveryParser,
  DeliveryReceiver,
  parseDelivery,
  toFastifyPlugin,
  toNodeHandler,
  toWebHandler,
} from 'notification-subscriber/webhooks'
import { afterAll, expect, test } from 'vitest'
import * as z from 'zod'
import { baseUrl, credentials, fakeService, subscription } from '../support/fake-service.js'
import { expectPage } from '../support/message-page.js'

const emulator = await startEmulator()
afterAll(() => emulator.close())

/** Makes calls which all fail, and compares their messages with a page of test/messages. */
async function expectMessages(page: string, calls: Readonly<Record<string, () => unknown>>): Promise<void> {
  const messages: Record<string, string> = {}
  for (const [name, call] of Object.entries(calls)) {
    try {
      await call()
      messages[name] = 'nothing was refused'
    } catch (error) {
      expect(error).toBeInstanceOf(NotificationError)
      const { message } = error as NotificationError
      expect(message).toMatch(/^\S.*\.\)?$/s)
      messages[name] = message
    }
  }
  await expectPage(page, messages)
}

/** Callers in JavaScript may pass anything. */
const any = (value: unknown) => value as never

/** What is wrong with a single option: problems-of-client-options, of test/client/options.test.ts. */
test('messages about the options of a client', async () => {
  const make = (options: object) => () =>
    new NotificationClient(any({ baseUrl, auth: credentials, ...options }))
  const wrong = { retry: 1, timeoutMs: 0, logger: 1, fetch: 1, baseUrl: 1 }
  await expectMessages('client-options', {
    'several unknown names': make({ timeout: 5, colour: 'red', shape: 'round' }),
    'five problems': make({ ...wrong, auth: { getAccessToken: () => 'x' } }),
    'more than five problems': make({ ...wrong, routes: 1, auth: {} }),
    'a name of several lines': make({ 'a\r\n\u0000b\u2028c': 1 }),
    'a name of 101 characters': make({ ['k'.repeat(101)]: 1 }),
    'a secret with a line break': make({ baseUrl: 'x', auth: { ...credentials, clientSecret: 's3cret\n' } }),
  })
})

test('messages about the environment', async () => {
  const fromEnv =
    (env: object, options = {}) =>
    () =>
      NotificationClient.fromEnv(options, any(env))
  const complete = {
    NOTIFICATION_BASE_URL: baseUrl,
    NOTIFICATION_AUTH_URL: credentials.authUrl,
    NOTIFICATION_DOMAIN: credentials.domain,
    NOTIFICATION_CLIENT_ID: credentials.clientId,
    NOTIFICATION_CLIENT_SECRET: credentials.clientSecret,
  }
  await expectMessages('environment', {
    'nothing set': fromEnv({}),
    'a file that holds no certificate': fromEnv({ ...complete, NOTIFICATION_CA_FILE: 'package.json' }),
    'everything that is wrong, at once': fromEnv(
      {
        ...complete,
        NOTIFICATION_CA_FILE: '/nowhere/ca.pem',
        NOTIFICATION_DOMAIN: '',
        NOTIFICATION_BASE_URL: 'nowhere',
      },
      { timeout: 5 },
    ),
    'two kinds of credentials': fromEnv({ ...complete, NOTIFICATION_USERNAME: 'app' }),
    'a route without a place for the id': fromEnv({ ...complete, NOTIFICATION_UPDATE_ROUTE: 'POST /update' }),
    'routes that are written wrongly': fromEnv({
      ...complete,
      NOTIFICATION_UPDATE_ROUTE: 'post /update/{id}',
      NOTIFICATION_UNSUBSCRIBE_ROUTE: 'POST /end subscription_id xml',
    }),
  })
})

/** What is wrong with a single field: problems-of-input, of test/subscriptions/schemas.test.ts. */
test('messages about the input of a call', async () => {
  const client = fakeService().client()
  const create = (input: object, options?: object) => () =>
    client.createSubscription(any({ ...subscription, ...input }), any(options))
  await expectMessages('input', {
    'no input': () => client.createSubscription(any(undefined)),
    'no fields': () => client.createSubscription(any({})),
    'a type that does not exist': create({ notificationTypes: ['behavioural'] }),
    'too many parameters': create({
      parameters: Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`p${index}`, 'x'])),
    }),
    'parameters that are too long': create({ parameters: { token: 'x'.repeat(9_000) } }),
    'options of the call': create({}, { signal: 'x', timeoutMs: -1, retry: 3, timeout: 5 }),
    'options of getAccessToken': () => client.getAccessToken({ timeoutMs: -1 }),
    'no id': () => client.unsubscribe(any(undefined)),
    'nothing to change': () => client.updateSubscriptionParameters(1, {}),
  })
})

test('messages about the options of a receiver and of a parser', async () => {
  const make = (options: object) => () =>
    new DeliveryReceiver(any({ secrets: { token: 'a-secret-of-tests' }, ...options }))
  const receiver = new DeliveryReceiver({ secrets: { token: 'a-secret-of-tests' } })
  await expectMessages('receiver-options', {
    'no options': () => new DeliveryReceiver(any(undefined)),
    'no secrets': () => new DeliveryReceiver(any({})),
    'secrets, and none needed': make({ allowUnauthenticated: true }),
    'a function that returns a promise': make({ secrets: async () => ({ token: 'a-secret-of-tests' }) }),
    'a secret that is a placeholder': make({ secrets: { token: 'a-long-random-value' } }),
    'a secret that is not set': make({ secrets: { token: undefined, other: '' } }),
    'a misspelt option': make({ secret: { token: 'x' }, timeoutMs: 5 }),
    'options of the wrong kind': make({ onInvalid: 'log', ackTimeoutMs: '2s', logger: true, payloads: [] }),
    limits: make({ ackTimeoutMs: -1, maxBodyBytes: 0 }),
    'limits that are too large, and half a byte': make({ ackTimeoutMs: 2 ** 31, maxBodyBytes: 1.5 }),
    'functions and a flag that are none': make({ onError: {}, onRefused: 1, allowUnauthenticated: 'yes' }),
    'no decision': () => new DeliveryReceiver(any({ allowUnauthenticated: false })),
    'a handler of all types that is none': () => receiver.onAny(any('log')),
    'a handler that is none': () => receiver.on('lowEnergyAgentOpened', any('log')),
    'a type that is none': () => receiver.on(any(7), () => {}),
    'options of drain': () => receiver.drain(any({ timeout: 5, timeoutMs: -1 })),
    'a route without a receiver': () => toNodeHandler(any(undefined)),
    'a web route with what is no receiver': () => toWebHandler(any({})),
    'a misspelt option of a web route': () => toWebHandler(receiver, any({ waituntil() {} })),
    'a web route in Express': () => toWebHandler(receiver)(any({ method: 'POST', headers: {} })),
    'a route of Node.js in Hono': () =>
      toNodeHandler(receiver)(
        any({ req: {} }),
        any(() => {}),
      ),
    'a plugin for Fastify without options': () => toFastifyPlugin(receiver, any(undefined)),
    'a plugin for Fastify with another option': () => toFastifyPlugin(receiver, any({ url: '/n' })),
    'a parser without schemas': () => createDeliveryParser(any({})),
    'a parser with a list of schemas': () => createDeliveryParser(any({ payloads: [z.object({})] })),
    'a parser with a misspelt option': () => createDeliveryParser(any({ payloads: {}, payload: {} })),
    'a parser with something else': () => createDeliveryParser(any({ payloads: { cxScoreUpdated: {} } })),
  })
})

test('messages about a body that is no delivery', async () => {
  const notification = { id: 'a', time: 1.5, ver: 1, type: 'cxScoreUpdated' }
  const parser = createDeliveryParser({
    payloads: {
      cxScoreUpdated: z.object({ score: z.number().max(5, 'Such a score cannot be'), mail: z.email() }),
    },
  })
  const payload = { score: 7, mail: 'x' }
  const get = () => {
    throw new Error('boom')
  }
  await expectMessages('deliveries', {
    nothing: () => parseDelivery(undefined),
    'a promise': () => parseDelivery(Promise.resolve('{}')),
    'a Request': () => parseDelivery(new Request('https://app.example.com')),
    'no JSON': () => parseDelivery('<html>'),
    'JSON with a fault inside': () => parseDelivery('{"secret":1,}'),
    'JSON that ends too early': () => parseDelivery('{"secret":'),
    'nothing but white space': () => parseDelivery(' \n'),
    'an object with a getter that throws': () =>
      parseDelivery(Object.defineProperty({}, 'subscriptionId', { get })),
    'a list': () => parseDelivery('[]'),
    'fields of the wrong kind': () => parseDelivery({ subscriptionId: 'one', notification }),
    'what the schema of a user says': () =>
      parser.parse({ subscriptionId: 1, notification: { ...notification, time: 1, ver: '1.0', payload } }),
  })
})

test('messages about the options of a spool', async () => {
  const open = (options: object) => () => DeliverySpool.open(any({ path: 'x', deliver() {}, ...options }))
  await expectMessages('spool-options', {
    'no options': () => DeliverySpool.open(any(undefined)),
    'nothing in them': () => DeliverySpool.open(any({})),
    'without open': () => new (any(DeliverySpool) as new (options: object) => object)({ path: 'x' }),
    'options of the wrong kind': open({ path: '', deliver: 'x', parser: {}, logger: true, onStuck: 1 }),
    limits: open({ concurrency: 0, deliverTimeoutMs: 0, maxBytes: -1 }),
  })
})

/** What is wrong with each: problems-of-emulator-options, -notifications and -faults, of test/emulator. */
test('messages about the options of the emulator, and of what it is asked for', async () => {
  await expectMessages('emulator', {
    'a misspelt option': () => startEmulator(any({ prot: 1 })),
    'an empty notification': () => emulator.notify(any({})),
    'a fault of no operation': () => emulator.injectFault(any('delete'), { status: 503 }),
  })
})

test('messages about a store on what is no Redis', async () => {
  await expectMessages('redis-store', {
    'no client': () => redisStore(any(undefined)),
    'a prefix that is none': () => redisStore(any({}), any({ prefix: 7 })),
  })
})

type Answer = (count: number) => Response
type Call = (client: NotificationClient) => unknown

const create: Call = (client) => client.createSubscription(subscription)
const recreate: Call = (client) => client.createSubscription({ ...subscription, recreateIfExists: true })
const unsubscribe: Call = (client) => client.unsubscribe(7)
const update: Call = (client) => client.updateSubscriptionParameters(7, { parameters: { token: 'x' } })
const answered =
  (status: number, body = '', headers = {}) =>
  () =>
    new Response(body, { status, headers })
/** The first answer is lost, every other is that of this status. */
const lostBefore = (status: number) => (count: number) =>
  new Response('', { status: count === 1 ? 502 : status })
const page = '<!doctype html><title>Sign in</title>'

test('messages about answers of the service', async () => {
  const to = (call: Call, answer: Answer) => () => {
    const service = fakeService()
    service.onCall = (_call, count) => answer(count)
    const auth = { username: 'u', password: 'correct-horse-battery' }
    return call(service.client({ auth, retry: answer.length === 0 ? false : { baseDelayMs: 0 } }))
  }
  const forUsers =
    (count: number): Call =>
    (client) =>
      client.createSubscription({
        ...subscription,
        notificationTypes: ['behavioral', 'call-score'],
        usernames: Array.from({ length: count }, (_, index) => `agent-${index}`),
      })
  const statuses = [
    ...[300, 302, 399, 400, 401, 403, 404, 408, 410, 413, 418, 425, 429, 431, 499],
    ...[500, 501, 502, 503, 504, 505, 507, 511, 520, 599],
  ]
  await expectMessages('answers', {
    ...Object.fromEntries(
      statuses.map((status) => [`create: ${status}`, to(create, answered(status, 'why'))]),
    ),
    'create: 400 without a body': to(create, answered(400)),
    'create: 400 with JSON': to(
      create,
      answered(400, '{"error":"invalid_request","message":"not reachable"}'),
    ),
    'create: 400 with several lines': to(create, answered(400, '\r\n callback_url:\tnot reachable \n')),
    'create: 400 with a long text': to(create, answered(400, 'x'.repeat(1_000))),
    'create: 400 with a secret': to(create, answered(400, 'no user has the password correct-horse-battery')),
    'create: 400 with a page': to(create, answered(400, ` ${page}`)),
    'create: 401 with a reason in its header': to(
      create,
      answered(401, '', { 'www-authenticate': 'Bearer error="x", error_description="The aud is wrong"' }),
    ),
    'create: 302 to another server': to(
      create,
      answered(302, '', { location: 'https://login.example.com/a?state=s3cret#t' }),
    ),
    'create: 308 to another path': to(create, answered(308, '', { location: '/api/subscriptions/' })),
    'create: 302 to what is no address': to(create, answered(302, '', { location: 'https://' })),
    'create: 429 with Retry-After': to(create, answered(429, '', { 'retry-after': '7' })),
    'create: 409': to(create, answered(409)),
    'create: 409 for four users': to(forUsers(4), answered(409)),
    'create: 409 for 500 users': to(forUsers(500), answered(409)),
    'recreate: 409': to(recreate, answered(409)),
    'create: 201 without an id': to(create, answered(201, '{}')),
    'create: 201 with what is no JSON': to(create, answered(201, '{"subscription_id": 12')),
    'create: 201 without a body': to(create, answered(201, '')),
    'create: 201 with an encoded body': to(create, answered(201, '\u001f', { 'content-encoding': 'gzip' })),
    'create: 200 with a page': to(create, answered(200, page)),
    'recreate: 200 with a page after a lost answer': to(recreate, (count) =>
      count === 1 ? answered(502)() : answered(200, page)(),
    ),
    ...Object.fromEntries(
      Object.entries({ unsubscribe, update }).flatMap(([name, call]) => [
        [`${name}: 200 with a page`, to(call, answered(200, page))],
        [`${name}: 200 with an error`, to(call, answered(200, '{"success":false,"error":"ID unknown"}'))],
        ...[301, 308, 400, 404, 405, 410, 501].map((status) => [
          `${name}: ${status}`,
          to(call, answered(status)),
        ]),
        [`${name}: 400 after a lost answer`, to(call, lostBefore(400))],
        [`${name}: 404 after a lost answer`, to(call, lostBefore(404))],
      ]),
    ),
    'unsubscribe: 404 on a route that has worked': to(
      async (client) => {
        await client.unsubscribe(6)
        await client.unsubscribe(7)
      },
      (count) => answered(count === 1 ? 299 : 404)(),
    ),
  })
})

test('messages about tokens', async () => {
  const to = (answer: Answer) => () => {
    const service = fakeService()
    service.onToken = (_call, count) => answer(count)
    return service.client({ retry: false }).getAccessToken()
  }
  const given = (token: unknown) => () =>
    fakeService()
      .client({ auth: { getAccessToken: () => any(token) } })
      .unsubscribe(1)
  const refused = (body: object) => to(() => Response.json(body, { status: 400 }))
  const statuses = [201, 302, 400, 401, 403, 404, 418, 429, 499, 500, 503]
  await expectMessages('tokens', {
    ...Object.fromEntries(statuses.map((status) => [`${status}`, to(answered(status, '[1]'))])),
    invalid_client: refused({ error: 'invalid_client' }),
    'invalid_client with a description': refused({
      error: 'invalid_client',
      error_description: 'Who are you?',
    }),
    'a description alone': refused({ error_description: 'Who are you?' }),
    'an error that is no text': refused({ error: 7, error_description: ['Who'] }),
    invalid_scope: refused({ error: 'invalid_scope' }),
    temporarily_unavailable: refused({ error: 'temporarily_unavailable' }),
    '200 with a page': to(answered(200, page)),
    '200 with what is no token': to(answered(200, '{"token_type":"mac"}')),
    '200 with an encoded body': to(answered(200, '\u001f', { 'content-encoding': 'gzip' })),
    'user name and password': () =>
      fakeService()
        .client({ auth: { username: 'u', password: 'p' } })
        .getAccessToken(),
    'getAccessToken gives the whole header': given('Bearer x'),
  })
})
