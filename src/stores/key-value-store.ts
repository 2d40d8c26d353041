/** The store for data that processes share: access tokens, and the records of a keeper. */
import { ConfigurationError } from '../errors.js'

/**
 * A key-value store for text, sync or async. A `Map` and a Keyv instance are stores; `redisStore` of
 * `notification-subscriber/redis` has all four methods (docs/stores.md).
 */
export interface KeyValueStore {
  /** Returns, or resolves with, the stored text; `undefined` or `null` if there is none. */
  get(key: string): unknown
  /**
   * Stores a value.
   *
   * @param ttlMs - how long to keep the value, a whole number of milliseconds. Default: without limit
   */
  set(key: string, value: string, ttlMs?: number): unknown
  /** Removes a value. */
  delete(key: string): unknown
  /**
   * Atomically stores a value if the present one is `expected`. Needed by a keeper in several processes, and by `once`.
   *
   * @param expected - the value that must be present; `undefined`: none
   * @param ttlMs - how long to keep the value, a whole number of milliseconds. Default: without limit
   * @returns whether the value was stored
   */
  compareAndSet?(
    key: string,
    expected: string | undefined,
    value: string,
    ttlMs?: number,
  ): boolean | Promise<boolean>
}

/** What a store returned. @throws `TypeError` for anything but a text or nothing */
export function storedText(value: unknown): string | undefined {
  if (typeof value === 'string') return value
  if (value === undefined || value === null) return undefined
  const what = `a value of type ${typeof value}, and not the text that was stored`
  throw new TypeError(
    `The store returned ${what}: turn off what parses or converts values (docs/stores.md, Your own).`,
  )
}

/** For an invalid argument. Not by shared/validation.ts, which loads zod. @param what - what cannot work */
export function invalidArgument(what: string) {
  return (name: string, message: string) =>
    new ConfigurationError(`${what}: \`${name}\` ${message}.`, { issues: [{ path: [name], message }] })
}
