/** A token that processes share through the caller's store (docs/stores.md). */
import * as z from 'zod'
import type { Log } from '../logger.js'
import { parseJson } from '../shared/validation.js'
import { withTimeLimit } from '../shared/waits.js'
import type { KeyValueStore } from '../stores/key-value-store.js'
import { accessTokenPattern, type IssuedToken } from './token-request.js'

/** How long the store may take for one `get` or `set`, in milliseconds. */
const limitMs = 1_000

const parsedValue = 'it returned no text: turn off what parses values (docs/stores.md, Your own)'

const storedTokenSchema = z.lazy(() =>
  z.object({
    accessToken: z.string().regex(accessTokenPattern),
    expiresAtMs: z.number(),
    lifetimeMs: z.number(),
  }),
)

/** A store that fails never fails a call: it counts as empty. A rejected token stays until the new one is written over it. */
export class SharedToken {
  /** @param key - equal for two clients only if they would request the same token; contains no secret */
  constructor(
    private readonly store: Pick<KeyValueStore, 'get' | 'set'>,
    private readonly key: string,
    private readonly log: Log,
  ) {}

  /** The stored token while it is valid. */
  async read(): Promise<IssuedToken | undefined> {
    const value = (await this.#guarded('get', () => this.store.get(this.key))) ?? ''
    if (typeof value !== 'string') this.#warn('get', parsedValue)
    const token = storedTokenSchema.safeParse(parseJson(String(value))).data
    if (token === undefined) return undefined
    const { accessToken, expiresAtMs: expiresAt, lifetimeMs } = token
    const remainingMs = expiresAt - Date.now()
    // If the clocks of two processes differ by more, this one would use the token beyond its end, without a refresh.
    return remainingMs > 0 && remainingMs < lifetimeMs * 1.1
      ? { accessToken, expiresAt, lifetimeMs }
      : undefined
  }

  /** Stores a token in the background. */
  write({ accessToken, expiresAt, lifetimeMs }: IssuedToken): void {
    // Redis refuses a fraction of a millisecond.
    const ttlMs = Math.ceil(expiresAt - Date.now())
    const text = JSON.stringify({ accessToken, lifetimeMs, expiresAtMs: expiresAt })
    void this.#guarded('set', () => this.store.set(this.key, text, ttlMs))
  }

  /** The result of a `get` or `set`, or `undefined` if the store fails. */
  async #guarded(operation: 'get' | 'set', run: () => unknown): Promise<unknown> {
    try {
      return await withTimeLimit(limitMs, run)
    } catch (error) {
      // The error's name only: its message may hold the token.
      this.#warn(operation, error instanceof Error ? error.name : typeof error)
      return undefined
    }
  }

  #warn(operation: 'get' | 'set', reason: string): void {
    this.log('warn', { event: 'token-cache.failed', operation, reason }, 'Token cache failed')
  }
}
