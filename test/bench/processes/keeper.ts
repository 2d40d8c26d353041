/** A keeper of many users, on a service and a store that are functions of this process. */
import { setTimeout as pause } from 'node:timers/promises'
import { type KeeperClient, SubscriptionConflictError, SubscriptionKeeper } from '../../../dist/index.js'
import { type Cost, costOf } from '../measure.js'
import { serve } from '../processes.js'

const users = Number(process.argv[2])
const callbackUrl = 'https://app.example.com/notifications'

/** Remembers nothing of single users: what is measured is the keeper's memory. */
let subscribed = 0
const conflict = new SubscriptionConflictError('exists', {
  status: 409,
  body: '',
  url: callbackUrl,
  reason: 'duplicate-or-overlap',
  request: { notificationTypes: [], usernames: [], callbackUrl, recreateIfExists: false },
})
const client: KeeperClient = {
  tryCreateSubscription: async () =>
    subscribed < users ? { created: true, subscriptionId: ++subscribed } : { created: false, conflict },
  unsubscribe: async () => {},
  updateSubscriptionParameters: async () => {},
}

/** As Redis would be: the texts are somewhere else, and a process at a time works. */
const calls = { reads: 0, writes: 0 }
const kept = new Map<string, string>()
const store = {
  get(key: string) {
    calls.reads++
    return kept.get(key)
  },
  set(key: string, value: string) {
    calls.writes++
    kept.set(key, value)
  },
  delete: (key: string) => kept.delete(key),
}

async function heapAfterCollection(): Promise<number> {
  for (let round = 0; round < 3; round++) {
    globalThis.gc?.()
    await pause(20)
  }
  return process.memoryUsage().heapUsed
}

const before = await heapAfterCollection()
const keeper = new SubscriptionKeeper({
  client,
  name: 'bench',
  store,
  usernames: () => Array.from({ length: users }, (_, index) => `agent-${index}@example.com`),
  notificationTypes: ['behavioral'],
  callbackUrl,
  parameters: { token: 'secret' },
  maxRequestsPerSecond: Number.POSITIVE_INFINITY,
  reportStrays: false,
  logger: false,
})
const first = await keeper.sweep()
if (first.active !== users || first.failed.length > 0) throw new Error(`only ${first.active} are subscribed`)

async function observeFor(runMs: number): Promise<number> {
  const endsAt = performance.now() + runMs
  const contexts = Array.from({ length: 1_000 }, (_, index) => ({
    subscriptionId: 1 + index * (users / 1_000),
  }))
  let observed = 0
  while (performance.now() < endsAt) {
    for (const context of contexts) keeper.observe(undefined, context)
    observed += contexts.length
  }
  return observed
}

const functions = {
  /** Passes in which nothing has changed, one after the other. */
  passes: (times: number): Promise<Cost> =>
    costOf(async () => {
      for (let pass = 0; pass < times; pass++) {
        const { active } = await keeper.sweep()
        if (active !== users) throw new Error(`only ${active} are active`)
      }
      return times
    }),
  /** Deliveries, of one user after the other. */
  observe: (runMs: number): Promise<Cost> => costOf(() => observeFor(runMs)),
  heapPerUser: async (): Promise<number> => ((await heapAfterCollection()) - before) / users,
  /** Of one quiet pass. */
  storeCalls: async (): Promise<{ reads: number; writes: number }> => {
    const { reads, writes } = calls
    await keeper.sweep()
    return { reads: calls.reads - reads, writes: calls.writes - writes }
  },
}
export type KeeperFunctions = typeof functions
serve(functions)
