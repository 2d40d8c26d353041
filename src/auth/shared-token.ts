/** A token that processes share through the caller's store (docs/stores.md). */
import * as z from 'zod'
import type { Log } from '../logger.js'
import { parseJson } from '../shared/validation.js'
import { withTimeLimit } from '../shared/waits.js'
import type { KeyValueStore } from '../stores/key-value-store.js'
import { accessTokenPattern } from './token-request.js'

/** How long the store may take for one operation, in milliseconds. */
const limitMs = 1_000

/** How long a store counts as empty after a failure, in milliseconds: meanwhile no call waits for it. */
const countsAsEmptyMs = 30_000

/**
 * How far a stored token's time left may exceed its lifetime, as a share of the lifetime, because the wall clocks of two
 * machines differ. A tenth is harmless: a token is refreshed before the last tenth of its time.
 */
const toleratedClockDifference = 0.1

/** A token with the wall-clock time of its expiry, because monotonic clocks differ between processes. */
const entrySchema = z.lazy(() =>
  z.object({
    accessToken: z.string().regex(accessTokenPattern),
    expiresAtMs: z.number(),
    lifetimeMs: z.number(),
  }),
)

/** A token as the store has it. */
export interface StoredToken {
  readonly accessToken: string
  readonly lifetimeMs: number
  readonly remainingMs: number
}

/** A longer text, in characters, is no token: parsing it would block the process. */
const maxTextLength = 2 ** 20

/** A store that fails never fails a call: it counts as empty. */
export class SharedToken {
  readonly #store: KeyValueStore
  readonly #key: string
  readonly #log: Log
  #countsAsEmptyUntil = Number.NEGATIVE_INFINITY
  #changes = Promise.resolve()
  #hasReportedLoss = false

  /** @param key - equal for two clients only if they would request the same token; contains no secret */
  constructor(store: KeyValueStore, key: string, log: Log) {
    this.#store = store
    this.#key = key
    this.#log = log
  }

  /** The stored token while it is valid. */
  async read(): Promise<StoredToken | undefined> {
    const text = await this.#guarded('get', () => this.#store.get(this.#key))
    return typeof text === 'string' && text.length <= maxTextLength ? storedToken(text) : undefined
  }

  /** Stores a token in the background. */
  write({ accessToken, lifetimeMs, remainingMs }: StoredToken): void {
    const expiresAtMs = Date.now() + remainingMs
    const text = JSON.stringify({ accessToken, lifetimeMs, expiresAtMs })
    this.#inOrder(async () => {
      // Redis refuses a fraction of a millisecond.
      await this.#guarded('set', () => this.#store.set(this.#key, text, Math.ceil(remainingMs)))
      // Read back, because some stores, such as Keyv, report success while their Redis is down.
      const isLost = (await this.read()) === undefined && Date.now() < expiresAtMs
      // The failure of the store is reported already.
      if (this.#countsAsEmpty()) return
      if (isLost && !this.#hasReportedLoss) this.#log('warn', { event: 'token-cache.not-kept' }, notKept)
      this.#hasReportedLoss = isLost
    })
  }

  /** Removes a token that the service rejected, in the background, unless another process has replaced it. */
  remove(rejected: string): void {
    this.#inOrder(async () => {
      const stored = await this.read()
      if (stored?.accessToken === rejected) await this.#guarded('delete', () => this.#store.delete(this.#key))
    })
  }

  #countsAsEmpty(): boolean {
    return performance.now() < this.#countsAsEmptyUntil
  }

  /** The result of an operation, or `undefined` if the store fails or counts as empty after a failure. */
  async #guarded(operation: 'get' | 'set' | 'delete', run: () => unknown): Promise<unknown> {
    if (this.#countsAsEmpty()) return undefined
    try {
      return await withTimeLimit(limitMs, run)
    } catch (error) {
      this.#countsAsEmptyUntil = performance.now() + countsAsEmptyMs
      // The error's name only: its message may hold the token.
      const reason = error instanceof Error ? error.name : typeof error
      const fields = { operation, reason, countsAsEmptyMs }
      const message = 'Token cache failed and is not used for a while'
      this.#log('warn', { event: 'token-cache.failed', ...fields }, message)
      return undefined
    }
  }

  /** One change at a time: a slow delete of the old token must not hit the new one. */
  #inOrder(change: () => Promise<void>): void {
    this.#changes = this.#changes.then(change)
  }
}

const notKept =
  'The token cache did not store a token, so each process requests its own. ' +
  'Is its database running? Listen for its `error` events'

function storedToken(text: string): StoredToken | undefined {
  const entry = entrySchema.safeParse(parseJson(text)).data
  if (entry === undefined) return undefined
  const { accessToken, expiresAtMs, lifetimeMs } = entry
  const remainingMs = expiresAtMs - Date.now()
  // More time left than the token's lifetime: a wall clock is wrong, so the time is useless.
  if (remainingMs <= 0 || remainingMs > lifetimeMs * (1 + toleratedClockDifference)) return undefined
  return { accessToken, lifetimeMs, remainingMs }
}
