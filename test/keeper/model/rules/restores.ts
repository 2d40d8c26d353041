/** Restores of one user between two deliveries grow rarer: after the first a minute, then 2, 4, 8, 15 minutes. */
import type { KeeperGap } from 'notification-subscriber/keeper'
import type { VirtualProcess } from '../virtual-process.js'
import { haveSameClock, type Reported, seconds, type World } from '../world.js'

interface Restore {
  readonly count: number
  readonly gap: Reported<KeeperGap>
}

/** In each process, and over all processes that find in the store what the one before has done. */
export function restoresTooSoon(world: World): string[] {
  const problems: string[] = []
  const chains = new Map<string, Restore>()
  for (const gap of restores(world)) {
    const { what, atMs, node } = gap
    for (const key of [`${node} ${what.username}`, `all ${what.username}`]) {
      const last = chains.get(key)
      const isNext = last !== undefined && isNextOf(world, last.gap, gap)
      const count = isNext ? last.count + 1 : 1
      chains.set(key, { count, gap })
      const leastMs = Math.min(15, 2 ** (count - 2)) * 60_000
      if (isNext && atMs - last.gap.atMs < leastMs) {
        const before = `${last.gap.node} restored ${what.username} at ${seconds(last.gap.atMs)}`
        problems.push(`${before} and, as number ${count}, ${node} at ${seconds(atMs)}`)
      }
    }
  }
  return problems
}

/** Gaps that were ended by a restore, and when that was: a process that stands still reports it late. */
function restores(world: World): Reported<KeeperGap>[] {
  const restoring = world.gaps.filter(({ what, process, atMs }) => {
    // The end of a subscription with an earlier callback URL is found by an unsubscribe: nothing is restored then.
    return what.cause === 'ended' && lastRequest(world, process, what.username, atMs)?.kind !== 'unsubscribe'
  })
  const dated = restoring.map((gap) => {
    const made = world.service.subscriptions.find(({ id }) => id === gap.what.subscriptionId)
    return { ...gap, atMs: made?.createdAtMs ?? gap.atMs }
  })
  return dated.sort((one, other) => one.atMs - other.atMs)
}

/** How long it takes until every process knows of a delivery, besides an interval: it may be of an id that is news, too. */
const deliveryNewsMs = 3 * 60_000

/** Whether the next restore of a user has to wait, because no process knows of a delivery that came since the last one. */
export function mayWait(world: World, username: string): boolean {
  const { gaps, deliveries, nodes, options, time } = world
  const restored = gaps.findLast(({ what }) => what.username === username && what.cause === 'ended')
  if (restored === undefined) return false
  // For a new process whose clock is behind, the restore is in the future: it waits as if that were now.
  const startedMs = nodes.map(({ process }) => process.wallSkews[0]?.sinceMs ?? 0)
  const waitsSinceMs = Math.max(restored.atMs, ...(haveSameClock(world) ? [] : startedMs))
  if (time.nowMs - waitsSinceMs > longestRestoreWaitMs) return false
  const knownMs = time.nowMs - deliveryNewsMs - 1.1 * (options.keeper?.sweepIntervalMs ?? 0)
  return !deliveries.some(
    (each) => each.username === username && each.atMs > restored.atMs && each.atMs < knownMs,
  )
}

export const longestRestoreWaitMs = 15 * 60_000

/** Whether the process that restored a user could know of an earlier restore, and nothing has come in between. */
function isNextOf(world: World, last: Reported<KeeperGap>, next: Reported<KeeperGap>): boolean {
  if (hasBegunAnew(world, next.what.username, last.atMs, next.atMs)) return false
  if (last.process === next.process) return true
  return haveSameClock(world) && world.store.hasAlwaysKept(last.what.subscriptionId ?? 0)
}

function lastRequest(world: World, process: VirtualProcess, username: string, atMs: number) {
  return world.requests.findLast(
    (each) => each.process === process && each.username === username && each.atMs <= atMs,
  )
}

/** Whether something in between makes a user's next restore the first one: a delivery, or a removal. */
function hasBegunAnew(world: World, username: string, fromMs: number, toMs: number): boolean {
  const isBetween = (atMs: number) => atMs >= fromMs && atMs <= toMs
  return (
    world.deliveries.some((each) => each.username === username && isBetween(each.atMs)) ||
    world.requests.some(
      (each) => each.kind === 'unsubscribe' && each.username === username && isBetween(each.atMs),
    )
  )
}
