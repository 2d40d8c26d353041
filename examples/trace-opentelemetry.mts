/**
 * Spans of OpenTelemetry from the tracing channels of this package.
 *
 *     npm install ./notification-subscriber-*.tgz @opentelemetry/api @opentelemetry/sdk-trace-node tsx
 *     npx tsx trace-opentelemetry.mts
 */
import { AsyncLocalStorage } from 'node:async_hooks'
import { randomBytes } from 'node:crypto'
import { tracingChannel } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type Attributes,
  type Context,
  type ContextManager,
  context,
  ROOT_CONTEXT,
  type Span,
  type SpanContext,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import {
  InMemorySpanExporter,
  NodeTracerProvider,
  type ReadableSpan,
  SimpleSpanProcessor,
} from '@opentelemetry/sdk-trace-node'
import {
  DeliveryReceiver,
  type Notification,
  NotificationClient,
  toNodeHandler,
} from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { DeliverySpool } from 'notification-subscriber/spool'

// To copy, from here to the next line like this one. A context manager whose storage the channels can bind, so that
// spans that are made within a call (of undici's instrumentation, say) are its children.
const storage = new AsyncLocalStorage<Context>()
const contextManager: ContextManager = {
  active: () => storage.getStore() ?? ROOT_CONTEXT,
  with: (active, run, self, ...args) => storage.run(active, () => run.call(self, ...args)),
  bind: (active, target) =>
    typeof target === 'function'
      ? new Proxy(target, { apply: (...call) => storage.run(active, Reflect.apply, ...call) })
      : target,
  enable: () => contextManager,
  disable: () => contextManager,
}

/** The spans of the last 10,000 deliveries, for the links from the attempts of the spool. */
const deliveries = new Map<string, SpanContext>()

/** A handler for `receiver.onAny`, before `spool.keep`. */
function traceDelivery({ id, type }: Notification): void {
  const span = trace.getTracer('notification-subscriber').startSpan('delivery', { attributes: { type } })
  deliveries.set(id, span.spanContext())
  const [oldest] = deliveries.keys()
  if (oldest !== undefined && deliveries.size > 10_000) deliveries.delete(oldest)
  span.end()
}

traceChannel('call', ({ method }) => ({ name: String(method) }))
traceChannel('token', () => ({ name: 'token' }))
traceChannel('sweep', ({ name }) => ({ name: `sweep ${name}` }))
traceChannel('deliver', ({ notificationId }) => {
  const delivery = deliveries.get(String(notificationId))
  return { name: 'deliver', links: delivery === undefined ? [] : [{ context: delivery }] }
})

/** Makes a span of each operation of a channel; its fields become attributes. */
function traceChannel(
  channelName: 'call' | 'token' | 'sweep' | 'deliver',
  describe: (message: Readonly<Record<string, unknown>>) => {
    name: string
    links?: { context: SpanContext }[]
  },
): void {
  const tracer = trace.getTracer('notification-subscriber')
  const spans = new WeakMap<object, Span>()
  const channel = tracingChannel(`notification-subscriber:${channelName}`)
  channel.start.bindStore(storage, (message) => {
    const { name, links = [] } = describe({ ...message })
    const span = tracer.startSpan(name, { links })
    spans.set(message, span)
    return trace.setSpan(context.active(), span)
  })
  channel.asyncEnd.subscribe((message) => {
    const { error, ...fields } = Object(message)
    const span = spans.get(Object(message))
    span?.setAttributes(attributesOf(fields))
    if (error !== undefined) span?.setStatus({ code: SpanStatusCode.ERROR, message: String(error) })
    span?.end()
  })
}

function attributesOf(fields: Readonly<Record<string, unknown>>): Attributes {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      `notification_subscriber.${name}`,
      typeof value === 'number' ? value : String(value),
    ]),
  )
}
// To here.

const exporter = new InMemorySpanExporter()
const provider = new NodeTracerProvider({ spanProcessors: [new SimpleSpanProcessor(exporter)] })
provider.register({ contextManager })

// The app: in production without the emulator.
const folder = await mkdtemp(join(tmpdir(), 'traces-'))
const token = randomBytes(24).toString('base64url')
await using emulator = await startEmulator()
await using client = new NotificationClient(emulator.clientOptions)
const spool = await DeliverySpool.open({ path: join(folder, 'spool'), deliver: () => {} })
const receiver = new DeliveryReceiver({ secrets: { token } }).onAny(traceDelivery).onAny(spool.keep)
const server = createServer(toNodeHandler(receiver)).listen(0, '127.0.0.1')
await once(server, 'listening')

// Something to trace: a create that needs three attempts, a delivery, and the work of the spool.
emulator.injectFault('create', { status: 503, headers: { 'retry-after': '0' } }, { times: 2 })
await client.createSubscription({
  notificationTypes: ['behavioral'],
  usernames: ['alice'],
  callbackUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}/notifications`,
  parameters: { token },
})
await emulator.notify({ type: 'lowEnergyAgentOpened', username: 'alice' })
while (spool.size > 0) await new Promise((resolve) => setTimeout(resolve, 20))
await receiver.close(server, { timeoutMs: 10_000 })
await spool.close()
await rm(folder, { recursive: true })

for (const span of exporter.getFinishedSpans()) console.log(describeSpan(span))
console.log('Next: give NodeTracerProvider the exporter of your backend in place of InMemorySpanExporter.')

function describeSpan({ name, attributes, parentSpanContext, links }: ReadableSpan): string {
  const nameOf = (id: string | undefined) =>
    exporter.getFinishedSpans().find((span) => span.spanContext().spanId === id)?.name
  const parent = parentSpanContext === undefined ? '' : `, child of ${nameOf(parentSpanContext.spanId)}`
  const linked = links.map((link) => `, linked to ${nameOf(link.context.spanId)}`).join('')
  return `${name}${parent}${linked} ${JSON.stringify(attributes)}`
}
