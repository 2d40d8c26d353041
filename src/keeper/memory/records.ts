/** Reads and writes a user's record. Restores records that the store has lost from memory. */
import type { Problems } from '../reporter.js'
import { parseRecord, type UserRecord } from '../rules/record.js'
import { day } from '../timing.js'
import { type Configuration, lossMessage } from './configuration.js'
import { goneMark, type KeeperStore } from './keeper-store.js'
import type { User, Users } from './users.js'

/** Another process has written the record first. */
export class Collision extends Error {}

export interface RecordsParts {
  readonly store: KeeperStore
  readonly users: Users
  readonly configuration: Configuration
  readonly problems: Problems
  /** Called when a first record is missing: others may be, too. */
  readonly onLoss: () => void
}

export class Records {
  readonly #parts: RecordsParts

  constructor(parts: RecordsParts) {
    this.#parts = parts
  }

  /** Reads the record; writes it back if the store has lost it. @throws StoreFailure, KeyFailure, Collision */
  async read(user: User): Promise<UserRecord | undefined> {
    const { configuration, problems, store, users } = this.#parts
    const known = user.record
    const { text, value, foreignGeneration } = await store.read(user.key, parseRecord)
    if (foreignGeneration !== undefined && configuration.meetForeign(user.key, foreignGeneration))
      return known
    if (text === user.text && value !== undefined) {
      users.setRead(user, text, known)
      return known
    }
    if (value === undefined) {
      if (known === undefined || text === goneMark || !user.isWanted) {
        users.setRead(user, text, undefined)
        // The name goes with the record, perhaps after this process has read the index.
        if (text === goneMark) users.setIndexed(user, false)
        return undefined
      }
      users.setRead(user, text, known)
      users.forgetMeeting(user)
      await this.write(user, known)
      if (text === undefined) this.#reportLoss()
      return user.record
    }
    // An older copy is used, but the subscription may have another id now.
    const isFormer = value.id !== undefined && users.isFormerId(value.id)
    const isOlder = isFormer || (known !== undefined && value.version < known.version)
    if (isOlder) problems.reportOnce('STORE', lossMessage, 'loss')
    users.setRead(user, text, isOlder ? { ...value, isUnsure: true } : value)
    return user.record
  }

  /** @throws StoreFailure, KeyFailure, Collision */
  async write(user: User, record: UserRecord): Promise<void> {
    const { store, users } = this.#parts
    const next = { ...record, version: Math.max(record.version, user.record?.version ?? 0) + 1 }
    const text = JSON.stringify(next)
    if (!(await store.compareAndSet(user.key, user.text, text))) throw new Collision(collisionMessage)
    users.setWritten(user, text, next)
  }

  /** @throws StoreFailure, KeyFailure, Collision */
  async remove(user: User): Promise<void> {
    const { store, users } = this.#parts
    if (user.record === undefined) return
    if (!(await store.compareAndSet(user.key, user.text, goneMark, day)))
      throw new Collision(collisionMessage)
    users.setWritten(user, goneMark, undefined)
  }

  #reportLoss(): void {
    this.#parts.problems.reportOnce('STORE', lossMessage, 'loss')
    this.#parts.onLoss()
  }
}

const collisionMessage = 'Another process is working on this user. Sweep again in two minutes.'
