/** What the roster says, and whether it is believed. */
import type { Roster } from './keeper-types.js'
import { inTime, rosterTimeoutMs } from './timing.js'

/** A roster that lacks some of so few users is believed. */
const guardedFrom = 10

/** @throws what the roster function throws, or an error that says what it returned instead of names */
export async function namesOf(roster: Roster): Promise<ReadonlySet<string>> {
  const late = () => new Error(`The roster function took longer than ${rosterTimeoutMs / 1_000} s.`)
  const names = typeof roster === 'function' ? await inTime(rosterTimeoutMs, roster, late) : roster
  if (!Array.isArray(names) || !names.every((name) => typeof name === 'string')) {
    throw new TypeError('The roster function did not return a list of names.')
  }
  return new Set(names)
}

/**
 * Why nobody may be removed, or `undefined`.
 *
 * @param recorded - users of rosters that were believed: those whom a wrong one adds must not outweigh those whom it
 * lacks
 */
export function removalProblem(
  roster: ReadonlySet<string>,
  recorded: readonly { readonly username: string }[],
  { maxRemovedShare, allowRemovals }: { maxRemovedShare: number; allowRemovals: boolean },
): string | undefined {
  if (roster.size === 0) {
    return 'The roster is empty: nobody is removed. To end all subscriptions, call `unsubscribeAll`.'
  }
  const missing = recorded.filter(({ username }) => !roster.has(username)).length
  const isSmall = recorded.length <= guardedFrom || missing <= maxRemovedShare * recorded.length
  if (allowRemovals || isSmall) return undefined
  return (
    `The roster lacks ${missing} of ${recorded.length} recorded users: nobody is removed. ` +
    'If that is right, call `sweep({ allowRemovals: true })` once.'
  )
}
