/** Every time that a wanted user was really without a subscription lies within a gap that was told. */
import type { KeeperGap } from 'notification-subscriber/keeper'
import type { SentRequest } from '../client.js'
import { isRemovedFor } from '../rosters.js'
import { epochMs } from '../virtual-process.js'
import { type Reported, seconds, type World } from '../world.js'

/** While a user was wanted and had once been subscribed, every time without an active subscription is in a gap. */
export function gapsNotReported(world: World): string[] {
  const problems: string[] = []
  for (const [username, wantedSinceMs] of world.wanted) {
    for (const interval of inactiveTimes(world, username, wantedSinceMs)) {
      if (isLost(world, username, interval)) continue
      const { fromMs, toMs } = interval
      const begunMs = Math.max(fromMs, takenUntilMs(world, username, toMs))
      const told = world.gaps.filter(({ what }) => what.username === username)
      const isReported = told.some((gap) => {
        const { lastProvenAt, restoredAt } = gap.what
        const isEarlyEnough =
          lastProvenAt === undefined || timesOf(world, gap, lastProvenAt).some((ms) => ms <= begunMs)
        return isEarlyEnough && timesOf(world, gap, restoredAt).some((ms) => ms >= Math.floor(toMs))
      })
      if (isReported) continue
      const gaps = told.map((gap) => shown(world, gap)).join(', ') || 'none'
      const when = `from ${seconds(fromMs)} to ${seconds(toMs)}`
      problems.push(`${username} was not subscribed ${when}, and the gaps reported are: ${gaps}`)
    }
  }
  return problems
}

/** A gap that is told as an end has one in it, unless the keeper cannot know which subscription it has. */
export function gapsWithoutEnd(world: World): string[] {
  return world.gaps
    .filter(({ what }) => what.cause === 'ended')
    .filter((gap) => {
      const { username, lastProvenAt, restoredAt } = gap.what
      const fromMs = lastProvenAt === undefined ? [0] : timesOf(world, gap, lastProvenAt)
      const toMs = timesOf(world, gap, restoredAt)
      const isBefore = (ms: number) => toMs.some((end) => Math.ceil(end + 1) >= ms)
      const isAfter = (ms: number) => fromMs.some((begin) => Math.floor(begin) <= ms)
      return !world.service.subscriptions.some(({ id, usernames, createdAtMs, end }) => {
        if (!usernames.includes(username)) return false
        const endedAtMs = end?.atMs ?? Number.POSITIVE_INFINITY
        const isUnprovable = world.knowledge.unprovableIds.has(id) && isBefore(createdAtMs)
        return isAfter(endedAtMs) && (isUnprovable || isBefore(endedAtMs))
      })
    })
    .map((gap) => `${gap.node} told of an end of ${gap.what.username} that was none: ${shown(world, gap)}`)
}

function shown(world: World, gap: Reported<KeeperGap>): string {
  const { lastProvenAt, restoredAt } = gap.what
  const moments = (stamp: number) => timesOf(world, gap, stamp).map(seconds).join(' or ')
  return `${lastProvenAt === undefined ? '?' : moments(lastProvenAt)} to ${moments(restoredAt)}`
}

/**
 * What a stamp can mean: a time when a wall clock of any process showed it, more than once if one was set back; or that
 * time by the clock as it went when the gap was told.
 */
function timesOf(world: World, { process, atMs }: Reported<KeeperGap>, stamp: number): number[] {
  const times = new Set<number>()
  for (const { wallSkews } of world.processes) {
    for (const [index, { sinceMs, skewMs }] of wallSkews.entries()) {
      const untilMs = wallSkews[index + 1]?.sinceMs ?? Number.POSITIVE_INFINITY
      const ms = stamp - epochMs - skewMs
      if (ms >= Math.floor(sinceMs) && ms <= untilMs) times.add(ms)
    }
  }
  const skewWhenTold = process.wallSkews.findLast(({ sinceMs }) => sinceMs <= atMs)?.skewMs ?? 0
  return [...times.add(stamp - epochMs - skewWhenTold)]
}

/** A 409 because of somebody else's subscription looks like a proof: a gap may begin as late as that one ended. */
function takenUntilMs(world: World, username: string, toMs: number): number {
  const ends = world.service.subscriptions
    .filter(({ createdBy, usernames }) => createdBy === 'somebody else' && usernames.includes(username))
    .filter((each) => !world.bystanders.includes(each))
    .map(({ end }) => end?.atMs ?? Number.POSITIVE_INFINITY)
  return Math.max(Number.NEGATIVE_INFINITY, ...ends.filter((ms) => ms <= toMs))
}

/**
 * Whether the process that closed a gap could not know that there had been a subscription before: nobody knew any more,
 * or it began with an empty store, and whoever knew is dead; or an operator ended an unknown one, as a problem asked.
 */
function isLost(world: World, username: string, { idBefore, madeAtMs, toMs, by }: Interval): boolean {
  const wasLost = world.knowledge.lost.some(
    (each) => each.username === username && each.atMs >= madeAtMs && each.atMs <= toMs,
  )
  if (wasLost || by === undefined) return wasLost
  if (world.endedByOperator.has(idBefore)) return true
  if (isUntold(world, by)) return true
  const { knowledge } = world
  if (knowledge.knows(by.process, username, by.atMs) || !knowledge.hasNeverMet(by.process, username))
    return false
  // Whoever knew of the one before learns from the store that there is another one.
  return !knowledge.isIdKnown(idBefore) || knowledge.unprovableIds.has(by.created ?? 0)
}

/**
 * Whether a process restored a user, and died before it could say so, while the store failed or lost the id. Without
 * parameters there is no proof by id, so that the 409 of the next process passes for a proof of the subscription before.
 */
function isUntold({ knowledge }: World, { created, input, process }: SentRequest): boolean {
  if (created === undefined || input?.parameters !== undefined || !process.isDead) return false
  return knowledge.isOrphan(created) || knowledge.lostIds.has(created)
}

interface Interval {
  readonly idBefore: number
  /** When the subscription before was made. */
  readonly madeAtMs: number
  readonly fromMs: number
  readonly toMs: number
  /** The request that ended it. */
  readonly by: SentRequest | undefined
}

function inactiveTimes(world: World, username: string, sinceMs: number): Interval[] {
  const times: Interval[] = []
  let activeUntilMs: number | undefined
  let madeAtMs = 0
  let idBefore = 0
  for (const { id, usernames, createdBy, createdAtMs, end } of world.service.subscriptions) {
    if (createdBy !== 'keeper' || !usernames.includes(username)) continue
    const endedAtMs = end?.atMs ?? Number.POSITIVE_INFINITY
    // Who was removed as the roster said then is subscribed for the first time again.
    const wasRemoved = end !== undefined && wasRemovedByRoster(world, id, username)
    if (wasRemoved && endedAtMs >= (activeUntilMs ?? 0)) activeUntilMs = undefined
    if (endedAtMs <= sinceMs || wasRemoved) continue
    if (activeUntilMs !== undefined && createdAtMs > activeUntilMs) {
      const by = world.requests.find(({ created }) => created === id)
      times.push({ idBefore, madeAtMs, fromMs: activeUntilMs, toMs: createdAtMs, by })
    }
    madeAtMs = createdAtMs
    idBefore = id
    activeUntilMs = Math.max(activeUntilMs ?? 0, endedAtMs)
  }
  return times
}

/** Whether the process that unsubscribed it, or found it gone then, had read last that its user is not wanted. */
function wasRemovedByRoster(world: World, id: number, username: string): boolean {
  return world.requests.some(
    ({ kind, subscriptionId, process, atMs, effect }) =>
      kind === 'unsubscribe' &&
      subscriptionId === id &&
      effect !== undefined &&
      isRemovedFor(world, process, username, atMs),
  )
}
