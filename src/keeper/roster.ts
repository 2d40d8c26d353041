/** Reads the roster, rejects implausible ones, and updates users and index. */
import { backoffMs, withTimeLimit } from '../shared/waits.js'
import type { IndexOfNames } from './keeper-store.js'
import type { ResolvedOptions } from './options.js'
import { type Problems, reasonOf } from './reporter.js'
import { day, delay, longAgo, lookMs, now, storeTimeoutMs, withPauses } from './timing.js'
import type { User, Users } from './users.js'

const rosterTimeoutMs = 30_000
/** A roster of at most this many users may lack any of them. */
const unguardedUsers = 10

export class RosterReader {
  #lastReading: Promise<unknown> = Promise.resolve()
  /** The reading that waits for the last one to end. Calls meanwhile share it. */
  #nextReading: Promise<void> | undefined
  /** When the last reading began, and when the next one is due. */
  #readSince = longAgo
  #dueFrom = longAgo
  /** How often the roster could not be read, in a row. */
  #failures = 0
  /** Sizes of the rosters of the last day that were believed. */
  #sizes: { readonly since: number; readonly size: number }[] = []

  constructor(
    private readonly options: ResolvedOptions,
    private readonly index: IndexOfNames,
    private readonly users: Users,
    private readonly problems: Problems,
  ) {}

  get isDue(): boolean {
    const soonFrom = this.#readSince + Math.min(lookMs, this.options.sweepIntervalMs)
    return now() >= (this.users.isRosterOld ? Math.min(soonFrom, this.#dueFrom) : this.#dueFrom)
  }

  postpone(ms: number): void {
    this.#dueFrom = now() + ms
  }

  /**
   * One reading at a time. A roster that cannot be read is reported, and read again soon.
   *
   * @param wantsNone - whether every user is to be removed
   * @throws StoreFailure
   */
  read(wantsNone = false): Promise<void> {
    if (this.#nextReading !== undefined && !wantsNone) return this.#nextReading
    const { sweepIntervalMs } = this.options
    this.#readSince = now()
    this.users.isRosterOld = false
    this.postpone(sweepIntervalMs)
    const reading = this.#lastReading.then(() => {
      if (this.#nextReading === reading) this.#nextReading = undefined
      return this.#read(wantsNone)
    })
    this.#nextReading = wantsNone ? undefined : reading
    this.#lastReading = reading.then(
      () => {
        if (this.#failures > 0)
          this.postpone(backoffMs(this.#failures, { firstMs: storeTimeoutMs, maxMs: sweepIntervalMs }))
      },
      () => this.postpone(Math.min(storeTimeoutMs, sweepIntervalMs)),
    )
    return reading
  }

  async #read(wantsNone: boolean): Promise<void> {
    // Before the roster is read: a user that another process adds meanwhile must not look removed.
    const recorded = await this.index.read()
    await delay(0)
    const asked = wantsNone ? new Set<string>() : await this.ask()
    const isBelieved = wantsNone || (asked && (await this.#isPlausible(asked, recorded)))
    // Without a plausible roster no user joins or leaves: if some left, the same roster would lack fewer the next time.
    const listed = isBelieved ? asked : undefined
    for await (const username of withPauses([...recorded, ...(listed ?? [])])) {
      // Without a plausible roster only a record shows that a user is wanted.
      if (this.users.all.has(username) || (listed === undefined && !(await this.users.hasRecord(username))))
        continue
      this.users.add(username, listed?.has(username) ?? true)
    }
    const missing: User[] = []
    for await (const user of withPauses(this.users.all.values())) {
      const { username } = user
      this.users.setListed(user, listed?.has(username) ?? user.isWanted, recorded.has(username))
      if (!user.isWanted) this.problems.removeUser(username)
      else if (!user.isIndexed) missing.push(user)
    }
    await this.users.addToIndex(missing)
  }

  /** The names of the roster; `undefined` if it cannot be read, which is reported. */
  async ask(): Promise<ReadonlySet<string> | undefined> {
    const { usernames } = this.options
    const answer = async (): Promise<unknown> => (typeof usernames === 'function' ? usernames() : usernames)
    try {
      const list = await withTimeLimit(rosterTimeoutMs, answer)
      if (!Array.isArray(list)) throw new TypeError(`it is ${kindOf(list)}, and no list`)
      // Copied first: `every` skips the holes of a list, and a list may change.
      const names: unknown[] = Array.from(list)
      const isName = (name: unknown) => typeof name === 'string'
      if (!names.every(isName))
        throw new TypeError(`it has ${kindOf(names.find((each) => !isName(each)))}, and not only names`)
      this.#failures = 0
      return new Set(names)
    } catch (error) {
      this.#failures++
      this.problems.begin('ROSTER', unreadMessage(error), { error })
      return undefined
    }
  }

  async #isPlausible(listed: ReadonlySet<string>, recorded: ReadonlySet<string>): Promise<boolean> {
    const { maxRemovedShare } = this.options
    let keptCount = 0
    let lackingCount = 0
    for await (const username of withPauses(recorded)) {
      // Users in removal were already missing at an earlier reading, and do not count again.
      if (this.users.all.get(username)?.isWanted === false) continue
      keptCount++
      if (!listed.has(username)) lackingCount++
    }
    // A roster that shrinks step by step is compared with the largest of the last day.
    this.#sizes = this.#sizes.filter(({ since }) => now() - since < day)
    const largest = Math.max(keptCount, ...this.#sizes.map(({ size }) => size))
    const shrunkBy = Math.max(lackingCount, largest - listed.size)
    const isLossAllowed =
      lackingCount === 0 || largest <= unguardedUsers || shrunkBy <= maxRemovedShare * largest
    if (listed.size > 0 && isLossAllowed) {
      this.#sizes.push({ since: now(), size: listed.size })
      this.problems.resolve('ROSTER')
      return true
    }
    const message = listed.size === 0 ? emptyMessage : lackingMessage(shrunkBy, largest)
    this.problems.begin('ROSTER', message)
    return false
  }
}

function kindOf(value: unknown): string {
  return value === undefined || value === null ? String(value) : `a value of type ${typeof value}`
}

const unreadMessage = (error: unknown) =>
  `The roster cannot be read: ${reasonOf(error)}. Recorded users are kept, and none is added or removed.`
const emptyMessage =
  'The roster is empty: no user is removed or added. To end all subscriptions, call `unsubscribeAll`.'
const lackingMessage = (lackingCount: number, count: number) =>
  `The roster lacks ${lackingCount} of ${count} recorded users: no user is removed. ` +
  'If the removals are intended, start with `maxRemovedShare: 1` once.'
