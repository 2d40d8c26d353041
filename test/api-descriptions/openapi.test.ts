/** openapi.json is a valid document, and tells the truth about what the client, the emulator and its callbacks do. */
import { execFile } from 'node:child_process'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Validator } from '@seriousme/openapi-schema-validator'
import { Ajv2020 } from 'ajv/dist/2020.js'
import { NotificationClient, type NotificationClientOptions } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { describe, expect, test } from 'vitest'
import manifest from '../../package.json' with { type: 'json' }
import { deliveryJsonSchema } from '../../scripts/api-descriptions/json-schemas.js'
import { openApiDocument } from '../../scripts/api-descriptions/openapi.js'
import { parsedUrl } from '../../src/shared/addresses.js'
import { lowEnergy, Receiver } from '../emulator/support.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))
const document = openApiDocument(manifest.version)

describe('openapi.json', () => {
  test('is valid OpenAPI 3.1', async () => {
    const validator = new Validator()
    const { valid, errors } = await validator.validate(structuredClone(document))
    expect(errors).toBeUndefined()
    expect(valid).toBe(true)
    expect(validator.version).toBe('3.1')
  })

  test('describes what the client sends and what it is answered', async () => {
    await using emulator = await startEmulator()
    const exchanges = recordedExchanges(emulator)
    const client = new NotificationClient({ ...optionsFor(emulator), fetch: exchanges.fetch })
    const subscription = {
      notificationTypes: ['behavioral', 'call-score'],
      usernames: ['alice', 'bob'],
      callbackUrl: 'https://app.example.com/notifications',
    } as const
    const { subscriptionId } = await client.createSubscription({
      ...subscription,
      parameters: { token: 'secret' },
    })
    await client.tryCreateSubscription({ ...subscription, recreateIfExists: false })
    await client.tryCreateSubscription({ ...subscription, usernames: ['alice'], recreateIfExists: true })
    await client.updateSubscriptionParameters(subscriptionId, { parameters: { token: 'next' } })
    await client.unsubscribe(subscriptionId)
    await client.unsubscribe(subscriptionId).catch(() => {})
    await client.updateSubscriptionParameters(subscriptionId, { parameters: { a: 'b' } }).catch(() => {})

    const withBasic = { auth: { username: emulator.username, password: emulator.password } }
    const other = new NotificationClient({ ...optionsFor(emulator), ...withBasic, fetch: exchanges.fetch })
    await other.createSubscription({ ...subscription, notificationTypes: ['conversation-ai'] })

    const stranger = { ...emulator.clientOptions.auth, clientSecret: 'wrong' }
    const refused = new NotificationClient({
      ...optionsFor(emulator),
      auth: stranger,
      fetch: exchanges.fetch,
    })
    await refused.getAccessToken().catch(() => {})

    const described = await Promise.all(exchanges.all.map(describeExchange))
    expect(described).toEqual([
      'getAccessToken 200',
      'createSubscription 201',
      'createSubscription 409',
      'createSubscription 409',
      'updateSubscription 2XX',
      'unsubscribe 204',
      'unsubscribe 404',
      'updateSubscription 404',
      'createSubscription 201',
      'getAccessToken 401',
    ])
  })

  test('takes Bearer in any case for the type of a token, and nothing else', async () => {
    const validate = ajv().compile(await schemaOf('AccessToken'))
    const answer = { access_token: 'a.b.c', expires_in: 3600, added: 1 }
    for (const token_type of ['Bearer', 'bearer', 'BEARER']) {
      expect(validate({ ...answer, token_type })).toBe(true)
    }
    for (const token_type of ['Basic', 'xbearer', 'bearer ']) {
      expect(validate({ ...answer, token_type })).toBe(false)
    }
  })

  test('describes the body of a callback as delivery.schema.json does', async () => {
    await using emulator = await startEmulator()
    await using receiver = await Receiver.start(emulator)
    await using client = new NotificationClient(emulator.clientOptions)
    await client.createSubscription({
      notificationTypes: ['behavioral'],
      usernames: ['alice'],
      callbackUrl: receiver.url,
    })
    await emulator.notify(lowEnergy)
    const [callback] = receiver.callbacks
    expect(ajv().compile(await schemaOf('Delivery'))(callback?.body)).toBe(true)
    const { $schema, ...delivery } = deliveryJsonSchema()
    expect($schema).toBe('https://json-schema.org/draft/2020-12/schema')
    expect(document.components.schemas.Delivery).toEqual(delivery)
  })
})

test('the build writes both files, where the package exports them', async () => {
  await using folder = await temporaryFolder()
  await run(process.execPath, ['--import', 'tsx', 'scripts/write-api-descriptions.ts', folder.path], {
    cwd: root,
  })
  const written = async (name: string) => JSON.parse(await readFile(join(folder.path, name), 'utf8'))
  expect(await written('openapi.json')).toEqual(document)
  expect(await written('delivery.schema.json')).toEqual(deliveryJsonSchema())
  expect(manifest.scripts.build).toContain('write-api-descriptions.ts dist')
  expect(manifest.exports['./openapi.json']).toBe('./dist/openapi.json')
  expect(manifest.exports['./delivery.schema.json']).toBe('./dist/delivery.schema.json')
})

function optionsFor(emulator: Emulator): Omit<NotificationClientOptions, 'dispatcher' | 'fetch'> {
  const { baseUrl, auth } = emulator.clientOptions
  return { baseUrl, auth, retry: false }
}

interface Exchange {
  readonly request: Request
  readonly response: Response
}

function recordedExchanges(emulator: Emulator) {
  const all: Exchange[] = []
  return {
    all,
    fetch: async (url: string, init: RequestInit) => {
      const request = new Request(url, init)
      const response = await emulator.fetch(request.clone())
      all.push({ request, response: response.clone() })
      return response
    },
  }
}

/** Checks an exchange against its operation; returns the operation's id and the response it was described by. */
async function describeExchange({ request, response }: Exchange): Promise<string> {
  const { pathname } = new URL(request.url)
  const paths = Object.entries((await resolved()).paths)
  const [, item] = paths.find(([template]) => matches(template, pathname)) ?? []
  const operation = item?.[request.method.toLowerCase()]
  if (operation === undefined) throw new Error(`${request.method} ${pathname} is not described`)

  const [scheme = ''] = request.headers.get('authorization')?.split(' ') ?? []
  const { securitySchemes }: { securitySchemes: Record<string, { scheme: string }> } = document.components
  const schemes = operation.security.flatMap(Object.keys).map((name) => securitySchemes[name]?.scheme)
  expect(schemes).toContain(scheme.toLowerCase())

  const form = operation.requestBody?.content['application/x-www-form-urlencoded']
  if (form === undefined) expect(await request.text()).toBe('')
  else {
    expect(request.headers.get('content-type')).toBe('application/x-www-form-urlencoded')
    expectValid(form.schema, formValues(await request.text()))
  }

  const status = String(response.status)
  const name = [status, `${status[0]}XX`, 'default'].find((key) => key in operation.responses) ?? ''
  const content = operation.responses[name]?.content?.['application/json']
  const text = await response.text()
  if (content !== undefined) expectValid(content.schema, JSON.parse(text))
  return `${operation.operationId} ${name}`
}

function matches(template: string, pathname: string): boolean {
  return new RegExp(`^${template.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(pathname)
}

/** A form holds text only: a boolean is described as one, and written as true or false. */
function formValues(body: string): Record<string, unknown> {
  const written = Object.fromEntries(new URLSearchParams(body))
  const { recreateIfExists } = written
  if (recreateIfExists === undefined) return written
  return { ...written, recreateIfExists: JSON.parse(recreateIfExists) }
}

function expectValid(schema: object, value: unknown): void {
  const validator = ajv()
  expect([validator.validate(schema, value), validator.errors, value]).toEqual([true, null, value])
}

function ajv(): Ajv2020 {
  return new Ajv2020({ formats: { uri: (text: string) => parsedUrl(text) !== undefined } })
}

interface Operation {
  readonly operationId: string
  readonly security: readonly Record<string, unknown>[]
  readonly requestBody?: { readonly content: Record<string, { schema: object }> }
  readonly responses: Record<string, { content?: Record<string, { schema: object }> }>
}

interface Resolved {
  readonly paths: Record<string, Record<string, Operation>>
  readonly components: { readonly schemas: Record<string, object> }
}

/** The document with every reference replaced by what it refers to. */
async function resolved(): Promise<Resolved> {
  const validator = new Validator()
  await validator.validate(structuredClone(document))
  return validator.resolveRefs() as unknown as Resolved
}

async function schemaOf(name: string): Promise<object> {
  const schema = (await resolved()).components.schemas[name]
  if (schema === undefined) throw new Error(`There is no schema ${name}`)
  return schema
}
