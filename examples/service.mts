/**
 * A whole service: keeps a roster of users subscribed, and loses no notification that was answered. With the account in
 * NOTIFICATION_BASE_URL and the variables beside it (docs/client.md, Environment variables), else on the emulator.
 *
 *     npm install ./notification-subscriber-*.tgz ioredis tsx
 *     npx tsx service.mts
 *
 * In production it also needs CALLBACK_URL, CALLBACK_TOKEN and REDIS_URL, the same ones in all processes, and a proxy in
 * front that terminates TLS. Give a second process on the same machine another PORT.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { Redis } from 'ioredis'
import { type Delivery, DeliveryReceiver, NotificationClient, toNodeHandler } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { SubscriptionKeeper } from 'notification-subscriber/keeper'
import { redisStore } from 'notification-subscriber/redis'
import { DeliverySpool } from 'notification-subscriber/spool'

const { NOTIFICATION_BASE_URL, PORT: port = '3000', SPOOL_PATH: path = `./spool-${port}` } = process.env
const emulator = NOTIFICATION_BASE_URL ? undefined : await startEmulator()
const client = emulator ? new NotificationClient(emulator.clientOptions) : NotificationClient.fromEnv()
const callbackUrl = setting('CALLBACK_URL', `http://127.0.0.1:${port}/notifications`)
const token = setting('CALLBACK_TOKEN', randomBytes(24).toString('base64url'))
const redisUrl = setting('REDIS_URL', '')

/** To replace: the users to subscribe, read once in 15 minutes. */
async function usernames(): Promise<string[]> {
  return Array.from({ length: 200 }, (_, index) => `agent-${index + 1}`)
}

/** To replace: the work. If it throws, it is repeated. It may run twice for one `notification.id`. */
async function work({ notification }: Delivery): Promise<void> {
  console.log(`Notification ${notification.type}: ${JSON.stringify(notification.payload)}`)
}

// The receiver answers when the delivery is on the disk. The spool calls `work` until it succeeds.
const spool = await DeliverySpool.open({ path, deliver: work })
const redis = redisUrl
  ? new Redis(redisUrl, {
      // A node that falls silent keeps its sockets: without a limit the client would wait for it for ever.
      socketTimeout: 5_000,
      // After a failover the old node takes no writes: a new connection finds the new one.
      reconnectOnError: ({ message }) => message.startsWith('READONLY'),
    })
  : undefined
redis?.on('error', ({ message }) => console.error(`Redis: ${message}`))
const keeper = new SubscriptionKeeper({
  client,
  name: 'service',
  store: redis ? redisStore(redis) : new Map(), // other stores: docs/stores.md
  usernames,
  notificationTypes: ['behavioral', 'call-score'],
  callbackUrl,
  parameters: { token },
})
const receiver = new DeliveryReceiver({ secrets: { token }, onInvalid: spool.keepInvalid })
  .onAny(spool.keep)
  .onAny(keeper.observe)

const handleCallback = toNodeHandler(receiver)
// Connections stay open for longer than a load balancer keeps them, or some callbacks fail.
const server = createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
  if (request.url?.startsWith('/notifications')) handleCallback(request, response)
  // The process is ready, because the spool is open. Never ask the keeper here: without callbacks subscriptions end.
  else if (request.url === '/livez' || request.url === '/readyz') response.writeHead(200).end()
  // For alerts.
  else if (request.url === '/status') {
    const { counts, problems } = keeper.status()
    const shown = problems.map(({ code, message }) => ({ code, message }))
    response.writeHead(200, { 'content-type': 'application/json' })
    response.end(JSON.stringify({ counts, problems: shown, waiting: spool.size }))
  } else response.writeHead(404).end()
}).listen(Number(port), emulator && '127.0.0.1') // in production on every address
await once(server, 'listening')
console.log(`Listening on http://127.0.0.1:${port}, for ${emulator ? 'an emulator' : 'your service'}.`)

process.on('SIGINT', stop).on('SIGTERM', stop)
let isStopping = false
keeper.start()
console.log(`Next, in another terminal: curl http://127.0.0.1:${port}/status`)
emulator?.on('created', ({ usernames }) => {
  if (usernames.includes('agent-7'))
    void emulator.notify({ type: 'lowEnergyAgentOpened', username: 'agent-7' })
})

/** Subscriptions stay, and the next start delivers what waits in the spool. */
async function stop(): Promise<void> {
  // npx passes on the signals of a terminal, so one Ctrl-C may come twice.
  if (isStopping) return
  isStopping = true
  await keeper.stop()
  await receiver.close(server, { timeoutMs: 10_000 })
  await spool.close()
  await client.close()
  redis?.disconnect()
  await emulator?.close()
  console.log(
    'Stopped. Next: put in your own roster and work; metrics and alerts are in docs/observability.md',
  )
}

/** A variable of the environment, which is optional only on the emulator. */
function setting(name: string, onEmulator: string): string {
  const value = process.env[name]
  if (!value && emulator === undefined) throw new Error(`${name} is missing: see the top of this file`)
  return value || onEmulator
}
