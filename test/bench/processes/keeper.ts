/** A keeper of many users, on a service and a store that are functions of this process. */
import { setTimeout as pause } from 'node:timers/promises'
import { SubscriptionConflictError } from '../../../dist/index.js'
import { type KeeperClient, SubscriptionKeeper } from '../../../dist/keeper/index.js'
import { type Cost, costOf, heapAfterCollection } from '../measure.js'
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

/** Answers at once. */
const calls = { reads: 0, writes: 0, writtenBytes: 0 }
function keep(key: string, value: string): void {
  calls.writes++
  calls.writtenBytes += Buffer.byteLength(value)
  kept.set(key, value)
}
const kept = new Map<string, string>()
const store = {
  get(key: string) {
    calls.reads++
    return kept.get(key)
  },
  set: keep,
  delete: (key: string) => kept.delete(key),
  compareAndSet(key: string, expected: string | undefined, value: string) {
    if (kept.get(key) !== expected) return false
    keep(key, value)
    return true
  },
}

/** Short, so that one is over soon: what an interval costs does not depend on its length. */
const sweepIntervalMs = 30_000

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
  sweepIntervalMs,
  logger: false,
})
const firstSweep = await costOf(sweep)

async function sweep(): Promise<number> {
  const { active, failed } = await keeper.sweep()
  if (active !== users || failed.length > 0) throw new Error(`only ${active} are active`)
  return 1
}

const functions = {
  heapPerUser: async (): Promise<number> => ((await heapAfterCollection()) - before) / users,
  /** The sweep that subscribed every user. */
  firstSweep: async (): Promise<Cost> => firstSweep,
  /** An interval of watch, after one that has spread the users over it; what happens with the store, for each user. */
  quietInterval: async () => {
    keeper.start()
    await pause(2 * sweepIntervalMs)
    const earlier = { ...calls }
    const cost = await costOf(async () => {
      await pause(sweepIntervalMs)
      return 1
    })
    const perUser = (name: keyof typeof calls) => (calls[name] - earlier[name]) / users
    const store = {
      reads: perUser('reads'),
      writes: perUser('writes'),
      writtenBytes: perUser('writtenBytes'),
    }
    await keeper.stop()
    return { cost, store }
  },
}
export type KeeperFunctions = typeof functions
serve(functions)
