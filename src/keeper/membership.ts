/** Who of the recorded users is wanted: what the roster says, as far as it is believed. */
import type { Problems } from './problems.js'
import type { RecordStore } from './record-store.js'
import { removalProblem } from './roster.js'
import { newUser, type UserRecord } from './user-record.js'

export interface MembershipParts {
  readonly records: RecordStore
  readonly problems: Problems
  readonly maxRemovedShare: number
}

export class Membership {
  readonly #parts: MembershipParts
  /** Users that were recorded when the roster was believed last, while it is not. */
  #believedUsers: number | undefined

  constructor(parts: MembershipParts) {
    this.#parts = parts
  }

  /** Notes who is wanted and who no longer. */
  applyRoster(roster: ReadonlySet<string>, allowRemovals: boolean): void {
    const { maxRemovedShare, problems, records } = this.#parts
    const { users } = records
    const recorded = [...users.values()].filter((record) => !record.isRemoved).map(({ username }) => username)
    const believed = this.#believedUsers ?? recorded.length
    const problem = removalProblem(roster, recorded, { maxRemovedShare, allowRemovals, believed })
    this.#believedUsers = problem === undefined ? undefined : believed
    if (problem === undefined) problems.end('ROSTER')
    else problems.begin('ROSTER', problem)
    const now = performance.now()
    for (const username of roster) {
      const known = users.get(username)
      if (known === undefined) {
        const record = newUser(username)
        record.dueAt = now
        users.set(username, record)
      } else if (known.isRemoved) this.#setRemoved(known, false, now)
    }
    if (problem !== undefined) return
    for (const record of users.values()) {
      if (!record.isRemoved && !roster.has(record.username)) this.#setRemoved(record, true, now)
    }
  }

  /** Nobody is wanted any more. */
  removeAll(): void {
    const now = performance.now()
    for (const record of this.#parts.records.users.values()) this.#setRemoved(record, true, now)
  }

  #setRemoved(record: UserRecord, isRemoved: boolean, now: number): void {
    record.isRemoved = isRemoved
    record.isQuiet = false
    record.dueAt = now
    record.hasConflict = false
    this.#parts.problems.removeUser('CONFLICT', record.username)
    this.#parts.problems.removeUser('RECEIVER_SUSPECTED', record.username)
    if (record.chunk !== undefined) record.chunk.isStale = true
  }
}
