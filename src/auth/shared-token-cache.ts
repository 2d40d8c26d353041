/** A token shared between processes, through a store that the caller brings. */
import * as z from 'zod'
import type { Log } from '../logger.js'
import { parseJson } from '../shared/parse-json.js'
import type { KeyValueStore } from '../stores/key-value-store.js'
import { accessTokenPattern } from './access-token-response.js'
import { BoundedStore, backgroundTime, StoreUnavailable, WaitingTime } from './bounded-store.js'
import { type HeldLock, RequestLock } from './request-lock.js'

/** Where processes share an access token: any {@link KeyValueStore}. A store that throws or hangs is treated as empty. */
export type TokenCache = KeyValueStore

/** A token with the wall-clock time of its end: a monotonic clock means nothing to another process. */
const entrySchema = z.lazy(() =>
  z.object({
    accessToken: z.string().regex(accessTokenPattern),
    expiresAtMs: z.number(),
    lifetimeMs: z.number(),
  }),
)

/**
 * How much longer than its lifetime a token may seem to have left, as a share of that: the wall clocks of two machines
 * differ. A tenth is harmless, because a token is refreshed before the last tenth of what it seems to live.
 */
const toleratedClockDifference = 0.1

/** Waits between two looks at the store are random between these, so that many processes do not look at once. */
const lookAgain = { earliestMs: 25, latestMs: 75 }

export interface SharedToken {
  readonly accessToken: string
  readonly lifetimeMs: number
  readonly remainingMs: number
}

/** What a process that needs a token finds: one of another process, or that it is its own turn to request one. */
export type Found<Token> =
  | { readonly kind: 'token'; readonly token: Token }
  /** Without a lock where the store has none to give: then every process requests its own. */
  | { readonly kind: 'turn'; readonly lock: HeldLock | undefined }

export interface SharedTokenCacheOptions {
  readonly store: TokenCache
  /** The token's key in the store: two clients with the same key would request the same token. Has no secret in it. */
  readonly key: string
  /** The key of the lock that a process holds while it requests the token. */
  readonly lockKey: string
  readonly log: Log
}

export class SharedTokenCache {
  readonly #waiting: BoundedStore
  readonly #background: BoundedStore
  readonly #key: string
  readonly #lock: RequestLock | undefined
  readonly #log: Log
  #changes = Promise.resolve()
  #saidNotKept = false

  constructor({ store, key, lockKey, log }: SharedTokenCacheOptions) {
    this.#waiting = new BoundedStore(store, new WaitingTime(), log)
    this.#background = new BoundedStore(store, backgroundTime, log)
    const stores = { waiting: this.#waiting, background: this.#background }
    this.#lock = this.#waiting.canCompareAndSet ? new RequestLock({ key: lockKey, ...stores }) : undefined
    this.#key = key
    this.#log = log
  }

  /**
   * Finds a token that another process has stored, or waits while one requests it, or finds that it is this process's
   * turn. A store that fails makes it this process's turn.
   *
   * @param accept - turns a stored token into one to use; `undefined` if it is none
   * @param patienceMs - how long to wait at most for a process that is alive
   */
  async find<Token>(
    accept: (stored: SharedToken) => Token | undefined,
    patienceMs: number,
  ): Promise<Found<Token>> {
    const lock = this.#lock?.watch()
    const waitsUntil = performance.now() + patienceMs
    try {
      for (;;) {
        // The lock is looked at before the token, because its holder stores the token before it frees the lock.
        await lock?.look()
        const stored = await this.#read(this.#waiting)
        const token = stored && accept(stored)
        if (token !== undefined) return { kind: 'token', token }
        const held = await lock?.take()
        if (held !== undefined) return { kind: 'turn', lock: held }
        if (lock === undefined || performance.now() >= waitsUntil) break
        await untilNextLook()
      }
    } catch (error) {
      if (!(error instanceof StoreUnavailable)) throw error
    }
    return { kind: 'turn', lock: undefined }
  }

  /** This process's turn is over: stores what it brought, if anything, and then lets the next process have its own. */
  endTurn(lock: HeldLock | undefined, token: SharedToken | undefined): void {
    const write = token && this.#writeOf(token)
    void this.#inOrder(async () => {
      try {
        await write?.()
      } finally {
        await lock?.release()
      }
    })
  }

  /** Removes a token that the service rejected, unless another process has replaced it. */
  remove(rejected: string): void {
    void this.#inOrder(async () => {
      const stored = await this.#read(this.#background)
      if (stored?.accessToken === rejected) await this.#background.delete(this.#key)
    })
  }

  /** The stored token while it is valid. */
  async #read(store: BoundedStore): Promise<SharedToken | undefined> {
    const entry = entrySchema.safeParse(parseJson((await store.get(this.#key)) ?? '')).data
    if (entry === undefined) return undefined
    const { accessToken, expiresAtMs, lifetimeMs } = entry
    const remainingMs = expiresAtMs - Date.now()
    // A token with far more time left than it ever had: some process's wall clock is wrong, so the time tells nothing.
    if (remainingMs <= 0 || remainingMs > lifetimeMs * (1 + toleratedClockDifference)) return undefined
    return { accessToken, lifetimeMs, remainingMs }
  }

  /** The write of a token. The write may have to wait its turn; the token's remaining time counts from now. */
  #writeOf({ accessToken, lifetimeMs, remainingMs }: SharedToken): () => Promise<void> {
    const expiresAtMs = Date.now() + remainingMs
    const entry = JSON.stringify({ accessToken, lifetimeMs, expiresAtMs })
    return async () => {
      await this.#background.set(this.#key, entry, remainingMs)
      // Read back, because a store may say that it has written what it has not: Keyv does while its Redis is down.
      const isKept = (await this.#read(this.#background)) !== undefined || Date.now() >= expiresAtMs
      if (!isKept && !this.#saidNotKept) this.#log('warn', {}, notKept)
      this.#saidNotKept = !isKept
    }
  }

  /** One change at a time: a slow delete of the old token must not hit the new one. */
  #inOrder(change: () => Promise<void>): Promise<void> {
    // A store that fails has been logged, and nobody waits for a change.
    this.#changes = this.#changes.then(change).catch(() => {})
    return this.#changes
  }
}

const notKept =
  'The token cache does not keep what it is given, so each process requests its own tokens. ' +
  'Is the database behind it up? Listen for its `error` events'

function untilNextLook(): Promise<void> {
  const ms = lookAgain.earliestMs + Math.random() * (lookAgain.latestMs - lookAgain.earliestMs)
  return new Promise((resolve) => setTimeout(resolve, ms))
}
