/** The store as the keeper uses it: nothing waits for it for long, and whether it works is proven, not assumed. */
import { randomUUID } from 'node:crypto'
import type { KeyValueStore } from '../stores/key-value-store.js'
import { type Instant, inTime, leaseMs, presentInstant, storeRestMs, storeTimeoutMs } from './timing.js'

/** The store failed, hung, or does not keep what is written. */
export class StoreFailure extends Error {}

/** Another process has written what this one was about to write. */
export class Overtaken extends Error {}

/** How often a proof is tried that another process comes between. */
const maxProofs = 5

export class StoreAccess {
  readonly #store: KeyValueStore
  readonly #name: string
  readonly #onFailure: (error: unknown) => void
  readonly #onRecovery: () => void
  /** Until when records are not asked for, because the store hung; monotonic. */
  #restsUntil = Number.NEGATIVE_INFINITY
  #isMisread = false
  /** The first and the last failure since the store worked; none while it works. */
  #failing: { readonly first: Instant; readonly last: Instant } | undefined

  constructor(
    store: KeyValueStore,
    name: string,
    listeners: { onFailure: (error: unknown) => void; onRecovery: () => void },
  ) {
    this.#store = store
    this.#name = name
    this.#onFailure = listeners.onFailure
    this.#onRecovery = listeners.onRecovery
  }

  get isWorking(): boolean {
    return this.#failing === undefined
  }

  /**
   * When the store began to fail, as far as is known. `undefined` also if it was not looked at for a while, by either clock: a
   * process that slept cannot know whether the store worked for others meanwhile.
   */
  get firstFailure(): Instant | undefined {
    return this.#failing && isRecent(this.#failing.last) ? this.#failing.first : undefined
  }

  /** Whether several processes can share the store. */
  get canCompare(): boolean {
    return this.#store.compareAndSet !== undefined
  }

  /** @throws StoreFailure */
  async read(key: string): Promise<string | undefined> {
    const value = await this.#attempt(key, () => this.#store.get(this.#key(key)))
    return typeof value === 'string' ? value : undefined
  }

  /**
   * Like {@link StoreAccess.read}, but believes in nothing only of a store that proves to work before and after:
   * some stores answer a failure with nothing.
   *
   * @throws StoreFailure
   */
  async readOrProveEmpty(key: string): Promise<string | undefined> {
    const value = await this.read(key)
    if (value !== undefined) return value
    await this.prove()
    const again = await this.read(key)
    if (again === undefined) await this.prove()
    return again
  }

  /**
   * In one step where the store can do that; else by a write.
   *
   * @throws StoreFailure
   */
  async replace(key: string, expected: string | undefined, value: string, ttlMs?: number): Promise<boolean> {
    const name = this.#key(key)
    if (this.#store.compareAndSet === undefined) {
      await this.#write(key, value)
      return true
    }
    const store = this.#store
    return (await this.#attempt(key, () => store.compareAndSet?.(name, expected, value, ttlMs))) === true
  }

  /** @throws StoreFailure unless the store holds this value. */
  async verify(key: string, value: string): Promise<void> {
    const stored = await this.read(key)
    if (stored === value) return this.#recovered()
    throw this.#failed(new StoreFailure('The store does not hold what was just written to it.'))
  }

  /** Writes something and reads it back. @throws StoreFailure */
  async prove(): Promise<void> {
    let foreign: string | undefined
    for (let attempt = 1; attempt <= maxProofs; attempt++) {
      const value = randomUUID()
      await this.#write('check', value)
      const stored = await this.read('check')
      if (stored === value) return this.#recovered()
      // Another process may prove the store at the same moment: then it is another value each time.
      if (stored === undefined || stored === foreign) break
      foreign = stored
    }
    throw this.#failed(new StoreFailure('The store does not hold what was just written to it.'))
  }

  /** What the store holds under a key cannot be read: until it can, the store counts as one that fails. */
  misread(key: string): StoreFailure {
    this.#isMisread = true
    const problem = `What the store holds under "${this.#key(key)}" cannot be read: a newer version wrote it, or it is damaged.`
    const advice = 'Run the newer version; or delete it, and everybody is met as if for the first time.'
    return this.#failed(new StoreFailure(`${problem} ${advice}`))
  }

  /** What was misread is understood now, or gone. */
  understood(): void {
    this.#isMisread = false
  }

  async #write(key: string, value: string): Promise<void> {
    await this.#attempt(key, () => this.#store.set(this.#key(key), value))
  }

  #key(key: string): string {
    return `${this.#name}:${key}`
  }

  #recovered(): void {
    this.#restsUntil = Number.NEGATIVE_INFINITY
    if (this.isWorking || this.#isMisread) return
    this.#failing = undefined
    this.#onRecovery()
  }

  #failed(error: unknown): StoreFailure {
    const last = presentInstant()
    this.#failing = { first: this.firstFailure ?? last, last }
    this.#onFailure(error)
    return error instanceof StoreFailure ? error : new StoreFailure('The store failed.', { cause: error })
  }

  async #attempt(key: string, operation: () => unknown): Promise<unknown> {
    // Restores go on without the store: each of them would wait for it. Who works is always asked.
    if (key.startsWith('chunk:') && performance.now() < this.#restsUntil) {
      throw new StoreFailure('The store has not answered a moment ago: it is asked again in a few seconds.')
    }
    const late = () => {
      this.#restsUntil = performance.now() + storeRestMs
      return new StoreFailure(`The store did not answer within ${storeTimeoutMs} ms.`)
    }
    try {
      return await inTime(storeTimeoutMs, operation, late)
    } catch (error) {
      throw this.#failed(error)
    }
  }
}

/** A store that fails is looked at with every beat. */
function isRecent({ since, at }: Instant): boolean {
  return performance.now() - since < leaseMs && Date.now() - at < leaseMs
}
