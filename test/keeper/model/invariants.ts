/** What must be true once the faults are over: each function lists what is not. */
import { rosterAgeMs } from './request-rules.js'
import { sameSet } from './service.js'
import { type Node, seconds, type World } from './world.js'

/** At the service there is what is wanted, and nothing else that a keeper made. */
export function problemsAtTheService(world: World): string[] {
  const problems: string[] = []
  const { callbackUrl, notificationTypes, parameters } = world.configuration
  for (const username of world.wanted.keys()) {
    const active = world.service.activeFor(username).filter((each) => each.createdBy === 'keeper')
    const [subscription] = active
    if (active.length !== 1 || subscription === undefined) {
      problems.push(`${username} has ${active.length} subscriptions`)
      continue
    }
    if (subscription.callbackUrl !== callbackUrl) problems.push(`${username} is subscribed to another URL`)
    if (!sameSet(subscription.notificationTypes, notificationTypes)) {
      problems.push(`${username} is subscribed to ${subscription.notificationTypes}`)
    }
    const names = new Set([...Object.keys(subscription.parameters), ...Object.keys(parameters ?? {})])
    for (const name of names) {
      const value = subscription.parameters[name]
      if (value !== parameters?.[name]) problems.push(`${username} has ${value} as the parameter ${name}`)
    }
  }
  for (const { id, usernames, createdBy, end } of world.service.subscriptions) {
    const [username = ''] = usernames
    if (createdBy === 'keeper' && end === undefined && !world.wanted.has(username)) {
      problems.push(`${username} is not wanted and has subscription ${id}`)
    }
    if (createdBy === 'somebody else' && end?.by === 'keeper') {
      problems.push(`subscription ${id} of somebody else was ${end.reason}`)
    }
  }
  return problems
}

/**
 * An id that a store that failed never held is lost when another process takes over. Without parameters there is no proof
 * by id, so the 409 of that process passes for one of the earlier id. Its
 * deliveries are strays then, and it is ended all the same: see `checkRestart`.
 */
export function isUnknowable({ configuration, store }: World, id: number | undefined): boolean {
  return configuration.parameters === undefined && id !== undefined && store.hasMissed(id)
}

/** A keeper knows what is at the service, and sees no trouble. */
export function problemsInTheKeeper(world: World, { keeper, process }: Node): string[] {
  const problems: string[] = []
  for (const username of world.wanted.keys()) {
    const real = world.service.activeFor(username).find((each) => world.isAsConfigured(each))?.id
    const known = process.run(() => keeper.subscription(username))
    if (known?.subscriptionId !== real && !isUnknowable(world, real)) {
      problems.push(`${username} has subscription ${real}, and the keeper knows ${known?.subscriptionId}`)
    }
  }
  const status = process.run(() => keeper.status())
  for (const problem of status.problems.filter(({ code }) => !mayOutlastFaults(code)))
    problems.push(`the keeper still sees ${problem.code}: ${problem.message}`)
  const { active, unproven, conflict, failing } = status.counts
  if (active + unproven !== world.wanted.size || conflict + failing > 0) {
    problems.push(`the keeper counts ${JSON.stringify(status.counts)} for ${world.wanted.size} users`)
  }
  return problems
}

/**
 * The receiver is suspected for 15 minutes after an end was found, a stray delivery told of for an hour, and a process that
 * was superseded stays so until it is started anew.
 */
function mayOutlastFaults(code: string): boolean {
  return code === 'RECEIVER_SUSPECTED' || code === 'STRAY' || code === 'SUPERSEDED'
}

/** Every trouble that a living process reported is reported as over. */
export function unresolvedProblems(world: World): string[] {
  const alive = new Set(world.nodes.map(({ process }) => process.name))
  const open = new Map<string, string>()
  for (const { node, what } of world.problems) {
    if (!alive.has(node)) continue
    if (mayOutlastFaults(what.code)) continue
    const key = `${node} ${what.code} ${what.subscriptionId ?? ''}`
    if (what.resolved) open.delete(key)
    else open.set(key, `${node}: ${what.code} was never over: ${what.message}`)
  }
  return [...open.values()]
}

/** While a user was wanted and had once been subscribed, every time without an active subscription is in a gap. */
export function gapsNotReported(world: World): string[] {
  const problems: string[] = []
  for (const [username, wantedSinceMs] of world.wanted) {
    for (const { fromMs, toMs } of inactiveTimes(world, username, wantedSinceMs)) {
      if (wasTaken(world, username, fromMs, toMs)) continue
      const isReported = world.gaps.some(({ what, atMs, wallSkewMs }) => {
        if (what.username !== username || atMs < toMs) return false
        if (world.hasClockJumped) return true
        const lastProvenMs = what.lastProvenAt === undefined ? 0 : trueMs(what.lastProvenAt, wallSkewMs)
        return lastProvenMs <= fromMs && trueMs(what.restoredAt, wallSkewMs) >= Math.floor(toMs)
      })
      if (!isReported) {
        const told = world.gaps.filter(({ what }) => what.username === username)
        const gaps = told.map(({ what, wallSkewMs }) => {
          const from = what.lastProvenAt === undefined ? '?' : seconds(trueMs(what.lastProvenAt, wallSkewMs))
          return `${from} to ${seconds(trueMs(what.restoredAt, wallSkewMs))}`
        })
        problems.push(
          `${username} was not subscribed from ${seconds(fromMs)} to ${seconds(toMs)}, and the gaps reported are: ${gaps.join(', ') || 'none'}`,
        )
      }
    }
  }
  return problems
}

/** A 409 because of somebody else's subscription looks like a proof: then a gap begins too late. */
function wasTaken(world: World, username: string, fromMs: number, toMs: number): boolean {
  return world.service.subscriptions.some(
    ({ createdBy, usernames, createdAtMs, end }) =>
      createdBy === 'somebody else' &&
      usernames.includes(username) &&
      createdAtMs <= toMs &&
      (end?.atMs ?? Number.POSITIVE_INFINITY) >= fromMs,
  )
}

interface Interval {
  readonly fromMs: number
  readonly toMs: number
}

function inactiveTimes(world: World, username: string, sinceMs: number): Interval[] {
  const times: Interval[] = []
  let activeUntilMs: number | undefined
  for (const { id, usernames, createdBy, createdAtMs, end } of world.service.subscriptions) {
    if (createdBy !== 'keeper' || !usernames.includes(username)) continue
    const endedAtMs = end?.atMs ?? Number.POSITIVE_INFINITY
    // A pass may act on a roster of some minutes ago: who was removed by it is subscribed for the first time again.
    const isOfOldRoster = endedAtMs <= sinceMs + rosterAgeMs && !isOfRosterSince(world, id, username, sinceMs)
    const wasRemoved = isOfOldRoster && end?.reason === 'unsubscribed'
    if (endedAtMs <= sinceMs || wasRemoved) continue
    if (activeUntilMs !== undefined && createdAtMs > activeUntilMs) {
      times.push({ fromMs: activeUntilMs, toMs: createdAtMs })
    }
    activeUntilMs = Math.max(activeUntilMs ?? 0, endedAtMs)
  }
  return times
}

/**
 * Whether the process that created a subscription had read since a time that its user is wanted. If not, it may have
 * created it only to come by the id of one to be ended: that of an earlier create without an answer.
 */
function isOfRosterSince(world: World, id: number, username: string, sinceMs: number): boolean {
  const request = world.requests.find(({ created }) => created === id)
  if (request === undefined) return false
  return world.rostersRead.some(
    ({ atMs, process, names }) =>
      process === request.process && atMs >= sinceMs && atMs <= request.atMs && names.includes(username),
  )
}

const epochMs = Date.UTC(2026, 0, 1)

function trueMs(wallMs: number, wallSkewMs: number): number {
  return wallMs - epochMs - wallSkewMs
}
