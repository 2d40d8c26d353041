/** Lets one process request a token while the others wait for it, by a lock in the store that they share. */
import type { BoundedStore } from './bounded-store.js'

/**
 * A lock that has not changed for this long belongs to a process that is gone: its holder changes it at each renewal.
 * Each process measures that on its own clock, so neither wall clocks that differ nor a store without expiry matter.
 */
const holderSilenceMs = 750
const renewalMs = 250

/** What stands in place of a holder when the lock is free. */
const free = 'free'

export interface RequestLockOptions {
  readonly key: string
  /** The store that they share, for operations that a call waits for. */
  readonly waiting: BoundedStore
  /** The same store, for operations that nobody waits for. */
  readonly background: BoundedStore
}

/**
 * The lock of one client. Every value that is written to it is new, which makes the value a version: who saw one,
 * found no token, and then replaces exactly that value knows that no other process has held the lock in between.
 */
export class RequestLock {
  readonly #options: RequestLockOptions
  readonly #holder = crypto.randomUUID()
  #values = 0

  constructor(options: RequestLockOptions) {
    this.#options = options
  }

  /** Begins to watch the lock, to take it as soon as it is free. */
  watch(): WatchedLock {
    return new WatchedLock(this.#options, {
      held: () => this.#newValue(this.#holder),
      free: () => this.#newValue(free),
      // Also a lock that this client holds for a request that hangs, or took by a write whose answer was lost.
      isForTheTaking: (value) => value.startsWith(`${free} `) || value.startsWith(`${this.#holder} `),
    })
  }

  #newValue(state: string): string {
    this.#values += 1
    return `${state} ${this.#holder}-${this.#values}`
  }
}

/** The values that a client writes and knows. */
interface LockValues {
  held(): string
  free(): string
  isForTheTaking(value: string): boolean
}

/** What one request for a token has seen of the lock. */
export class WatchedLock {
  readonly #options: RequestLockOptions
  readonly #values: LockValues
  #seen: string | undefined
  #seenSince = Number.NEGATIVE_INFINITY

  constructor(options: RequestLockOptions, values: LockValues) {
    this.#options = options
    this.#values = values
  }

  async look(): Promise<void> {
    const value = await this.#options.waiting.get(this.#options.key)
    if (value === this.#seen) return
    this.#seen = value
    this.#seenSince = performance.now()
  }

  /** Takes the lock if it is as it was when last looked at, and nobody alive holds it. */
  async take(): Promise<HeldLock | undefined> {
    if (!this.#isForTheTaking()) return undefined
    const value = this.#values.held()
    const { key, waiting } = this.#options
    const taken = await waiting.compareAndSet(key, this.#seen, value, holderSilenceMs)
    return taken ? new HeldLock(this.#options, this.#values, value) : undefined
  }

  #isForTheTaking(): boolean {
    if (this.#seen === undefined || this.#values.isForTheTaking(this.#seen)) return true
    return performance.now() - this.#seenSince >= holderSilenceMs
  }
}

/** The lock while this process holds it: renewed until it is released. */
export class HeldLock {
  readonly #options: RequestLockOptions
  readonly #values: LockValues
  readonly #timer: NodeJS.Timeout
  #value: string
  #renewal: Promise<void> | undefined

  constructor(options: RequestLockOptions, values: LockValues, value: string) {
    this.#options = options
    this.#values = values
    this.#value = value
    this.#timer = setInterval(() => {
      // One at a time, however slow the store is.
      this.#renewal ??= this.#renew().finally(() => {
        this.#renewal = undefined
      })
    }, renewalMs)
  }

  /** Frees the lock, unless another process has taken it meanwhile. Never rejects. */
  async release(): Promise<void> {
    clearInterval(this.#timer)
    await this.#renewal
    await this.#replaceBy(this.#values.free()).catch(() => {})
  }

  async #renew(): Promise<void> {
    const next = this.#values.held()
    try {
      if (await this.#replaceBy(next)) this.#value = next
      // Another process has taken the lock, because it thought this one gone.
      else clearInterval(this.#timer)
    } catch {
      // The store is away. Should it come back in time, the next renewal finds the lock as it was.
    }
  }

  #replaceBy(value: string): Promise<boolean> {
    const { key, background } = this.#options
    return background.compareAndSet(key, this.#value, value, holderSilenceMs)
  }
}
