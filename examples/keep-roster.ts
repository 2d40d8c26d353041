/**
 * Keeps the users of a file subscribed, while the file changes and the service ends subscriptions. Run it with
 * `npx tsx examples/keep-roster.ts`.
 */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { NotificationClient, SubscriptionKeeper, type SweepProgress } from 'notification-subscriber'
import { startEmulator } from 'notification-subscriber/emulator'
import { DeliveryReceiver, toNodeHandler } from 'notification-subscriber/webhooks'
import { callbackToken, listen } from './support/demonstrate.js'

// In an app: the service, and a receiver behind the callback URL.
await using emulator = await startEmulator()
await using client = new NotificationClient(emulator.clientOptions)
const receiver = new DeliveryReceiver({ secrets: { token: callbackToken } })
const server = await listen(createServer(emulator.tls, toNodeHandler(receiver)))

const folder = await mkdtemp(join(tmpdir(), 'keep-roster-'))
const rosterFile = join(folder, 'roster.txt')
const agents = Array.from({ length: 200 }, (_, index) => `agent-${index + 1}`)
await writeFile(rosterFile, agents.join('\n'))

const keeper = new SubscriptionKeeper({
  client,
  name: 'keep-roster',
  // For the demonstration: an app takes a store that outlives the process.
  store: new Map(),
  // Asked before every pass: the file, a database, the CRM.
  usernames: async () => (await readFile(rosterFile, 'utf8')).split('\n').filter((line) => line !== ''),
  notificationTypes: ['behavioral', 'call-score'],
  callbackUrl: `${server.origin}/notifications`,
  parameters: { token: callbackToken },
  maxRequestsPerSecond: 400,
  onGap: ({ username, cause }) => say(`${username} was without notifications: ${cause}`),
  onProblem: ({ code, resolved }) => say(resolved ? `${code} is over` : code),
})
receiver.onAny(keeper.observe)

// Everybody, before traffic begins.
const { created } = await keeper.sweep({ onProgress: showProgress })
say(`${created} subscribed`)

// Somebody joins, somebody leaves: in an app a log-in, or the next pass, calls `sweep`.
await writeFile(rosterFile, [...agents.slice(1), 'newcomer'].join('\n'))
const change = await keeper.sweep({ onProgress: showProgress })
say(`${change.created} joined, ${change.removed} left`)

// The service ends a subscription and tells nobody. The first pass of the watch finds out.
emulator.endSubscription(keeper.subscription('agent-7')?.subscriptionId ?? 0)
keeper.start()
await until(() => keeper.subscription('agent-7')?.restoredCount === 1)

// A delivery proves that the restored subscription works.
await emulator.notify({ type: 'cxScoreUpdated', category: 'call-score', username: 'agent-7', payload: {} })
const { counts } = keeper.status()
say(`${counts.active} of ${agents.length} are active`)

await keeper.stop()
await server.close()
await rm(folder, { recursive: true })

/** A bar on a terminal; nothing where the output is a file. */
function showProgress({ done, total, failed }: SweepProgress): void {
  if (!process.stdout.isTTY) return
  const width = 30
  const filled = Math.round((done / total) * width)
  const bar = '█'.repeat(filled) + '░'.repeat(width - filled)
  process.stdout.write(`\r${bar} ${done}/${total}${failed > 0 ? `, ${failed} failed` : ''}`)
  if (done === total) process.stdout.write('\n')
}

function say(text: string): void {
  console.log(text)
}

async function until(isSo: () => boolean): Promise<void> {
  while (!isSo()) await new Promise((resolve) => setTimeout(resolve, 20))
}
