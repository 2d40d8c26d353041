/** Who is wanted: asks the roster, and notes in the records what it says, as far as it is believed. */
import { markStale } from './chunk.js'
import { leftoversOfUnknown, putInDoubt, unknownUsers } from './handover.js'
import type { Roster } from './keeper-types.js'
import type { Problems } from './problems.js'
import type { RecordStore } from './record-store.js'
import { namesOf, removalProblem } from './roster.js'
import { newUser, type UserRecord } from './user-record.js'

export interface MembershipParts {
  readonly roster: Roster
  readonly records: RecordStore
  readonly problems: Problems
  readonly maxRemovedShare: number
}

/** What the roster says. */
export interface RosterAnswer {
  readonly names: ReadonlySet<string>
  /** Users without a record who were left over by other processes when the roster was asked: it tells what they are. */
  readonly unknownBefore: ReadonlySet<string>
}

/** A roster that cannot be read stands beside one that is not believed. */
const unread = 'unread'

export class Membership {
  readonly #parts: MembershipParts
  /** How often the roster was asked, and the latest question that was answered. */
  #questions = 0
  #lastAnswered = 0

  constructor(parts: MembershipParts) {
    this.#parts = parts
  }

  /** The roster, or `undefined` if it cannot be read: a `ROSTER` problem, unless another process tells of that. */
  async askRoster({ isTold = true } = {}): Promise<RosterAnswer | undefined> {
    const { problems, records, roster } = this.#parts
    const unknownBefore = unknownUsers(records)
    this.#questions++
    const question = this.#questions
    try {
      const names = await namesOf(roster)
      // A later question was answered meanwhile: what this answer says may be older.
      if (question < this.#lastAnswered) return this.askRoster({ isTold })
      this.#lastAnswered = question
      if (isTold) problems.end('ROSTER', unread)
      return { names, unknownBefore }
    } catch (error) {
      if (!isTold) return undefined
      const message = 'The roster cannot be read: those who are recorded are kept.'
      problems.begin('ROSTER', message, { about: unread, error })
      return undefined
    }
  }

  /** Notes who is wanted and who no longer. */
  applyRoster({ names, unknownBefore }: RosterAnswer, allowRemovals: boolean): void {
    const { maxRemovedShare, problems, records } = this.#parts
    const { users } = records
    const recorded = [...users.values()].filter((record) => !record.isRemoved && !record.isTentative)
    const problem = removalProblem(names, recorded, { maxRemovedShare, allowRemovals })
    if (problem === undefined) {
      problems.end('ROSTER')
      this.#setWanted(names, unknownBefore)
      for (const record of users.values()) {
        if (!record.isRemoved && !names.has(record.username)) this.#setRemoved(record, true)
        this.#setTentative(record, false)
      }
    } else {
      problems.begin('ROSTER', problem)
      const recordedBefore = new Set(recorded)
      this.#setWanted(names, new Set())
      for (const record of users.values()) {
        if (!record.isRemoved && !recordedBefore.has(record)) this.#setTentative(record, true)
      }
    }
    // Some may have been forgotten with their trouble: the records were read anew, and the roster lacks them by now.
    problems.keepUsers((username) => users.has(username))
  }

  /** Nobody is wanted any more. */
  removeAll(): void {
    const { records } = this.#parts
    this.#setWanted(new Set(), unknownUsers(records))
    for (const record of records.users.values()) this.#setRemoved(record, true)
  }

  /** @param unknown - whom others have left over: whoever is not wanted is to be ended, too */
  #setWanted(names: ReadonlySet<string>, unknown: ReadonlySet<string>): void {
    const { records } = this.#parts
    const leftovers = leftoversOfUnknown(records)
    const now = performance.now()
    for (const username of new Set([...names, ...unknown])) {
      const known = records.users.get(username)
      if (known === undefined) {
        const record = newUser(username)
        record.isRemoved = !names.has(username)
        record.dueFrom = now
        records.users.set(username, record)
      } else if (known.isRemoved && names.has(username)) this.#setRemoved(known, false)
    }
    // Before the first visit, which would take such a user for a new one, and tell no gap.
    for (const leftover of leftovers) putInDoubt(records, leftover)
  }

  #setTentative(record: UserRecord, isTentative: boolean): void {
    if (record.isTentative === isTentative) return
    record.isTentative = isTentative
    markStale(record)
  }

  #setRemoved(record: UserRecord, isRemoved: boolean): void {
    record.isRemoved = isRemoved
    record.isQuiet = false
    record.dueFrom = performance.now()
    record.hasConflict = false
    this.#parts.problems.removeUser('CONFLICT', record.username)
    this.#parts.problems.removeUser('RECEIVER_SUSPECTED', record.username)
    markStale(record)
  }
}
