/** Where processes keep what they share: access tokens, and the records of a keeper. */

/**
 * A key-value store, sync or async, for text. A `Map` and a Keyv instance fit as they are; `redisStore` of
 * `notification-subscriber/redis` has all four methods (docs/stores.md).
 */
export interface KeyValueStore {
  /** Returns, or resolves with, the stored value; anything but a string counts as none. */
  get(key: string): unknown
  /**
   * Stores a value.
   *
   * @param ttlMs - how long the value is to be kept, a whole number of milliseconds. Default: for good
   */
  set(key: string, value: string, ttlMs?: number): unknown
  /** Removes a value. */
  delete(key: string): unknown
  /**
   * Stores a value if the present one is `expected`, in one step that no other process can come between.
   *
   * @param expected - the value that must be there; `undefined`: there must be none
   * @param ttlMs - how long the value is to be kept, a whole number of milliseconds. Default: for good
   * @returns whether the value was stored
   */
  compareAndSet?(
    key: string,
    expected: string | undefined,
    value: string,
    ttlMs?: number,
  ): boolean | Promise<boolean>
}
