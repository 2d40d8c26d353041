/** What a user reads who gives something wrong: all of it side by side, so that it can be read as one voice. */
import { NotificationClient, NotificationError } from 'notification-subscriber'
import { type Emulator, emulatorHandlers, startEmulator } from 'notification-subscriber/emulator'
import { redisStore } from 'notification-subscriber/redis'
import { DeliverySpool } from 'notification-subscriber/spool'
import {
  createDeliveryParser,
  DeliveryReceiver,
  documentedNotificationTypes,
  notificationTypes,
  parseDelivery,
  sampleDelivery,
  toFastifyPlugin,
  toNodeHandler,
  toWebHandler,
  verifySecrets,
} from 'notification-subscriber/webhooks'
import { afterAll, beforeAll, expect, test } from 'vitest'
import * as z from 'zod'
import { baseUrl, credentials, fakeService, subscription } from '../support/fake-service.js'

let emulator: Emulator
beforeAll(async () => {
  emulator = await startEmulator()
})
afterAll(() => emulator.close())

/** The messages of these calls, which all fail. */
async function messagesOf(calls: Readonly<Record<string, () => unknown>>): Promise<Record<string, string>> {
  const messages: Record<string, string> = {}
  for (const [name, call] of Object.entries(calls)) {
    try {
      await call()
      messages[name] = 'nothing was refused'
    } catch (error) {
      expect(error).toBeInstanceOf(NotificationError)
      const { message } = error as NotificationError
      expect(message).toMatch(/^\S.*\.$/s)
      messages[name] = message
    }
  }
  return messages
}

/** Callers in JavaScript may pass anything. */
const any = (value: unknown) => value as never

test('messages about the options of a client', async () => {
  const make = (options: object) => () =>
    new NotificationClient(any({ baseUrl, auth: credentials, ...options }))
  expect(
    await messagesOf({
      'no options': () => new NotificationClient(any(undefined)),
      'no address, no credentials': () => new NotificationClient(any({})),
      'credentials that are not set': make({
        auth: { ...credentials, authUrl: undefined, clientId: undefined, clientSecret: '' },
      }),
      'an option of the wrong kind': make({ timeoutMs: '5', allowInsecureLoopback: 'yes', ca: 7 }),
      'a limit': make({ timeoutMs: 0, retry: { maxAttempts: 1.5, baseDelayMs: -1, maxDelayMs: 2 ** 31 } }),
      'a misspelt option': make({ timeout: 5 }),
      'a misspelt option inside another': make({
        retry: { attempts: 2 },
        auth: { ...credentials, clientID: 'x' },
      }),
      'several unknown names': make({ timeout: 5, colour: 'red', shape: 'round' }),
      'one of a few values': make({ auth: { ...credentials, credentialsEncoding: 'base64' } }),
    }),
  ).toMatchInlineSnapshot(`
    {
      "a limit": "NotificationClient cannot be made from these options: \`timeoutMs\`: expected number to be >0; \`retry.maxAttempts\`: expected int, received number; \`retry.baseDelayMs\`: expected number to be >=0; \`retry.maxDelayMs\`: expected number to be <=2147483647.",
      "a misspelt option": "NotificationClient cannot be made from these options: there is no \`timeout\` (did you mean \`timeoutMs\`?).",
      "a misspelt option inside another": "NotificationClient cannot be made from these options: \`auth\` has no \`clientID\` (did you mean \`clientId\`?); \`retry\` has no \`attempts\` (did you mean \`maxAttempts\`?).",
      "an option of the wrong kind": "NotificationClient cannot be made from these options: \`ca\` must be text in PEM; \`timeoutMs\`: expected number, received string; \`allowInsecureLoopback\`: expected boolean, received string.",
      "credentials that are not set": "NotificationClient cannot be made from these options: \`auth.authUrl\` must be a URL; \`auth.clientId\`: expected string, received undefined; \`auth.clientSecret\` must not be empty.",
      "no address, no credentials": "NotificationClient cannot be made from these options: \`baseUrl\` must be a URL; \`auth\` must be client credentials, { username, password } or { getAccessToken }.",
      "no options": "NotificationClient cannot be made from these options: expected object, received undefined.",
      "one of a few values": "NotificationClient cannot be made from these options: \`auth.credentialsEncoding\`: expected one of "raw"|"form-urlencoded".",
      "several unknown names": "NotificationClient cannot be made from these options: there is no \`timeout\` (did you mean \`timeoutMs\`?), no \`colour\`, no \`shape\`, only \`baseUrl\`, \`auth\`, \`ca\`, \`dispatcher\`, \`fetch\`, \`timeoutMs\`, \`retry\`, \`logger\`, \`headers\`, \`routes\`, \`allowInsecureLoopback\`.",
    }
  `)
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
  expect(
    await messagesOf({
      'nothing set': fromEnv({}),
      'a value that cannot work': fromEnv({ ...complete, NOTIFICATION_CREDENTIALS_ENCODING: 'base64' }),
      'a file that is not there': fromEnv({ ...complete, NOTIFICATION_CA_FILE: '/nowhere/ca.pem' }),
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
      'a misspelt option': fromEnv(complete, { timeout: 5 }),
      'an option that the environment sets': fromEnv(complete, { baseUrl }),
      'two kinds of credentials': fromEnv({ ...complete, NOTIFICATION_USERNAME: 'app' }),
      'a route without a place for the id': fromEnv({
        ...complete,
        NOTIFICATION_UPDATE_ROUTE: 'POST /update',
      }),
      'routes that are written wrongly': fromEnv({
        ...complete,
        NOTIFICATION_UPDATE_ROUTE: 'post /update/{id}',
        NOTIFICATION_UNSUBSCRIBE_ROUTE: 'POST /end subscription_id xml',
      }),
    }),
  ).toMatchInlineSnapshot(`
    {
      "a file that holds no certificate": "NotificationClient cannot be made from this environment: \`NOTIFICATION_CA_FILE\` names a file that holds no PEM certificate (-----BEGIN CERTIFICATE-----).",
      "a file that is not there": "NotificationClient cannot be made from this environment: \`NOTIFICATION_CA_FILE\` names a file that cannot be read (ENOENT: no such file or directory, open '/nowhere/ca.pem').",
      "a misspelt option": "NotificationClient cannot be made from this environment: there is no \`timeout\` (did you mean \`timeoutMs\`?).",
      "a route without a place for the id": "NotificationClient cannot be made from this environment: \`NOTIFICATION_UPDATE_ROUTE\` must be written METHOD PATH [ID_FIELD] [form|json]: \`path\` must contain {subscriptionId}, or \`idField\` must name the field of the body that holds the id.",
      "a value that cannot work": "NotificationClient cannot be made from this environment: \`NOTIFICATION_CREDENTIALS_ENCODING\`: expected one of "raw"|"form-urlencoded".",
      "an option that the environment sets": "NotificationClient cannot be made from this environment: \`baseUrl\` is read from the environment: leave it out here, or use \`new NotificationClient\`.",
      "everything that is wrong, at once": "NotificationClient cannot be made from this environment: \`NOTIFICATION_DOMAIN\` is missing: set it to the tenant's name; \`NOTIFICATION_CA_FILE\` names a file that cannot be read (ENOENT: no such file or directory, open '/nowhere/ca.pem'); \`NOTIFICATION_BASE_URL\` must be an absolute URL, such as \`https://app.example.com/path\`; there is no \`timeout\` (did you mean \`timeoutMs\`?).",
      "nothing set": "NotificationClient cannot be made from this environment: \`NOTIFICATION_BASE_URL\` is missing: set it to the base address of the notification service; \`NOTIFICATION_AUTH_URL\` is missing: set it to the base address of the authorization server; \`NOTIFICATION_DOMAIN\` is missing: set it to the tenant's name; \`NOTIFICATION_CLIENT_ID\` is missing: set it to the client ID; \`NOTIFICATION_CLIENT_SECRET\` is missing: set it to the client secret.",
      "routes that are written wrongly": "NotificationClient cannot be made from this environment: \`NOTIFICATION_UNSUBSCRIBE_ROUTE\` must be written METHOD PATH [ID_FIELD] [form|json]: \`format\`: expected one of "form"|"json"; \`NOTIFICATION_UPDATE_ROUTE\` must be written METHOD PATH [ID_FIELD] [form|json]: \`method\` must be GET, POST, PUT, PATCH, DELETE, in capital letters; \`path\` has braces that are not {subscriptionId}, the place of the id.",
      "two kinds of credentials": "NotificationClient cannot be made from this environment: \`NOTIFICATION_PASSWORD\` is missing: set it to the password; \`NOTIFICATION_USERNAME\` is set beside NOTIFICATION_AUTH_URL, NOTIFICATION_DOMAIN, NOTIFICATION_CLIENT_ID, NOTIFICATION_CLIENT_SECRET: set one kind of credentials only.",
    }
  `)
})

test('messages about the input of a call', async () => {
  const client = fakeService().client()
  const create = (input: object, options?: object) => () =>
    client.createSubscription(any({ ...subscription, ...input }), any(options))
  expect(
    await messagesOf({
      'no input': () => client.createSubscription(any(undefined)),
      'no fields': () => client.createSubscription(any({})),
      'a list that is text': create({ usernames: 'alice', notificationTypes: 'behavioral' }),
      'a type that does not exist': create({ notificationTypes: ['behavioural'] }),
      'a type that is delivered': create({ notificationTypes: ['behavioral', 'cxScoreUpdated'] }),
      'a misspelt field': create({ callbackURL: 'https://app.example.com/' }),
      'a value that is not set': create({ parameters: { token: undefined } }),
      'a reserved name': create({ parameters: { username: 'alice' } }),
      'too many parameters': create({
        parameters: Object.fromEntries(Array.from({ length: 101 }, (_, index) => [`p${index}`, ''])),
      }),
      'parameters that are too long': create({ parameters: { token: 'x'.repeat(9_000) } }),
      'a name and a value that no header can have': create({ headers: { 'my token': 'a', other: 'ä' } }),
      'misspelt options of the call': create({}, { timeout: 5 }),
      'options of the call': create({}, { signal: 'x', timeoutMs: -1, retry: 3 }),
      'no id': () => client.unsubscribe(any(undefined)),
      'nothing to change': () => client.updateSubscriptionParameters(1, {}),
    }),
  ).toMatchInlineSnapshot(`
    {
      "a list that is text": "createSubscription sent nothing: \`notificationTypes\`: expected array, received string; \`usernames\`: expected array, received string.",
      "a misspelt field": "createSubscription sent nothing: there is no \`callbackURL\` (did you mean \`callbackUrl\`?).",
      "a name and a value that no header can have": "createSubscription sent nothing: \`headers["my token"]\` cannot be the name of an HTTP header: letters, digits and !#$%&'*+-.^_\`|~ only; \`headers.other\` has a value that cannot be sent as an HTTP header: visible ASCII only, and spaces or tabs in between.",
      "a reserved name": "createSubscription sent nothing: \`parameters.username\` is reserved: it is a field of the request.",
      "a type that does not exist": "createSubscription sent nothing: \`notificationTypes[0]\`: expected one of "behavioral"|"call-score"|"conversation-ai".",
      "a type that is delivered": "createSubscription sent nothing: \`notificationTypes[1]\` is the type of a delivered notification: to get it, subscribe to \`call-score\`.",
      "a value that is not set": "createSubscription sent nothing: \`parameters.token\` must be text.",
      "misspelt options of the call": "createSubscription sent nothing: there is no \`timeout\` (did you mean \`timeoutMs\`?).",
      "no fields": "createSubscription sent nothing: \`notificationTypes\`: expected array, received undefined; \`usernames\`: expected array, received undefined; \`callbackUrl\` must be a URL.",
      "no id": "unsubscribe sent nothing: the subscription id must be the integer that createSubscription returned.",
      "no input": "createSubscription sent nothing: expected object, received undefined.",
      "nothing to change": "updateSubscriptionParameters sent nothing: at least one parameter or header must be given.",
      "options of the call": "createSubscription sent nothing: \`signal\` must be an AbortSignal; \`timeoutMs\`: expected number to be >0; \`retry\` must be an object or false.",
      "parameters that are too long": "createSubscription sent nothing: names and values of parameters and headers have 9005 bytes, more than the limit of 8192: all of them come back as headers of every callback, and servers limit those.",
      "too many parameters": "createSubscription sent nothing: there are 101 parameters and headers, more than the limit of 100: all of them come back as headers of every callback, and servers limit those.",
    }
  `)
})

test('a type that is delivered is answered with the type that brings it, each of them', async () => {
  const client = fakeService().client()
  for (const type of notificationTypes) {
    for (const delivered of documentedNotificationTypes[type]) {
      const call = client.createSubscription({ ...subscription, notificationTypes: [any(delivered)] })
      await expect(call).rejects.toThrow(
        `\`notificationTypes[0]\` is the type of a delivered notification: to get it, subscribe to \`${type}\`.`,
      )
    }
  }
})

test('messages about the options of a receiver and of a parser', async () => {
  const make = (options: object) => () =>
    new DeliveryReceiver(any({ secrets: { token: 'a-secret-of-tests' }, ...options }))
  const receiver = new DeliveryReceiver({ secrets: { token: 'a-secret-of-tests' } })
  expect(
    await messagesOf({
      'no options': () => new DeliveryReceiver(any(undefined)),
      'no secrets': () => new DeliveryReceiver(any({})),
      'secrets, and none needed': make({ allowUnauthenticated: true }),
      'a secret that is a placeholder': make({ secrets: { token: 'a-long-random-value' } }),
      'a secret that is not set': make({ secrets: { token: undefined, other: '' } }),
      'a misspelt option': make({ secret: { token: 'x' }, timeoutMs: 5 }),
      'options of the wrong kind': make({ onInvalid: 'log', ackTimeoutMs: '2s', logger: true, payloads: [] }),
      limits: make({ ackTimeoutMs: -1, maxBodyBytes: 0 }),
      'a handler that is none': () => receiver.on('lowEnergyAgentOpened', any('log')),
      'a type that is none': () => receiver.on(any(7), () => {}),
      'a misspelt option of drain': () => receiver.drain(any({ timeout: 5 })),
      'a route without a receiver': () => toNodeHandler(any(undefined)),
      'a web route with what is no receiver': () => toWebHandler(any({})),
      'a misspelt option of a web route': () => toWebHandler(receiver, any({ waituntil() {} })),
      'a plugin for Fastify without options': () => toFastifyPlugin(receiver, any(undefined)),
      'a plugin for Fastify with another option': () => toFastifyPlugin(receiver, any({ url: '/n' })),
      'a parser without schemas': () => createDeliveryParser(any({})),
      'a parser with a misspelt option': () => createDeliveryParser(any({ payloads: {}, payload: {} })),
      'a parser with something else': () => createDeliveryParser(any({ payloads: { cxScoreUpdated: {} } })),
    }),
  ).toMatchInlineSnapshot(`
    {
      "a handler that is none": "The delivery receiver cannot work: \`handler\`: expected function, received string.",
      "a misspelt option": "The delivery receiver cannot work: there is no \`secret\` (did you mean \`secrets\`?), no \`timeoutMs\` (did you mean \`ackTimeoutMs\`?).",
      "a misspelt option of a web route": "The callback route cannot work: there is no \`waituntil\` (did you mean \`waitUntil\`?).",
      "a misspelt option of drain": "The delivery receiver cannot work: there is no \`timeout\` (did you mean \`timeoutMs\`?).",
      "a parser with a misspelt option": "The delivery parser cannot work: there is no \`payload\` (did you mean \`payloads\`?).",
      "a parser with something else": "The delivery parser cannot work: \`payloads.cxScoreUpdated\` must be a Standard Schema, such as one of zod, valibot or arktype.",
      "a parser without schemas": "The delivery parser cannot work: \`payloads\` must be an object of schemas by notification type.",
      "a plugin for Fastify with another option": "The callback route cannot work: \`path\`: expected string, received undefined; there is no \`url\`, only \`path\`.",
      "a plugin for Fastify without options": "The callback route cannot work: \`path\`: expected string, received undefined.",
      "a route without a receiver": "The callback route cannot work: the first argument must be a DeliveryReceiver.",
      "a secret that is a placeholder": "The delivery receiver cannot work: \`secrets.token\` is a placeholder, which anyone can guess: make one with \`node -p "crypto.randomUUID()"\`.",
      "a secret that is not set": "The delivery receiver cannot work: \`secrets.token\` is missing (is its environment variable set?); \`secrets.other\` is empty (is its environment variable set?).",
      "a type that is none": "The delivery receiver cannot work: \`type\`: expected string, received number.",
      "a web route with what is no receiver": "The callback route cannot work: the first argument must be a DeliveryReceiver.",
      "limits": "The delivery receiver cannot work: \`ackTimeoutMs\`: expected number to be >=0; \`maxBodyBytes\`: expected number to be >=1.",
      "no options": "The delivery receiver cannot work: \`secrets\` is missing: set \`secrets: { token: "…" }\`, or \`allowUnauthenticated: true\` to accept callbacks from anyone.",
      "no secrets": "The delivery receiver cannot work: \`secrets\` is missing: set \`secrets: { token: "…" }\`, or \`allowUnauthenticated: true\` to accept callbacks from anyone.",
      "options of the wrong kind": "The delivery receiver cannot work: \`payloads\` must be an object of schemas by notification type; \`onInvalid\`: expected function, received string; \`ackTimeoutMs\`: expected number, received string; \`logger\` must be a logger with debug, info, warn and error, or false.",
      "secrets, and none needed": "The delivery receiver cannot work: \`secrets\` cannot be given together with \`allowUnauthenticated: true\`: leave one out.",
    }
  `)
})

test('messages about a body that is no delivery', async () => {
  const notification = { id: 'a', time: 1.5, ver: 1, type: 'cxScoreUpdated' }
  const parser = createDeliveryParser({
    payloads: {
      cxScoreUpdated: z.object({ score: z.number().max(5, 'Such a score cannot be'), mail: z.email() }),
    },
  })
  const payload = { score: 7, mail: 'x' }
  expect(
    await messagesOf({
      nothing: () => parseDelivery(undefined),
      'a promise': () => parseDelivery(Promise.resolve('{}')),
      'a Request': () => parseDelivery(new Request('https://app.example.com')),
      'no JSON': () => parseDelivery('<html>'),
      'nothing but white space': () => parseDelivery(' \n'),
      'bytes that are not UTF-8': () => parseDelivery(new Uint8Array([0x7b, 0xff])),
      'text in JSON': () => parseDelivery('"{}"'),
      'a bigint': () => parseDelivery(1n),
      'a list': () => parseDelivery('[]'),
      'fields of the wrong kind': () => parseDelivery({ subscriptionId: 'one', notification }),
      'what the schema of a user says': () =>
        parser.parse({ subscriptionId: 1, notification: { ...notification, time: 1, ver: '1.0', payload } }),
    }),
  ).toMatchInlineSnapshot(`
    {
      "a Request": "Not a notification delivery: the body is a Request: pass \`await request.text()\`. The body is in error.body.",
      "a bigint": "Not a notification delivery: expected object, received bigint. The body is in error.body.",
      "a list": "Not a notification delivery: expected object, received array. The body is in error.body.",
      "a promise": "Not a notification delivery: the body is a promise: pass \`await request.text()\`. The body is in error.body.",
      "bytes that are not UTF-8": "Not a notification delivery: the body is not UTF-8. The body is in error.body.",
      "fields of the wrong kind": "Not a notification delivery: \`subscriptionId\`: expected number, received string; \`notification.time\` must be an integer; \`notification.ver\`: expected string, received number; \`notification.payload\`: expected object, received undefined. The body is in error.body.",
      "no JSON": "Not a notification delivery: the body is not JSON. The body is in error.body.",
      "nothing": "Not a notification delivery: the body is undefined (did a body parser run, for this content type?). The body is in error.body.",
      "nothing but white space": "Not a notification delivery: the body is empty. The body is in error.body.",
      "text in JSON": "Not a notification delivery: expected object, received string. The body is in error.body.",
      "what the schema of a user says": "Not a notification delivery: \`notification.payload.score\`: Such a score cannot be; \`notification.payload.mail\`: Invalid email address. The body is in error.body.",
    }
  `)
})

test('messages about secrets, and of a sample', async () => {
  const verify = (secrets: unknown) => () => verifySecrets({}, any(secrets))
  const sample = (overrides: object) => () => sampleDelivery('lowEnergyAgentOpened', any(overrides))
  expect(
    await messagesOf({
      'no object': verify('a'),
      'none at all': verify({}),
      'no value': verify({ token: [] }),
      'an empty value': verify({ token: ['a', ''] }),
      'a value that is not set': verify({ token: undefined }),
      'a value that is no text': verify({ token: 1 }),
      'a value that no header can have': verify({ token: 'a\nb' }),
      'a name that no header can have': verify({ 'to ken': 'a' }),
      'a name twice': verify({ token: 'a', Token: 'b' }),
      'a misspelt override': sample({ paylod: {} }),
      'a payload of another shape': sample({ payload: { idx: 0.5 } }),
      'an id that is none': sample({ subscriptionId: '7a' }),
    }),
  ).toMatchInlineSnapshot(`
    {
      "a misspelt override": "The sample delivery cannot be made: there is no \`paylod\` (did you mean \`payload\`?).",
      "a name that no header can have": "verifySecrets cannot verify anything: \`secrets["to ken"]\` is not a header name: letters, digits and !#$%&'*+-.^_\`|~ only.",
      "a name twice": "verifySecrets cannot verify anything: \`secrets.Token\` is given twice: header names are the same in any case.",
      "a payload of another shape": "Not a notification delivery: \`notification.payload.idx\` must be an integer. The body is in error.body.",
      "a value that is no text": "verifySecrets cannot verify anything: \`secrets.token\` must be text.",
      "a value that is not set": "verifySecrets cannot verify anything: \`secrets.token\` is missing (is its environment variable set?).",
      "a value that no header can have": "verifySecrets cannot verify anything: \`secrets.token\` cannot be the value of a header: visible ASCII only, and spaces or tabs in between.",
      "an empty value": "verifySecrets cannot verify anything: \`secrets.token[1]\` is empty (is its environment variable set?).",
      "an id that is none": "Not a notification delivery: \`subscriptionId\`: expected number, received string. The body is in error.body.",
      "no object": "verifySecrets cannot verify anything: \`secrets\` must hold accepted values by header name.",
      "no value": "verifySecrets cannot verify anything: \`secrets.token\` has no accepted value.",
      "none at all": "verifySecrets cannot verify anything: \`secrets\` must hold accepted values by header name.",
    }
  `)
})

test('messages about the options of a spool', async () => {
  const open = (options: object) => () => DeliverySpool.open(any({ path: 'x', deliver() {}, ...options }))
  expect(
    await messagesOf({
      'no options': () => DeliverySpool.open(any(undefined)),
      'nothing in them': () => DeliverySpool.open(any({})),
      'without open': () => new (any(DeliverySpool) as new (options: object) => object)({ path: 'x' }),
      'a misspelt option': open({ concurency: 4 }),
      'options of the wrong kind': open({ path: '', deliver: 'x', parser: {}, logger: true, onStuck: 1 }),
      limits: open({ concurrency: 0, deliverTimeoutMs: 0, maxBytes: -1 }),
    }),
  ).toMatchInlineSnapshot(`
    {
      "a misspelt option": "The delivery spool cannot work: there is no \`concurency\` (did you mean \`concurrency\`?).",
      "limits": "The delivery spool cannot work: \`concurrency\`: expected number to be >=1; \`deliverTimeoutMs\`: expected number to be >=1; \`maxBytes\`: expected number to be >=0.",
      "no options": "The delivery spool cannot work: expected object, received undefined.",
      "nothing in them": "The delivery spool cannot work: \`path\`: expected string, received undefined; \`deliver\`: expected function, received undefined.",
      "options of the wrong kind": "The delivery spool cannot work: \`path\` is empty: name a folder; \`deliver\`: expected function, received string; \`onStuck\`: expected function, received number; \`logger\` must be a logger with debug, info, warn and error, or false; there is no \`parser\`, only \`path\`, \`deliver\`, \`payloads\`, \`concurrency\`, \`deliverTimeoutMs\`, \`onStuck\`, \`onDamaged\`, \`maxBytes\`, \`logger\`.",
      "without open": "The delivery spool cannot work: use \`await DeliverySpool.open(options)\` instead of \`new DeliverySpool\`.",
    }
  `)
})

test('messages about the options of the emulator, and of what it is asked for', async () => {
  const lowEnergy = { type: 'lowEnergyAgentOpened', username: 'alice' }
  const notify = (notification: object) => () => emulator.notify(any({ ...lowEnergy, ...notification }))
  const inject =
    (...args: unknown[]) =>
    () =>
      emulator.injectFault(...(args as [never, never]))
  expect(
    await messagesOf({
      'a misspelt option': () => startEmulator(any({ prot: 1 })),
      'options of the wrong kind': () => startEmulator(any({ port: '1', page: 'yes', tls: 'x', domain: '' })),
      limits: () => startEmulator({ port: 70_000, tokenLifetimeSeconds: -1, clientSecret: '' }),
      'one of a few values': () => startEmulator(any({ credentialsEncoding: 'base64' })),
      'an empty notification': () => emulator.notify(any({})),
      'a misspelt field of a notification': notify({ version: '2.0' }),
      'a delivered type as the category': notify({ category: 'lowEnergyAgentOpened' }),
      'a payload that is none': notify({ payload: [] }),
      'a payload of a class': notify({ payload: new Map() }),
      'a type that is not documented, without a category': notify({ type: 'other' }),
      'a misspelt type': notify({ type: 'lowEnergyAgentOpen' }),
      'a fault of no operation': inject('delete', { status: 503 }),
      'no fault': inject('create'),
      'a fault of no kind': inject('create', { code: 503 }),
      'a status that is none': inject('create', { status: 99 }),
      'a fault with a field of another': inject('callback', { status: 503, body: 'x' }),
      'a misspelt option of the handlers': () =>
        emulatorHandlers(emulator, { all: () => 1 }, any({ baseURL: 'https://n.example.com' })),
      'a misspelt option of a fault': inject('create', { status: 503 }, { time: 2 }),
      'a fault never': inject('create', { status: 503 }, { times: 0 }),
      'a request of one subscription': inject('create', { status: 503 }, { subscriptionId: 1 }),
      'no http of msw': () => emulatorHandlers(emulator, any(undefined), { baseUrl: 'nowhere' }),
    }),
  ).toMatchInlineSnapshot(`
    {
      "a delivered type as the category": "This notification cannot be delivered: \`category\` is the type of a delivered notification: to get it, subscribe to \`behavioral\`.",
      "a fault never": "The fault cannot be injected: \`times\`: expected number to be >=1.",
      "a fault of no kind": "The fault cannot be injected: \`fault\` must be one of { status }, { delayMs }, { reset } and { malformedBody }.",
      "a fault of no operation": "The fault cannot be injected: \`operation\` must be token, create, update, unsubscribe or callback.",
      "a fault with a field of another": "The fault cannot be injected: \`fault\` has no \`body\`, only \`status\`.",
      "a misspelt field of a notification": "This notification cannot be delivered: there is no \`version\`, only \`type\`, \`username\`, \`category\`, \`payload\`, \`id\`, \`time\`, \`ver\`.",
      "a misspelt option": "The emulator cannot start with these options: there is no \`prot\` (did you mean \`port\`?).",
      "a misspelt option of a fault": "The fault cannot be injected: there is no \`time\` (did you mean \`times\`?).",
      "a misspelt option of the handlers": "emulatorHandlers cannot be made: there is no \`baseURL\` (did you mean \`baseUrl\`?).",
      "a misspelt type": "This notification cannot be delivered: \`type\` is not documented (did you mean lowEnergyAgentOpened?): such a type needs a category, one of behavioral, call-score, conversation-ai.",
      "a payload of a class": "This notification cannot be delivered: \`payload\`: expected record, received Map.",
      "a payload that is none": "This notification cannot be delivered: \`payload\`: expected record, received array.",
      "a request of one subscription": "The fault cannot be injected: \`subscriptionId\` is for callbacks only.",
      "a status that is none": "The fault cannot be injected: \`fault.status\`: expected number to be >=200.",
      "a type that is not documented, without a category": "This notification cannot be delivered: \`category\` is missing: it must be one of behavioral, call-score, conversation-ai, because "other" is not a documented type.",
      "an empty notification": "This notification cannot be delivered: \`type\`: expected string, received undefined; \`username\`: expected string, received undefined.",
      "limits": "The emulator cannot start with these options: \`clientSecret\`: expected string to have >=1 characters; \`tokenLifetimeSeconds\`: expected number to be >=0; \`port\`: expected number to be <=65535.",
      "no fault": "The fault cannot be injected: \`fault\` must be one of { status }, { delayMs }, { reset } and { malformedBody }.",
      "no http of msw": "emulatorHandlers cannot be made: \`http\` must be an export of msw: \`import { http } from 'msw'\`; \`baseUrl\` must be an absolute URL, such as \`https://app.example.com/path\`.",
      "one of a few values": "The emulator cannot start with these options: \`credentialsEncoding\`: expected one of "raw"|"form-urlencoded".",
      "options of the wrong kind": "The emulator cannot start with these options: \`domain\` must be printable ASCII and not empty; \`port\`: expected number, received string; \`page\` must be true, false or { port, environment }; \`tls\`: expected object, received string.",
    }
  `)
})

test('messages about a store on what is no Redis', async () => {
  expect(
    await messagesOf({
      'no client': () => redisStore(any(undefined)),
      'a prefix that is none': () => redisStore(any({}), any({ prefix: 7 })),
    }),
  ).toMatchInlineSnapshot(`
      {
        "a prefix that is none": "redisStore cannot be made: \`prefix\` must be text, such as \`coaching:\`.",
        "no client": "redisStore cannot be made: \`redis\` must be a client of ioredis (5 or 6) or of node-redis (4, 5 or 6), such as \`new Redis(url)\` of ioredis or \`createClient({ url })\` of redis.",
      }
    `)
})
