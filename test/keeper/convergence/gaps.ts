/** Every time in which a wanted user had no subscription, however short, is in a gap that a keeper reported. */
import type { ModelSubscription } from './service.js'
import { epochMs } from './virtual-process.js'
import { minute, seconds, type World } from './world.js'

export function missingGaps(world: World): string[] {
  return [...world.wanted.keys()].flatMap((username) =>
    interruptionsOf(world, username)
      .filter((interruption) => !isAllowed(world, interruption) && !isReported(world, interruption))
      .map(({ ended, next }) => {
        const times = `from ${seconds(ended.endedAtMs)} to ${seconds(next.createdAtMs)}`
        return `no gap covers ${username} ${times} (${ended.id}, then ${next.id})`
      }),
  )
}

interface Interruption {
  readonly username: string
  readonly ended: ModelSubscription & { readonly endedAtMs: number }
  readonly next: ModelSubscription
}

/** A user's subscriptions one after the other; two at a time are no interruption. */
function interruptionsOf(world: World, username: string): Interruption[] {
  const all = world.service.subscriptions.filter(
    ({ usernames, owner }) => owner === 'keeper' && usernames.includes(username),
  )
  return all.flatMap((ended) => {
    const { endedAtMs } = ended
    if (endedAtMs === undefined) return []
    const next = all
      .slice(all.indexOf(ended) + 1)
      .find(({ endedAtMs: end = Number.POSITIVE_INFINITY }) => end > endedAtMs)
    const isOverlap = next === undefined || next.createdAtMs < endedAtMs
    return isOverlap ? [] : [{ username, ended: { ...ended, endedAtMs }, next }]
  })
}

function isReported(world: World, { username, ended, next }: Interruption): boolean {
  return world.gaps.some(({ atMs, what }) => {
    if (what.username !== username || atMs < next.createdAtMs) return false
    // What a stamp means is known only while all clocks show the same. Limits: an id given anew may prove another user's.
    if (world.haveClocksJumped || world.areIdsGivenAnew) return true
    const { lastProvenAt = epochMs, restoredAt } = what
    return lastProvenAt - epochMs <= ended.endedAtMs && restoredAt - epochMs >= Math.floor(next.createdAtMs)
  })
}

/** Whether no keeper could know, or none had to. */
function isAllowed(world: World, { username, ended, next }: Interruption): boolean {
  const { service, store, wanted } = world
  // The user left, and came back later: it is the first subscription of that time.
  if ((wanted.get(username) ?? 0) >= ended.endedAtMs) return true
  if (wasRemovable(world, username, ended.createdAtMs, next.createdAtMs)) return true
  if (ended.endedBy === 'operator') return true
  // Limits: an id given anew to the same user looks like the same subscription.
  if (ended.id === next.id) return true
  // The record of the time before was lost.
  const [fromMs, toMs] = [ended.createdAtMs - 3 * minute, next.createdAtMs + 3 * minute]
  if (store.hasLost({ username, fromMs, toMs })) return true
  // The 409 of another app's subscription looks like a proof.
  return service.subscriptions.some(
    ({ owner, usernames, endedAtMs = Number.POSITIVE_INFINITY }) =>
      owner === 'another app' && usernames.includes(username) && endedAtMs >= ended.endedAtMs,
  )
}

/** Whether a process had a roster without the user at any time between. */
function wasRemovable({ rosterAnswers }: World, username: string, fromMs: number, toMs: number): boolean {
  return rosterAnswers.some(({ atMs, process, names }) => {
    if (names.has(username) || atMs > toMs) return false
    const later = rosterAnswers.find((each) => each.process === process && each.atMs > atMs)
    return (later?.atMs ?? Number.POSITIVE_INFINITY) >= fromMs
  })
}
