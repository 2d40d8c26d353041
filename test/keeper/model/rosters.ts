/** What the function says that a keeper asks for the roster, rightly or wrongly, and what a process could know from it. */
import { isKept } from './service.js'
import type { VirtualProcess } from './virtual-process.js'
import type { World } from './world.js'

/** A roster that a process was given. */
export interface RosterRead {
  /** When it was asked for. */
  readonly askedMs: number
  readonly atMs: number
  readonly process: VirtualProcess
  readonly names: ReadonlySet<string>
}

/**
 * - `slow`: an answer takes up to half a minute, so that a later one may overtake it
 * - `halved`: it lacks two of three users, but only if so many are subscribed that no keeper may believe it
 * - `foreign`: so it is, too, but has as many others
 */
export type RosterMode =
  | 'working'
  | 'slow'
  | 'empty'
  | 'throwing'
  | 'hanging'
  | 'garbled'
  | 'halved'
  | 'foreign'

/** A roster that lacks most of more than ten users is not believed; some of those subscribed may be removed just now. */
const surelyGuarded = 13

/** What a process is answered that asks for the roster. */
export function askRoster(world: World, process: VirtualProcess): Promise<readonly string[]> {
  const names = [...world.wanted.keys(), ...(world.invalidNames.size > 0 ? ['with,comma'] : [])]
  const mostMs = world.rosterMode === 'slow' ? 29_000 : 50
  const answer = <T>(list: () => T) =>
    process.operate(() => process.after(world.random() * mostMs, list), never)
  const askedMs = world.time.nowMs
  world.rosterAskedMs.set(process, askedMs)
  const read = (given: readonly string[]) => {
    world.rostersRead.push({ askedMs, atMs: world.time.nowMs, process, names: new Set(given) })
    return given
  }
  switch (world.rosterMode) {
    case 'working':
    case 'slow':
      return answer(() => read(names))
    case 'empty':
      return answer(() => [])
    case 'halved':
    case 'foreign': {
      const subscribed = names.filter((name) => world.service.activeFor(name).some(isKept))
      if (subscribed.length < surelyGuarded) return answer(() => read(names))
      const isForeign = world.rosterMode === 'foreign'
      const wrong = isForeign ? names.map((_, index) => `stranger${index}`) : names.slice(0, names.length / 3)
      return answer(() => wrong)
    }
    case 'throwing':
      return answer(() => {
        throw new Error('The roster cannot be read.')
      })
    case 'hanging':
      return never
    case 'garbled':
      return answer(() => '<html>' as unknown as string[])
  }
}

/**
 * Whether a process could know at a time that a user is no longer wanted, by the roster that it had read last. A roster
 * that was asked before the user was wanted for the first time says nothing about the user.
 */
export function isRemovedFor(
  world: World,
  process: VirtualProcess,
  username: string,
  atMs = world.time.nowMs,
): boolean {
  const read = world.rostersRead.filter((each) => each.process === process && each.atMs <= atMs)
  const last = read.sort((a, b) => a.askedMs - b.askedMs).at(-1)
  if (last === undefined || last.names.has(username)) return false
  return (world.firstWanted.get(username) ?? 0) <= last.askedMs
}

const never = new Promise<never>(() => {})
