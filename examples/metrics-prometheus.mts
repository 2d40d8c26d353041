/**
 * Metrics for Prometheus: a logger that counts events, and gauges that are read at each scrape.
 *
 *     npm install ./notification-subscriber-*.tgz prom-client tsx
 *     npx tsx metrics-prometheus.mts
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DeliveryReceiver, type Logger, NotificationClient, toNodeHandler } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { SubscriptionKeeper } from 'notification-subscriber/keeper'
import { DeliverySpool } from 'notification-subscriber/spool'
import { Counter, Gauge, register } from 'prom-client'

const { PORT: port = '3000', CALLBACK_TOKEN: token = randomBytes(24).toString('base64url') } = process.env

// To copy: one counter for all log lines, by their `event` (docs/observability.md, Events).
const events = new Counter({
  name: 'notification_subscriber_events_total',
  help: 'Log lines of notification-subscriber, by event.',
  labelNames: ['event'],
})
// Every event that an alert rule counts begins at 0, so that `increase()` also sees its first line.
const counted = [
  'callback.refused',
  'delivery.invalid',
  'handler.failed',
  'spool.damaged',
  'spool.write-failed',
]
for (const event of counted) events.inc({ event }, 0)

function count(fields: object): void {
  if ('event' in fields) events.inc({ event: String(fields.event) })
}
const logger: Logger = {
  debug: count,
  info: count,
  // An app also passes these two to its own logger.
  warn: count,
  error: count,
}

// The app: in production without the emulator, and with a path that outlives the process.
const folder = await mkdtemp(join(tmpdir(), 'metrics-'))
await using emulator = await startEmulator()
await using client = new NotificationClient({ ...emulator.clientOptions, logger })
const spool = await DeliverySpool.open({
  path: join(folder, 'spool'),
  deliver: ({ notification }) => console.log(`Notification ${notification.type} is worked on`),
  logger,
})
const keeper = new SubscriptionKeeper({
  client,
  name: 'metrics',
  store: new Map(),
  usernames: () => ['alice', 'bob'],
  notificationTypes: ['behavioral'],
  callbackUrl: `http://127.0.0.1:${port}/notifications`,
  parameters: { token },
  logger,
})
const receiver = new DeliveryReceiver({ secrets: { token }, onInvalid: spool.keepInvalid, logger })
  .onAny(keeper.observe)
  .onAny(spool.keep)

// To copy: the values that each scrape reads.
new Gauge({
  name: 'notification_spool_size',
  help: 'Deliveries that wait in the spool.',
  collect() {
    this.set(spool.size)
  },
})
new Gauge({
  name: 'notification_spool_oldest_age_seconds',
  help: 'How long the oldest delivery waits in the spool; 0 if none waits.',
  collect() {
    this.set(spool.oldestReceivedAt === undefined ? 0 : (Date.now() - spool.oldestReceivedAt) / 1_000)
  },
})
new Gauge({
  name: 'notification_keeper_subscriptions',
  help: 'Subscriptions that the keeper keeps, by state.',
  labelNames: ['state'],
  collect() {
    for (const [state, count] of Object.entries(keeper.status().counts)) this.set({ state }, count)
  },
})
new Gauge({
  name: 'notification_keeper_problem',
  help: '1 for each problem that the keeper sees now, by code.',
  labelNames: ['code'],
  collect() {
    this.reset()
    for (const { code } of keeper.status().problems) this.set({ code }, 1)
  },
})

const handleCallback = toNodeHandler(receiver)
const server = createServer(async (request, response) => {
  if (request.url?.startsWith('/notifications')) handleCallback(request, response)
  else if (request.url === '/metrics') {
    response.writeHead(200, { 'content-type': register.contentType }).end(await register.metrics())
  } else response.writeHead(404).end()
}).listen(Number(port), '127.0.0.1') // in a container on every address: without the second argument
await once(server, 'listening')

// Something to count: two subscriptions, a delivery, an end and its restore.
await keeper.sweep()
await emulator.notify({ type: 'lowEnergyAgentOpened', username: 'alice' })
emulator.endSubscription(keeper.subscription('bob')?.subscriptionId ?? 0)
await keeper.sweep()
console.log(`Metrics: http://127.0.0.1:${port}/metrics. Next, in another terminal:`)
console.log(`  curl http://127.0.0.1:${port}/metrics | grep ^notification_`)

await new Promise((resolve) => process.on('SIGINT', resolve).on('SIGTERM', resolve))
await keeper.stop()
await receiver.close(server, { timeoutMs: 10_000 })
await spool.close()
await rm(folder, { recursive: true })
console.log('Stopped. Next: alert rules for these metrics are in alert-rules.yml')
