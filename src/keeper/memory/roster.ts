/** Reads the roster, rejects implausible ones, and updates users and index. */
import { messageOf } from '../../shared/text.js'
import { withTimeLimit } from '../../shared/time-limit.js'
import type { Problems } from '../reporter.js'
import { delay, rosterTimeoutMs } from '../timing.js'
import type { SubscriptionKeeperOptions } from '../types.js'
import type { IndexOfNames } from './index-of-names.js'
import type { User, Users } from './users.js'

/** With at most this many users, a roster that lacks some is plausible. */
const guardedFrom = 10
/** The users to update before a pause for timers and sockets. */
const usersAtOnce = 2_000

/** The purpose of one reading of the roster. */
export interface RosterRequest {
  /** Whether users may be removed even if the roster lacks many. Default: false. */
  readonly allowRemovals?: boolean
  /** Whether every user is to be removed. Default: false. */
  readonly wantsNone?: boolean
}

export interface RosterParts {
  readonly usernames: SubscriptionKeeperOptions['usernames']
  readonly maxRemovedShare: number
  readonly users: Users
  readonly index: IndexOfNames
  readonly problems: Problems
  /** Called with a user who joined or left the roster. */
  readonly onChange: (user: User) => void
}

export class Roster {
  readonly #parts: RosterParts
  #turn: Promise<unknown> = Promise.resolve()

  constructor(parts: RosterParts) {
    this.#parts = parts
  }

  /** One reading at a time. @throws StoreFailure */
  read(request: RosterRequest = {}): Promise<void> {
    const reading = this.#turn.then(() => this.#read(request))
    this.#turn = reading.catch(() => {})
    return reading
  }

  async #read({ allowRemovals = false, wantsNone = false }: RosterRequest): Promise<void> {
    const { index, users } = this.#parts
    // Before the roster is read: a user that another process adds meanwhile must not look removed.
    const { names: recorded, isUnreadable } = await index.read()
    const asked = wantsNone ? new Set<string>() : await this.ask()
    const isBelieved = wantsNone || (asked !== undefined && this.#isPlausible(asked, recorded, allowRemovals))
    const listed = isBelieved ? asked : undefined
    const missing: string[] = []
    let count = 0
    // An implausible roster adds no users either: otherwise the same roster would next lack a smaller share.
    for (const username of namesOf(recorded, listed, users)) {
      if (++count % usersAtOnce === 0) await delay(0)
      const isIndexed = recorded.has(username) || isUnreadable(username)
      const user = this.#update(username, listed)
      users.setIndexed(user, isIndexed)
      if (user.isWanted && !isIndexed) missing.push(username)
    }
    for (const username of await index.add(missing)) {
      const user = users.get(username)
      if (user !== undefined) users.setIndexed(user, true)
    }
  }

  /** @param listed - without a plausible roster every user stays, and recorded users are kept */
  #update(username: string, listed: ReadonlySet<string> | undefined): User {
    const { onChange, problems, users } = this.#parts
    const known = users.get(username)
    const isWanted = listed?.has(username) ?? known?.isWanted ?? true
    if (!isWanted) problems.removeUser(username)
    if (known === undefined) return users.add(username, isWanted)
    if (known.isWanted !== isWanted) {
      users.setWanted(known, isWanted)
      onChange(known)
    }
    return known
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
    // Copied first: `every` skips the holes of a list, and a list may change.
    const names: unknown[] = Array.isArray(list) ? Array.from(list) : [undefined]
    if (!names.every((name) => typeof name === 'string')) throw new TypeError('it is not a list of names')
    return names
  }

  #isPlausible(listed: ReadonlySet<string>, recorded: ReadonlySet<string>, allowRemovals: boolean): boolean {
    const { maxRemovedShare, problems, users } = this.#parts
    // Users in removal were already missing at an earlier reading, and do not count again.
    const kept = [...recorded].filter((username) => users.get(username)?.isWanted !== false)
    const lackingCount = kept.filter((username) => !listed.has(username)).length
    const isSmall = kept.length <= guardedFrom || lackingCount <= maxRemovedShare * kept.length
    if (listed.size > 0 && (allowRemovals || isSmall)) {
      problems.resolve('ROSTER', 'removals')
      return true
    }
    const message = listed.size === 0 ? emptyMessage : lackingMessage(lackingCount, kept.length)
    problems.begin('ROSTER', message, { about: 'removals' })
    return false
  }
}

/** Each name once, without another list. */
function* namesOf(
  recorded: ReadonlySet<string>,
  listed: ReadonlySet<string> | undefined,
  users: Users,
): Generator<string> {
  yield* recorded
  for (const name of listed ?? []) if (!recorded.has(name)) yield name
  for (const { username } of users.all()) {
    if (!recorded.has(username) && !listed?.has(username)) yield username
  }
}

function unreadMessage(error: unknown): string {
  return `The roster cannot be read: ${messageOf(error)}. Recorded users are kept, and none is added or removed.`
}

const emptyMessage =
  'The roster is empty: no user is removed or added. To end all subscriptions, call `unsubscribeAll`.'

function lackingMessage(lackingCount: number, count: number): string {
  return (
    `The roster lacks ${lackingCount} of ${count} recorded users: no user is removed. ` +
    'If the removals are intended, call `sweep({ allowRemovals: true })` once.'
  )
}
