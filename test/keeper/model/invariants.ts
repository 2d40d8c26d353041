/** What must be true once the faults are over: each function lists what is not. */
import type { KeeperGap, KeeperProblem } from 'notification-subscriber'
import { isKept, type ModelSubscription, sameSet } from './service.js'
import type { VirtualProcess } from './virtual-process.js'
import { type Node, seconds, type Told, type World } from './world.js'

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
  for (const each of leftOvers(world).filter(
    ({ usernames }) => !usernames.some((name) => world.wanted.has(name)),
  )) {
    problems.push(`${each.usernames} is not wanted and has subscription ${each.id}`)
  }
  for (const { id, createdBy, end } of world.service.subscriptions) {
    if (createdBy === 'somebody else' && end?.by === 'keeper') {
      problems.push(`subscription ${id} of somebody else was ${end.reason}`)
    }
  }
  for (const { id, parameters: present } of world.bystanders) {
    if (present.token !== 'of somebody else' || Object.keys(present).length !== 1)
      problems.push(`the parameters of subscription ${id} of somebody else were changed`)
  }
  return problems
}

/** What keepers have made and must be able to end: what nobody knows of any more shows as a stray delivery at best. */
export function leftOvers(world: World): ModelSubscription[] {
  const isWanted = ({ usernames }: ModelSubscription) => usernames.some((name) => world.wanted.has(name))
  return world.service.active().filter((each) => {
    const isLost = !isWanted(each) && world.memory.isLost(each)
    const isIdLost = world.configuration.parameters === undefined && world.memory.lostIds.has(each.id)
    return isKept(each) && !isLost && !isIdLost
  })
}

/**
 * An id that a store that failed never held is lost when another process takes over, and one that a store has lost when
 * nobody lives who knew it: one who knows the id before it takes that for the present one. Without parameters there is no proof
 * by id, so the 409 of that process passes for one of the earlier id. Its
 * deliveries are strays then, and it is ended all the same: see `checkRestart`.
 */
export function isUnknowable(world: World, id: number | undefined): boolean {
  const { configuration, memory } = world
  if (configuration.parameters !== undefined || id === undefined) return false
  return memory.isOrphan(id) || memory.lostIds.has(id)
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
  const isAll = active + unproven === world.wanted.size && unproven <= unprovable(world).length
  if (!isAll || conflict + failing > 0) {
    problems.push(`the keeper counts ${JSON.stringify(status.counts)} for ${world.wanted.size} users`)
  }
  return problems
}

/** Whom a plain create, the only proof without parameters, might restore once more before the time has come. */
function unprovable({ configuration, deliveries, gaps, time, wanted }: World): string[] {
  if (configuration.parameters !== undefined) return []
  return [...wanted.keys()].filter((username) => {
    const restored = gaps.findLast(({ what }) => what.username === username && what.cause === 'ended')
    if (restored === undefined || time.nowMs - restored.atMs > 15 * 60_000) return false
    return !deliveries.some((each) => each.username === username && each.atMs > restored.atMs)
  })
}

/**
 * The receiver is suspected for 15 minutes after an end was found, a stray delivery told of for an hour, and a process that
 * was superseded stays so until it is started anew.
 */
const outlastFaults: readonly string[] = ['RECEIVER_SUSPECTED', 'STRAY', 'SUPERSEDED']

function mayOutlastFaults(code: string): boolean {
  return outlastFaults.includes(code)
}

/**
 * Every trouble that a living process reported is reported as over.
 *
 * @param codes - those that have to be over by now; without it all that do not outlast the faults
 */
export function unresolvedProblems(world: World, codes?: readonly string[]): string[] {
  const alive = new Set(world.nodes.map(({ process }) => process.name))
  const open = new Map<string, string>()
  for (const { node, what } of world.problems) {
    if (!alive.has(node)) continue
    if (codes === undefined ? mayOutlastFaults(what.code) : !codes.includes(what.code)) continue
    const key = `${node} ${troubleOf(what)}`
    if (what.resolved) open.delete(key)
    else open.set(key, `${node}: ${what.code} was never over: ${what.message}`)
  }
  return [...open.values()]
}

/** Told by what its begin and its end have in common. Its message may change meanwhile. */
function troubleOf(problem: KeeperProblem): string {
  return `${kindOf(problem)} since ${problem.sinceAt}`
}

/** Of a kind there is one at a time. */
function kindOf({ code, usernames, subscriptionId }: KeeperProblem): string {
  return `${code} ${usernames === undefined ? (subscriptionId ?? '') : 'of users'}`
}

/** A roster that cannot be read stands beside an earlier one that is not believed. */
const mostOfAKind: Readonly<Record<string, number>> = { 'ROSTER ': 2 }

/** One trouble, one report: when it begins, when its users have doubled, and when it is over. */
export function reportsTooMany(world: World): string[] {
  const problems: string[] = []
  const open = new Map<string, { users: number; kind: string }>()
  for (const { node, atMs, what } of world.problems) {
    const { resolved, usernames } = what
    const key = `${node} ${troubleOf(what)}`
    const kind = `${node} ${kindOf(what)}`
    const users = usernames?.length ?? 0
    const before = open.get(key)
    const others = [...open].filter(([other, each]) => other !== key && each.kind === kind).length
    const hasDoubled = before === undefined || (before.users > 0 && users >= 2 * before.users)
    const isDue = resolved ? before !== undefined : hasDoubled && others < (mostOfAKind[kindOf(what)] ?? 1)
    if (!isDue) {
      const how = resolved ? 'over' : `of ${users} users`
      problems.push(`${node} told ${kindOf(what)} once more at ${seconds(atMs)}, ${how}`)
    }
    if (resolved) open.delete(key)
    else open.set(key, { users, kind })
  }
  return problems
}

/** With the first end that is found the receiver is suspected. */
export function endsWithoutSuspicion(world: World): string[] {
  return world.gaps
    .filter(({ what }) => what.cause === 'ended')
    .filter(({ process, atMs }) => !wasSuspected(world, process, atMs))
    .map(
      ({ node, atMs, what }) =>
        `${node} found the end of ${what.username} at ${seconds(atMs)} and told no RECEIVER_SUSPECTED`,
    )
}

function wasSuspected(world: World, process: VirtualProcess, atMs: number): boolean {
  const told = world.problems.filter(
    (each) => each.process === process && each.atMs <= atMs && each.what.code === 'RECEIVER_SUSPECTED',
  )
  return told.at(-1)?.what.resolved === false
}

/** A restore that was told. */
interface Restored {
  readonly count: number
  readonly told: Told<KeeperGap>
}

/**
 * Restores of one user between two deliveries grow rarer: after the first a minute, then 2, 4, 8, 15 minutes. So they do
 * in each process, and over all that find in the store what the one before has done.
 */
export function restoresTooSoon(world: World): string[] {
  const problems: string[] = []
  const chains = new Map<string, Restored>()
  for (const told of world.gaps) {
    const { what, atMs, node, process } = told
    if (what.cause !== 'ended') continue
    // The end of one for an earlier callback URL is found by ending it: nothing is restored then.
    if (lastRequest(world, process, what.username, atMs)?.kind === 'unsubscribe') continue
    for (const key of [`${node} ${what.username}`, `anybody ${what.username}`]) {
      const last = chains.get(key)
      const isNext = last !== undefined && isNextOf(world, last.told, told)
      const count = isNext ? last.count + 1 : 1
      chains.set(key, { count, told })
      const leastMs = Math.min(15, 2 ** (count - 2)) * 60_000
      if (isNext && atMs - last.told.atMs < leastMs) {
        const before = `${last.told.node} restored ${what.username} at ${seconds(last.told.atMs)}`
        problems.push(`${before} and, as number ${count}, ${node} at ${seconds(atMs)}`)
      }
    }
  }
  return problems
}

/** Whether the process that restored a user could know of an earlier restore, and nothing has come in between. */
function isNextOf(world: World, last: Told<KeeperGap>, next: Told<KeeperGap>): boolean {
  if (wasMetBetween(world, next.what.username, last.atMs, next.atMs)) return false
  if (last.process === next.process) return true
  const { subscriptionId = 0 } = last.what
  const haveSameClock = world.processes.every(({ wallSkews }) => wallSkews.length === 1)
  return haveSameClock && world.store.hasAlwaysKept(subscriptionId)
}

function lastRequest(world: World, process: VirtualProcess, username: string, atMs: number) {
  return world.requests.findLast(
    (each) => each.process === process && each.username === username && each.atMs <= atMs,
  )
}

/** Whether something in between has made a user's next restore the first one: a delivery, or a removal. */
function wasMetBetween(world: World, username: string, fromMs: number, toMs: number): boolean {
  const isBetween = (atMs: number) => atMs >= fromMs && atMs <= toMs
  return (
    world.deliveries.some((each) => each.username === username && isBetween(each.atMs)) ||
    world.requests.some(
      (each) => each.kind === 'unsubscribe' && each.username === username && isBetween(each.atMs),
    )
  )
}
