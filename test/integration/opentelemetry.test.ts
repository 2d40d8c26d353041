/**
 * The recipe of examples/trace-opentelemetry.mts to the letter, beside the instrumentation of undici and http, on the real
 * OpenTelemetry SDK. What the recipe makes of the channels alone, the spool's included, is tested with the example.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { transformSync } from 'esbuild'
import { startEmulator } from 'notification-subscriber/emulator'
import { expect, test } from 'vitest'
import { environmentOf } from '../support/emulator-environment.js'
import { freePort } from '../support/listen.js'
import { RunningProgram } from '../support/running-program.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

interface Span {
  readonly id: string
  readonly name: string
  readonly scope: string
  readonly kind: string
  readonly error?: string
  readonly parent?: string
}

const callbackToken = 'secret-of-the-callbacks'
const clientSecret = 'secret-of-the-client'

/** What a program does besides the recipe; some of it fails. */
const program = `
import { SpanKind } from '@opentelemetry/api'
import { registerInstrumentations } from '@opentelemetry/instrumentation'
import { HttpInstrumentation } from '@opentelemetry/instrumentation-http'
import { UndiciInstrumentation } from '@opentelemetry/instrumentation-undici'

const exporter = new InMemorySpanExporter()
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
provider.register({ contextManager })
registerInstrumentations({ instrumentations: [new HttpInstrumentation(), new UndiciInstrumentation()] })

const { CALLBACK_TOKEN: token = '', PORT: port = '' } = process.env
const receiver = new DeliveryReceiver({ secrets: { token } }).onAny(traceDelivery)
const received = new Promise((resolve) => receiver.onAny(resolve))
const server = createServer(toNodeHandler(receiver)).listen(Number(port), '127.0.0.1')
await once(server, 'listening')

const client = NotificationClient.fromEnv()
const wanted = {
  notificationTypes: ['behavioral'],
  usernames: ['alice'],
  callbackUrl: 'http://127.0.0.1:' + port + '/notifications?key=' + token,
  parameters: { token },
}
await client.createSubscription(wanted).catch(() => {})
await client.createSubscription(wanted)
console.log('Subscribed')

await received
await receiver.close(server)
await client.close()
for (const span of exporter.getFinishedSpans()) {
  console.log(JSON.stringify({
    id: span.spanContext().spanId,
    name: span.name,
    scope: span.instrumentationScope.name,
    kind: SpanKind[span.kind],
    attributes: { ...span.attributes, events: JSON.stringify(span.events) },
    error: span.status.message,
    parent: span.parentSpanContext?.spanId,
  }))
}
`

test('undici makes a client span of each request below its call, http a server span above each delivery, and none has a secret', async () => {
  const [recipe = ''] = (await readFile(join(root, 'examples/trace-opentelemetry.mts'), 'utf8')).split(
    '// To here.\n',
  )
  const { code } = transformSync(recipe + program, {
    loader: 'ts',
    tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: false } },
  })
  await using folder = await temporaryFolder()
  await using emulator = await startEmulator({ clientSecret })
  // The service shows every secret that it was sent, and refuses.
  const body = `refused: ${clientSecret} ${callbackToken}`
  emulator.injectFault('create', { status: 400, body })
  await using running = new RunningProgram(['--import', 'tsx', '--input-type=module', '--eval', code], {
    folder: root,
    variables: {
      ...(await environmentOf(emulator, folder.path)),
      CALLBACK_TOKEN: callbackToken,
      PORT: String(await freePort()),
    },
  })
  await running.line(/^Subscribed$/)
  expect(await emulator.notify({ type: 'lowEnergyAgentOpened', username: 'alice' })).toMatchObject([
    { status: 204 },
  ])
  expect(await running.ended, running.errors.join('\n')).toBe(0)
  const printed = running.lines.filter((line) => line.startsWith('{'))
  const spans: Span[] = printed.map((line) => JSON.parse(line))
  const named = (name: string) =>
    spans.filter((span) => span.scope === 'notification-subscriber' && span.name === name)

  const [refused, created] = named('createSubscription')
  expect(refused?.error).toEqual(expect.any(String))
  expect(created?.error).toBeUndefined()
  expect(named('token')[0]?.parent).toBe(refused?.id)
  for (const call of [refused, created, named('token')[0]]) {
    expect(spans.filter(({ kind, parent }) => kind === 'CLIENT' && parent === call?.id)).toMatchObject([
      { scope: '@opentelemetry/instrumentation-undici', name: 'POST' },
    ])
  }
  const servers = spans.filter(({ kind }) => kind === 'SERVER')
  expect(servers).toMatchObject([{ scope: '@opentelemetry/instrumentation-http' }])
  expect(named('delivery')[0]?.parent).toBe(servers[0]?.id)
  expect(printed.join()).not.toContain(clientSecret)
  // A server span has the address that was called: its query is the only place.
  const elsewhere = JSON.stringify(spans.filter(({ kind }) => kind !== 'SERVER'))
  for (const secret of [callbackToken, 'eyJ']) expect(elsewhere).not.toContain(secret)
})
