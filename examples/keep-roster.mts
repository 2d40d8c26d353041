/**
 * Keeps the users of a file subscribed, while the file changes and the service ends subscriptions. Plays it on the
 * emulator, and ends by itself.
 *
 *     npm install notification-subscriber tsx
 *     npx tsx keep-roster.mts
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NotificationClient } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { SubscriptionKeeper } from 'notification-subscriber/keeper'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'

// In an app: `NotificationClient.fromEnv()`, and a receiver behind the callback URL.
const token = randomBytes(24).toString('base64url')
await using emulator = await startEmulator()
await using client = new NotificationClient(emulator.clientOptions)
const receiver = new DeliveryReceiver({ secrets: { token } })
const server = createServer(emulator.tls, toNodeHandler(receiver)).listen(0, '127.0.0.1')
await once(server, 'listening')
const address = server.address()
const port = typeof address === 'object' ? address?.port : undefined

const folder = await mkdtemp(join(tmpdir(), 'keep-roster-'))
const rosterFile = join(folder, 'roster.txt')
const agents = Array.from({ length: 200 }, (_, index) => `agent-${index + 1}`)
await writeFile(rosterFile, agents.join('\n'))

const keeper = new SubscriptionKeeper({
  client,
  name: 'keep-roster',
  // For the demonstration: an app needs a store that outlives the process.
  store: new Map(),
  // Called before every sweep, and once per interval: reads the file, a database or the CRM.
  usernames: async () => (await readFile(rosterFile, 'utf8')).split('\n').filter((line) => line !== ''),
  notificationTypes: ['behavioral', 'call-score'],
  callbackUrl: `https://127.0.0.1:${port}/notifications`,
  parameters: { token },
  maxRequestsPerSecond: 400,
  onGap: ({ username, cause }) => say(`${username} was without notifications: ${cause}`),
  onProblem: ({ code, resolved }) => say(resolved ? `${code} is resolved` : code),
})
receiver.onAny(keeper.observe)

// All users, before traffic begins.
const { created } = await keeper.sweep()
say(`${created} subscribed`)

// A user joins, a user leaves. An app calls `sweep` at a log-in, or the keeper reads the roster within an interval.
await writeFile(rosterFile, [...agents.slice(1), 'newcomer'].join('\n'))
const change = await keeper.sweep()
say(`${change.created} joined, ${change.removed} left`)

// From now on each user is checked once in 15 minutes.
keeper.start()

// The service ends a subscription without a report. The keeper finds the end within 15 minutes, a sweep at once.
emulator.endSubscription(keeper.subscription('agent-7')?.subscriptionId ?? 0)
await keeper.sweep()

// A delivery proves that the restored subscription works.
await emulator.notify({ type: 'cxScoreUpdated', category: 'call-score', username: 'agent-7', payload: {} })
const { counts } = keeper.status()
say(`${counts.active} of ${agents.length} are active`)

await keeper.stop()
await receiver.close(server, { timeoutMs: 10_000 })
await rm(folder, { recursive: true })
say('Next: give the keeper your own client, roster and store, and read docs/keeper.md.')

function say(text: string): void {
  console.log(text)
}
