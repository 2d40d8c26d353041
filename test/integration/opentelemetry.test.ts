/**
 * The recipe of examples/trace-opentelemetry.mts to the letter, in a process of its own with the instrumentation of
 * undici and http beside it, on the real OpenTelemetry SDK.
 */
import { startEmulator } from 'notification-subscriber/emulator'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import * as z from 'zod'
import { environmentOf } from '../support/emulator-environment.js'
import { freePort } from '../support/listen.js'
import { InstalledProject } from './installed-project.js'

const spanSchema = z.object({
  id: z.string(),
  name: z.string(),
  scope: z.string(),
  kind: z.enum(['INTERNAL', 'SERVER', 'CLIENT']),
  attributes: z.record(z.string(), z.unknown()),
  error: z.string().optional(),
  parent: z.string().optional(),
  links: z.array(z.string()),
})
type Span = z.infer<typeof spanSchema>

const callbackToken = 'secret-of-the-callbacks'
const clientSecret = 'secret-of-the-client'
const ours = 'notification-subscriber'

let project: InstalledProject
let spans: readonly Span[]
let printed: string
beforeAll(async () => {
  project = await InstalledProject.make()
  const [recipe = ''] = (await project.read('trace-opentelemetry.mts')).split('// To here.\n')
  await project.write('instrumented.mts', recipe + program)
  await using emulator = await startEmulator({ allowInsecureLoopback: true, clientSecret })
  // The service shows every secret that it was sent, and refuses.
  const body = `refused: ${clientSecret} ${callbackToken}`
  emulator.injectFault('create', { status: 400, body })
  await using running = project.start('instrumented.mts', {
    ...(await environmentOf(emulator, project.folder)),
    CALLBACK_TOKEN: callbackToken,
    PORT: String(await freePort()),
  })
  await running.line(/^Subscribed$/)
  expect(await emulator.notify({ type: 'lowEnergyAgentOpened', username: 'alice' })).toMatchObject([
    { status: 204 },
  ])
  expect(await running.ended, running.errors.join('\n')).toBe(0)
  printed = running.lines.join('\n')
  spans = running.lines
    .filter((line) => line.startsWith('{'))
    .map((line) => spanSchema.parse(JSON.parse(line)))
}, 240_000)
afterAll(() => project?.[Symbol.asyncDispose]())

/** What a program does besides the recipe: everything that makes spans, and some of it fails. */
const program = `
import { SpanKind } from '@opentelemetry/api'
import { registerInstrumentations } from '@opentelemetry/instrumentation'
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http'
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici'
import { SubscriptionKeeper } from 'notification-subscriber/keeper'

const exporter = new InMemorySpanExporter()
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
provider.register({ contextManager })
registerInstrumentations({ instrumentations: [new HttpInstrumentation(), new UndiciInstrumentation()] })

const { CALLBACK_TOKEN: token = '', PORT: port = '' } = process.env
const folder = await mkdtemp(join(tmpdir(), 'instrumented-'))
let attempts = 0
const spool = await DeliverySpool.open({
  path: join(folder, 'spool'),
  deliver() {
    attempts += 1
    if (attempts === 1) throw new Error('failed with ' + token)
  },
})
const receiver = new DeliveryReceiver({ secrets: { token } }).onAny(traceDelivery).onAny(spool.keep)
const server = createServer(toNodeHandler(receiver)).listen(Number(port), '127.0.0.1')
await once(server, 'listening')

const client = NotificationClient.fromEnv({ allowInsecureLoopback: true })
const wanted = {
  notificationTypes: ['behavioral'],
  usernames: ['alice'],
  callbackUrl: 'http://127.0.0.1:' + port + '/notifications?key=' + token,
  parameters: { token },
} as const
await client.createSubscription(wanted).catch(() => {})
await client.createSubscription(wanted)
const { callbackUrl, notificationTypes, parameters } = wanted
const usernames = ['carol', 'dave']
const keeper = new SubscriptionKeeper({
  client, name: 'coaching', store: new Map(), usernames, notificationTypes, callbackUrl, parameters,
})
await keeper.sweep()
console.log('Subscribed')

while (attempts < 2 || spool.size > 0) await new Promise((resolve) => setTimeout(resolve, 20))
await keeper.stop()
server.close()
await receiver.drain()
await spool.close()
await client.close()
await rm(folder, { recursive: true })
for (const span of exporter.getFinishedSpans()) {
  console.log(JSON.stringify({
    id: span.spanContext().spanId,
    name: span.name,
    scope: span.instrumentationScope.name,
    kind: SpanKind[span.kind],
    attributes: { ...span.attributes, events: JSON.stringify(span.events) },
    error: span.status.message,
    parent: span.parentSpanContext?.spanId,
    links: span.links.map(({ context }) => context.spanId),
  }))
}
`

const named = (name: string) => spans.filter((span) => span.scope === ours && span.name === name)
const childrenOf = (parent: Span | undefined) => spans.filter((span) => span.parent === parent?.id)
const attribute = (span: Span | undefined, name: string) =>
  span?.attributes[`notification_subscriber.${name}`]

describe('spans from the tracing channels', () => {
  test('a call has its method, attempts and status, and an error if it failed', () => {
    const [refused, created] = named('createSubscription')
    expect([attribute(refused, 'attempts'), attribute(refused, 'status')]).toEqual([1, 400])
    expect(refused?.error).toEqual(expect.any(String))
    expect([attribute(created, 'attempts'), attribute(created, 'status')]).toEqual([1, 201])
    expect(created?.error).toBeUndefined()
  })

  test('the token request is a child of the call that waited for it', () => {
    const [token] = named('token')
    expect(token?.parent).toBe(named('createSubscription')[0]?.id)
    expect(attribute(token, 'status')).toBe(200)
  })

  test('a sweep has its counts', () => {
    const [sweep] = named('sweep coaching')
    const counts = ['name', 'wanted', 'created', 'restored', 'removed', 'failed']
    expect(counts.map((name) => attribute(sweep, name))).toEqual(['coaching', 2, 2, 0, 0, 0])
  })

  test('each attempt of the spool is linked to its delivery, and not its child', () => {
    const [delivery] = named('delivery')
    const attempts = named('deliver')
    expect(attempts.map((span) => attribute(span, 'attempt'))).toEqual([1, 2])
    expect(attempts.map(({ error }) => error !== undefined)).toEqual([true, false])
    for (const attempt of attempts) {
      expect(attempt.links).toEqual([delivery?.id])
      expect(attempt.parent).toBeUndefined()
    }
  })

  test('no secret is in any span, though the service and the work showed them', () => {
    expect(printed).toContain('lowEnergyAgentOpened')
    for (const secret of [clientSecret, callbackToken, 'eyJ']) {
      // A server span has the address that was called: its query is the only place.
      const elsewhere = spans.filter(({ kind }) => kind !== 'SERVER')
      expect(JSON.stringify(elsewhere)).not.toContain(secret)
    }
    expect(JSON.stringify(spans)).not.toContain(clientSecret)
  })
})

describe('the instrumentation of undici and http', () => {
  test('makes a client span of each request, below the span of the call', () => {
    const [refused, created] = named('createSubscription')
    for (const call of [refused, created, named('token')[0]]) {
      expect(childrenOf(call).filter(({ kind }) => kind === 'CLIENT')).toMatchObject([
        { scope: '@opentelemetry/instrumentation-undici', name: 'POST' },
      ])
    }
  })

  test('makes a server span of a callback, above the span of its delivery', () => {
    const servers = spans.filter(({ kind }) => kind === 'SERVER')
    expect(servers).toMatchObject([{ scope: '@opentelemetry/instrumentation-http' }])
    expect(named('delivery')[0]?.parent).toBe(servers[0]?.id)
  })
})
