/**
 * Rotates the token of callbacks in three deployments, while callbacks arrive. In each one, an old process runs beside a new one
 * for a while, and no callback is refused. Plays it on the emulator, and ends by itself.
 *
 *     npm install ./notification-subscriber-*.tgz tsx
 *     npx tsx rotate-callback-token.mts
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type KeyValueStore, NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { SubscriptionKeeper } from 'notification-subscriber/keeper'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'

await using emulator = await startEmulator()
await using client = new NotificationClient(emulator.clientOptions)

// Both processes run in this program, so they can share a Map. In production: redisStore (docs/stores.md).
const map = new Map<string, string>()
const sharedStore: KeyValueStore = {
  get: (key) => map.get(key),
  set: (key, value) => map.set(key, value),
  delete: (key) => map.delete(key),
  compareAndSet: (key, expected, value) => map.get(key) === expected && map.set(key, value) === map,
}

// A load balancer: each callback goes to the next process.
const processes: Process[] = []
const server = createServer(emulator.tls, (request, response) => {
  const next = processes.shift()
  if (next === undefined) {
    response.writeHead(503).end()
    return
  }
  processes.push(next)
  next.handle(request, response)
}).listen(0, '127.0.0.1')
await once(server, 'listening')
const callbackUrl = `https://127.0.0.1:${(server.address() as AddressInfo).port}/notifications`

// To copy: the three deployments.
const [oldToken, newToken] = [randomToken(), randomToken()]
await deploy({ takes: [oldToken], sends: oldToken }) // how it was
const sending = sendNotifications()
await deploy({ takes: [oldToken, newToken], sends: oldToken }) // 1. every receiver takes both
await deploy({ takes: [oldToken, newToken], sends: newToken }) // 2. the keeper has the new token
await sleep(1_000) // callbacks that are on their way: a minute in production
await deploy({ takes: [newToken], sends: newToken }) // 3. the old token goes

const statuses = await sending.end()
console.log(`Notifications during the rotation: ${statuses.length}`)
console.log(`Refused during the rotation: ${statuses.filter((status) => status !== 204).length}`)
for (const { keeper } of processes) await keeper.stop()
server.close()
console.log('Next: give your secrets as a list, and read docs/keeper.md, Rotating the token.')

interface Settings {
  /** The tokens that the receiver takes. */
  readonly takes: readonly string[]
  /** The token that the keeper gives to every subscription. */
  readonly sends: string
}
type Process = ReturnType<typeof startProcess>

/** A process of the app. */
function startProcess({ takes, sends }: Settings) {
  const keeper = new SubscriptionKeeper({
    client,
    name: 'rotation',
    store: sharedStore,
    usernames: ['alice', 'bob', 'carol'],
    notificationTypes: ['behavioral'],
    callbackUrl,
    parameters: { token: sends },
  })
  const receiver = new DeliveryReceiver({ secrets: { token: [...takes] } }).onAny(keeper.observe)
  keeper.start()
  return { keeper, handle: toNodeHandler(receiver) }
}

/** A rolling deployment. It ends when every subscription has the token. */
async function deploy(settings: Settings): Promise<void> {
  const old = processes[0]
  const started = startProcess(settings)
  processes.push(started)
  const { failed } = await started.keeper.sweep()
  if (failed[0]) throw new Error('Not every subscription has the token', { cause: failed[0].error })
  await sleep(500)
  if (old === undefined) return
  processes.splice(processes.indexOf(old), 1)
  await old.keeper.stop()
}

/** Sends one notification after the other. */
function sendNotifications() {
  const statuses: (number | undefined)[] = []
  let hasEnded = false
  const sent = (async () => {
    while (!hasEnded) {
      const [callback] = await emulator.notify({ type: 'lowEnergyAgentOpened', username: 'alice' })
      statuses.push(callback?.status)
    }
  })()
  return {
    async end() {
      hasEnded = true
      await sent
      return statuses
    },
  }
}

function randomToken(): string {
  return randomBytes(24).toString('base64url')
}
