/**
 * Receiver, spool, keeper and emulator in one process, while faults come and go. Prints one sample a line.
 *
 *     node --expose-gc --import tsx soak.ts MINUTES
 */
import { once } from 'node:events'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { createServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { DeliveryReceiver, NotificationClient, toNodeHandler } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { SubscriptionKeeper } from 'notification-subscriber/keeper'
import { DeliverySpool } from 'notification-subscriber/spool'

const minutes = Number(process.argv[2])
const sampleMs = 5_000
const users = Array.from({ length: 50 }, (_, index) => `agent-${index}`)

const folder = await mkdtemp(join(tmpdir(), 'notification-subscriber-soak-'))
await using emulator = await startEmulator({ callbackTimeoutMs: 1_000 })
await using client = new NotificationClient({ ...emulator.clientOptions, retry: { baseDelayMs: 10 } })

let delivered = 0
let restored = 0
const spool = await DeliverySpool.open({
  path: join(folder, 'spool'),
  // One of ten attempts fails, and is repeated.
  deliver: () => {
    delivered += 1
    if (delivered % 10 === 0) throw new Error('fails now and then')
  },
  logger: false,
})
const receiver = new DeliveryReceiver({ secrets: { token: 'secret' }, logger: false }).onAny(spool.keep)
const handle = toNodeHandler(receiver)
let isReceiverDown = false
const server = createServer(emulator.tls, (request, response) => {
  if (isReceiverDown) response.writeHead(502).end()
  else handle(request, response)
}).listen(0, '127.0.0.1')
await once(server, 'listening')

const keeper = new SubscriptionKeeper({
  client,
  name: 'soak',
  store: new Map(),
  usernames: () => users,
  notificationTypes: ['behavioral'],
  callbackUrl: `https://127.0.0.1:${(server.address() as AddressInfo).port}/notifications`,
  parameters: { token: 'secret' },
  sweepIntervalMs: 60_000,
  onGap: () => {
    restored += 1
  },
  onProblem: () => {},
  logger: false,
})
receiver.onAny(keeper.observe)
await keeper.sweep()
keeper.start()

const endsAt = Date.now() + minutes * 60_000
const [faults, deliveries, samples] = [breakThings(), deliverAll(), sampleAll()]
await Promise.all([faults, deliveries, samples])

await keeper.stop()
server.close()
await receiver.drain()
await spool.close()
await rm(folder, { recursive: true })

/** Each fault for a few seconds, one after the other, with a calm in between. */
async function breakThings(): Promise<void> {
  const all = [
    () => emulator.injectFault('create', { status: 503 }, { times: 20 }),
    () => emulator.injectFault('update', { reset: 'after-processing' }, { times: 5 }),
    () => emulator.injectFault('token', { status: 500 }, { times: 3 }),
    () => emulator.revokeTokens(),
    () => emulator.endSubscription(keeper.subscription('agent-7')?.subscriptionId ?? 0),
    () => {
      isReceiverDown = true
    },
  ]
  for (let round = 0; Date.now() < endsAt; round += 1) {
    all[round % all.length]?.()
    await wait(2_000)
    isReceiverDown = false
    emulator.clearFaults()
    await wait(3_000)
  }
}

async function deliverAll(): Promise<void> {
  for (let count = 0; Date.now() < endsAt; count += 1) {
    const username = users[count % users.length] ?? ''
    await emulator.notify({
      type: 'lowEnergyAgentOpened',
      category: 'behavioral',
      username,
      payload: { callId: `call-${count}`, username, bTime: 0, nTime: 1, idx: 0 },
    })
    await wait(5)
  }
}

async function sampleAll(): Promise<void> {
  while (Date.now() < endsAt) {
    await wait(sampleMs)
    globalThis.gc?.()
    const sample = {
      heapBytes: process.memoryUsage().heapUsed,
      handles: process.getActiveResourcesInfo().length,
      descriptors: (await readdir('/proc/self/fd')).length,
      delivered,
      restored,
      waiting: spool.size,
    }
    console.log(JSON.stringify(sample))
  }
}
