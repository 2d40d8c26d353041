/** A token shared between processes, through a cache that the caller brings. */
import * as z from 'zod'
import type { Log } from '../logger.js'
import { parseJson } from '../shared/parse-json.js'
import type { KeyValueStore } from '../stores/key-value-store.js'
import { accessTokenPattern } from './access-token-response.js'

/**
 * Where processes share an access token. A store that throws or hangs is treated as empty.
 */
export type TokenCache = KeyValueStore

/** A token with the wall-clock time of its end: a monotonic clock means nothing to another process. */
const entrySchema = z.lazy(() =>
  z.object({
    accessToken: z.string().regex(accessTokenPattern),
    expiresAtMs: z.number(),
    lifetimeMs: z.number(),
  }),
)

export interface SharedToken {
  readonly accessToken: string
  readonly lifetimeMs: number
  readonly remainingMs: number
}

/** Callers wait for a token while the store is asked: one that does not answer in this time is passed over. */
const patienceMs = 1_000

export class SharedTokenCache {
  readonly #cache: TokenCache
  readonly #key: string
  readonly #log: Log
  #changes = Promise.resolve()

  constructor(cache: TokenCache, key: string, log: Log) {
    this.#cache = cache
    this.#key = key
    this.#log = log
  }

  /** The stored token while it is valid; `undefined` also when the store fails. */
  async read(): Promise<SharedToken | undefined> {
    const value = await this.#attempt('read', () => this.#cache.get(this.#key))
    if (typeof value !== 'string') return undefined
    const entry = entrySchema.safeParse(parseJson(value)).data
    if (entry === undefined) return undefined
    const { accessToken, expiresAtMs, lifetimeMs } = entry
    const remainingMs = expiresAtMs - Date.now()
    // More left than it ever had: some process's wall clock is wrong, so the time is worth nothing.
    if (remainingMs <= 0 || remainingMs > lifetimeMs) return undefined
    return { accessToken, lifetimeMs, remainingMs }
  }

  /** Stores a token for as long as it lives. */
  write({ accessToken, lifetimeMs, remainingMs }: SharedToken): Promise<void> {
    const value = JSON.stringify({ accessToken, lifetimeMs, expiresAtMs: Date.now() + remainingMs })
    return this.#inOrder(async () => {
      await this.#attempt('write', () => this.#cache.set(this.#key, value, Math.ceil(remainingMs)))
    })
  }

  /** Removes a token that the service rejected, unless another process has replaced it. */
  remove(rejected: string): Promise<void> {
    return this.#inOrder(async () => {
      const stored = await this.read()
      if (stored?.accessToken === rejected) await this.#attempt('delete', () => this.#cache.delete(this.#key))
    })
  }

  /** One change at a time: a slow delete of the old token must not hit the new one. */
  #inOrder(change: () => Promise<void>): Promise<void> {
    this.#changes = this.#changes.then(change)
    return this.#changes
  }

  async #attempt(operation: string, run: () => unknown): Promise<unknown> {
    let timer: NodeJS.Timeout | undefined
    try {
      const impatience = new Promise((_, reject) => {
        const late = new DOMException(`no answer within ${patienceMs} ms`, 'TimeoutError')
        timer = setTimeout(() => reject(late), patienceMs)
      })
      return await Promise.race([run(), impatience])
    } catch (error) {
      // Its name only: what else a store's error carries is unknown, and may be the token.
      const reason = error instanceof Error ? error.name : typeof error
      this.#log('warn', { operation, reason }, 'Token cache failed; going on without it')
      return undefined
    } finally {
      clearTimeout(timer)
    }
  }
}
