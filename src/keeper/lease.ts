/**
 * Which of several processes is at work: the one whose value stands under the lease's key. Every renewal changes the
 * value, so that another process sees by its own clock whether the holder is alive.
 */
import { randomUUID } from 'node:crypto'
import type { StoreAccess } from './store-access.js'
import { leaseMs } from './timing.js'

const key = 'lease'
const free = 'free'

export class Lease {
  readonly #store: StoreAccess
  readonly #holder = randomUUID()
  #turn = 0
  /** What this process has written last, while nobody else has. */
  #value: string | undefined
  #endsFrom = Number.NEGATIVE_INFINITY
  #endsAt = Number.NEGATIVE_INFINITY
  #seen: { readonly value: string; readonly since: number } | undefined
  /** Whether the last value seen is of a process that has renewed it under our eyes. */
  #sawRenewal = false

  constructor(store: StoreAccess) {
    this.#store = store
  }

  /** Whether this process may work, by both clocks: the monotonic one may stand still while a machine sleeps. */
  get isHeld(): boolean {
    if (!this.#store.canCompare) return true
    return this.#value !== undefined && performance.now() < this.#endsFrom && Date.now() < this.#endsAt
  }

  /**
   * Whether the store fails, and this process had the lease when it began to, and has seen it fail ever since: then
   * nobody can have taken the lease. One that slept may have been followed by another.
   */
  get outlivesStore(): boolean {
    const { canCompare, firstFailure, isWorking } = this.#store
    if (!canCompare) return !isWorking
    if (this.#value === undefined || firstFailure === undefined) return false
    return firstFailure.since < this.#endsFrom && firstFailure.at < this.#endsAt
  }

  /** Whether another process has it, and was seen to be alive. */
  get hasLivingHolder(): boolean {
    return this.#sawRenewal
  }

  /**
   * Takes or renews the lease.
   *
   * @returns whether this process has it now
   * @throws StoreFailure
   */
  async take(): Promise<boolean> {
    if (!this.#store.canCompare) return true
    if (this.#value !== undefined && (await this.#replace(this.#value))) return true
    this.#value = undefined
    const stored = await this.#store.read(key)
    if (stored === undefined ? this.#mayBeLost : this.#isOfAnother(stored) && this.#isAlive(stored))
      return false
    return this.#replace(stored)
  }

  /** Lets another process have it at once. */
  async release(): Promise<void> {
    const value = this.#value
    this.#value = undefined
    if (value !== undefined) await this.#store.replace(key, value, free, leaseMs)
  }

  async #replace(expected: string | undefined): Promise<boolean> {
    const value = `${this.#holder} ${++this.#turn}`
    const sentSince = performance.now()
    const sentAt = Date.now()
    if (!(await this.#store.replace(key, expected, value, leaseMs))) return false
    this.#value = value
    this.#endsFrom = sentSince + leaseMs
    this.#endsAt = sentAt + leaseMs
    this.#seen = undefined
    this.#sawRenewal = false
    return true
  }

  /** Whether a lease that has vanished may be in force: the holder of one that the store lost writes it again. */
  get #mayBeLost(): boolean {
    return this.#seen !== undefined && performance.now() - this.#seen.since < leaseMs
  }

  #isOfAnother(stored: string): boolean {
    return stored !== free && !stored.startsWith(this.#holder)
  }

  #isAlive(stored: string): boolean {
    const now = performance.now()
    if (this.#seen?.value !== stored) {
      this.#sawRenewal = this.#seen !== undefined
      this.#seen = { value: stored, since: now }
      return true
    }
    return now - this.#seen.since < leaseMs
  }
}
