/** A problem is reported when it begins, when its users have doubled, and when it is resolved; and never besides. */
import type { KeeperProblem } from 'notification-subscriber/keeper'
import type { VirtualProcess } from '../virtual-process.js'
import { seconds, type World } from '../world.js'
import { currentNodes } from './knowledge.js'

/**
 * The receiver is suspected for 15 minutes after an end was found, an unknown subscription is reported for an hour, and a
 * process that was superseded stays so until it is started anew.
 */
const lasting: readonly string[] = ['RECEIVER_SUSPECTED', 'STRAY', 'SUPERSEDED']

/** Problems that end with a call that is answered. */
const learntByCalls: readonly string[] = ['SERVICE', 'CREDENTIALS']

/** Whether a problem may still be there when the faults have ended. */
export function mayLast({ code }: KeeperProblem): boolean {
  return lasting.includes(code)
}

/**
 * The problems that a living process has reported and not resolved.
 *
 * @param codes - those that have to be resolved by now; without it all that may not last
 */
export function unresolvedProblems(world: World, codes?: readonly string[]): string[] {
  const alive = new Set(world.nodes.map(({ process }) => process.name))
  const current = new Set(currentNodes(world).map(({ process }) => process.name))
  const open = new Map<string, string>()
  for (const { node, what } of world.problems) {
    // Who was superseded sends nothing, and so hears nothing more of the service.
    if (!alive.has(node) || (!current.has(node) && learntByCalls.includes(what.code))) continue
    if (codes === undefined ? mayLast(what) : !codes.includes(what.code)) continue
    const key = `${node} ${nameOf(what)}`
    if (what.resolved) open.delete(key)
    else open.set(key, `${node}: ${what.code} was never resolved: ${what.message}`)
  }
  return [...open.values()]
}

/** What the reports of one problem have in common. Its message may change meanwhile. */
function nameOf(problem: KeeperProblem): string {
  return `${kindOf(problem)} since ${problem.sinceAt}`
}

/** Of most kinds there is one problem at a time. Each key of the store can fail: the message names it. */
function kindOf({ code, message, usernames, subscriptionId }: KeeperProblem): string {
  if (code === 'STORE') return `${code} ${message.replace('Resolved: ', '')}`
  return `${code} ${usernames === undefined ? (subscriptionId ?? '') : 'of users'}`
}

/** A roster that cannot be read stands beside an earlier one that is not believed. */
const mostOfAKind: Readonly<Record<string, number>> = { 'ROSTER ': 2 }

export function needlessReports(world: World): string[] {
  const needless: string[] = []
  const open = new Map<string, { users: number; kind: string }>()
  for (const { node, atMs, what } of world.problems) {
    const { resolved, usernames } = what
    const key = `${node} ${nameOf(what)}`
    const kind = `${node} ${kindOf(what)}`
    const users = usernames?.length ?? 0
    const before = open.get(key)
    const others = [...open].filter(([other, each]) => other !== key && each.kind === kind).length
    const isNews = before === undefined || (before.users > 0 && users >= 2 * before.users)
    const isDue = resolved ? before !== undefined : isNews && others < (mostOfAKind[kindOf(what)] ?? 1)
    if (!isDue) {
      const how = resolved ? 'resolved' : `of ${users} users`
      needless.push(`${node} reported ${kindOf(what)} once more at ${seconds(atMs)}, ${how}`)
    }
    if (resolved) open.delete(key)
    else open.set(key, { users, kind })
  }
  return needless
}

/** With the first end that is found the receiver is suspected. */
export function endsWithoutSuspicion(world: World): string[] {
  return world.gaps
    .filter(({ what }) => what.cause === 'ended')
    .filter(({ process, atMs }) => !wasSuspected(world, process, atMs))
    .map(
      ({ node, atMs, what }) =>
        `${node} found the end of ${what.username} at ${seconds(atMs)} and reported no RECEIVER_SUSPECTED`,
    )
}

function wasSuspected(world: World, process: VirtualProcess, atMs: number): boolean {
  const reported = world.problems.filter(
    (each) => each.process === process && each.atMs <= atMs && each.what.code === 'RECEIVER_SUSPECTED',
  )
  return reported.at(-1)?.what.resolved === false
}
