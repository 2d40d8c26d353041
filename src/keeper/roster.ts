/** Who is wanted: asks the roster, believes it or not, and brings users and members up to date with it. */
import { messageOf } from '../shared/text.js'
import { withTimeLimit } from '../shared/time-limit.js'
import type { Members, Standing } from './members.js'
import type { Problems } from './reporter.js'
import { rosterTimeoutMs } from './timing.js'
import type { SubscriptionKeeperOptions } from './types.js'
import type { Users } from './users.js'

/** A roster that lacks some of so few users is believed. */
const guardedFrom = 10

/** A single user is no reason to ask the roster more often. */
const readAgainMs = 30_000

/** What one reading of the roster is for. */
export interface RosterRequest {
  /** Whether users may be removed even if the roster lacks many. Default: false. */
  readonly allowRemovals?: boolean
  /** Whether nobody is wanted any more. Default: false. */
  readonly wantsNobody?: boolean
}

export interface RosterParts {
  readonly usernames: SubscriptionKeeperOptions['usernames']
  readonly maxRemovedShare: number
  readonly users: Users
  readonly members: Members
  readonly problems: Problems
}

export class Roster {
  readonly #parts: RosterParts
  #readSince = Number.NEGATIVE_INFINITY
  #heardSince = Number.NEGATIVE_INFINITY
  #readsInProgress = 0

  constructor(parts: RosterParts) {
    this.#parts = parts
  }

  /** When the last reading began that was finished; monotonic. */
  get readSince(): number {
    return this.#readSince
  }

  /** When the last reading began that brought names; monotonic. */
  get heardSince(): number {
    return this.#heardSince
  }

  get isBeingRead(): boolean {
    return this.#readsInProgress > 0
  }

  /** @throws StoreUnavailable */
  async read(request: RosterRequest = {}): Promise<void> {
    const since = performance.now()
    this.#readsInProgress++
    try {
      await this.#apply(request, since)
    } finally {
      this.#readsInProgress--
    }
  }

  /** Reads the roster once more, unless that was done a moment ago. @throws StoreUnavailable */
  async readAgain(): Promise<void> {
    if (this.isBeingRead || performance.now() - this.#readSince < readAgainMs) return
    await this.read()
  }

  async #apply({ allowRemovals = false, wantsNobody = false }: RosterRequest, since: number): Promise<void> {
    const { members, problems, users } = this.#parts
    // Before the roster is asked: a user that another process adds meanwhile must not look like one that has left.
    const { standings, isReadable } = await members.readAll()
    const names = wantsNobody ? new Set<string>() : await this.ask()
    // An answer that a later question has overtaken says nothing about users that came since.
    const isOvertaken = since <= this.#readSince && !allowRemovals && !wantsNobody
    if (isOvertaken) return
    this.#readSince = since
    if (names !== undefined) this.#heardSince = since
    const isBelieved = wantsNobody || (names !== undefined && this.#believes(names, standings, allowRemovals))
    const entering = new Map<string, Standing>()
    const usersNames = Array.from(users, ({ username }) => username)
    for (const username of new Set([...standings.keys(), ...(names ?? []), ...usersNames])) {
      const isListed = names?.has(username) === true
      const known = users.get(username)
      const isWanted = isListed || (!isBelieved && (known?.isWanted ?? true))
      const user = known ?? users.add(username, isWanted)
      if (user.isWanted !== isWanted) {
        user.isWanted = isWanted
        user.hasConflict = false
        user.makeDue()
      }
      if (!isWanted) problems.removeUser(username, ['RECEIVER_SUSPECTED', 'ROSTER'])
      const standing = standings.get(username)
      user.isMember = isReadable(username) ? standing !== undefined : undefined
      // Without a roster nobody is added: another process may have removed the user whose name is missing.
      const isNews = standing === undefined ? names !== undefined : standing === 'tentative' && isBelieved
      if (!isWanted || !isNews || !isReadable(username)) continue
      const isMet = (user.record?.subscriptions.length ?? 0) > 0
      entering.set(username, isBelieved || isMet ? 'confirmed' : 'tentative')
    }
    for (const username of await members.enterAll(entering)) {
      const user = users.get(username)
      if (user !== undefined) user.isMember = true
    }
  }

  /** The names of the roster; `undefined` if it cannot be read, which is reported. */
  async ask(): Promise<ReadonlySet<string> | undefined> {
    const { problems } = this.#parts
    try {
      const names = new Set(await this.#call())
      problems.resolve('ROSTER', 'unread')
      return names
    } catch (error) {
      problems.begin('ROSTER', unreadMessage(error), { about: 'unread', error })
      return undefined
    }
  }

  async #call(): Promise<readonly string[]> {
    const { usernames } = this.#parts
    const late = () => new Error(`the roster function took longer than ${rosterTimeoutMs / 1_000} s`)
    const answer = async (): Promise<unknown> => (typeof usernames === 'function' ? usernames() : usernames)
    const list = await withTimeLimit(rosterTimeoutMs, answer(), late)
    // Copied first: `every` passes over the holes of a list, and a list may change.
    const names: unknown[] = Array.isArray(list) ? Array.from(list) : [undefined]
    if (!names.every((name) => typeof name === 'string')) throw new TypeError('it is not a list of names')
    return names
  }

  #believes(
    names: ReadonlySet<string>,
    standings: ReadonlyMap<string, Standing>,
    allowRemovals: boolean,
  ): boolean {
    const { maxRemovedShare, problems, users } = this.#parts
    // Users who are being removed were missing at an earlier reading, and do not count again.
    const recorded = [...standings].filter(
      ([name, standing]) => standing === 'confirmed' && users.get(name)?.isWanted !== false,
    )
    const problem = removalProblem(
      names,
      recorded.map(([name]) => name),
      { allowRemovals, maxRemovedShare },
    )
    if (problem === undefined) problems.resolve('ROSTER', 'removals')
    else problems.begin('ROSTER', problem, { about: 'removals' })
    return problem === undefined
  }
}

function unreadMessage(error: unknown): string {
  return `The roster cannot be read: ${messageOf(error)}. Recorded users are kept, and nobody is added or removed.`
}

/**
 * Why the roster is not believed, or `undefined`.
 *
 * @param recorded - of rosters that were believed: users that a wrong roster added must not outweigh those that it lacks
 */
export function removalProblem(
  names: ReadonlySet<string>,
  recorded: readonly string[],
  { allowRemovals, maxRemovedShare }: { allowRemovals: boolean; maxRemovedShare: number },
): string | undefined {
  if (names.size === 0) {
    return 'The roster is empty: nobody is removed. To end all subscriptions, call `unsubscribeAll`.'
  }
  const missing = recorded.filter((username) => !names.has(username)).length
  const isSmall = recorded.length <= guardedFrom || missing <= maxRemovedShare * recorded.length
  if (allowRemovals || isSmall) return undefined
  return (
    `The roster lacks ${missing} of ${recorded.length} recorded users: nobody is removed. ` +
    'If the removals are intended, call `sweep({ allowRemovals: true })` once.'
  )
}
