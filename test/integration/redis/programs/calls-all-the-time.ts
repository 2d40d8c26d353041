/**
 * An app that needs a token all the time: it asks the client for one every 20 ms, and in the end tells how that went.
 * Its parent says when to begin and when to end.
 */
import { once } from 'node:events'
import { setTimeout } from 'node:timers/promises'
import { NotificationClient } from 'notification-subscriber'
import type { AppReport, AppSettings } from '../app-process.js'
import { openStore } from '../stores.js'

const lookMs = 20
/** So that the report says something also where the machine was busy with something else. */
const fewestCalls = 20

const settings: AppSettings = JSON.parse(process.argv[2] ?? '')
const { store, close } = openStore(settings.kind, settings.redisUrl)

/** How long token requests took in all: what a call took beyond them is the delay. */
let requestsMs = 0
let requests = 0
const ignoreLine = () => {}
const client = new NotificationClient({
  baseUrl: settings.baseUrl,
  auth: { ...settings.credentials, tokenCache: store },
  logger: {
    debug(fields) {
      if (!('durationMs' in fields)) return
      requestsMs += Number(fields.durationMs)
      requests += 1
    },
    info: ignoreLine,
    warn: ignoreLine,
    error: ignoreLine,
  },
})

/**
 * A clock that stops while a busy machine does not let this process run: that time does not count for a call.
 */
let awakeMs = 0
let lookedAt = performance.now()
setInterval(() => {
  const now = performance.now()
  awakeMs += Math.min(now - lookedAt, 2 * lookMs)
  lookedAt = now
}, lookMs).unref()

process.send?.('ready')
await once(process, 'message')

let isRunning = true
process.once('message', () => {
  isRunning = false
})
const report: AppReport = { calls: 0, requests: 0, failures: [], longestDelayMs: 0, tokens: [] }
const tokens = new Set<string>()
while (isRunning || report.calls < fewestCalls) {
  const startedAtMs = awakeMs
  const requestsBeforeMs = requestsMs
  try {
    tokens.add(await client.getAccessToken())
  } catch (error) {
    const failure = String(error)
    if (!report.failures.includes(failure)) report.failures.push(failure)
  }
  const delayMs = awakeMs - startedAtMs - (requestsMs - requestsBeforeMs)
  report.calls += 1
  report.longestDelayMs = Math.max(report.longestDelayMs, delayMs)
  await setTimeout(20)
}
report.requests = requests
report.tokens.push(...tokens)
process.send?.(report)
await client.close()
await close()
// Whatever keeps the process alive from here on is a mistake: the parent waits for its end.
process.disconnect()
