/**
 * Work that is done once for an id, also if several processes get the same notification. Loads no library.
 *
 * @module notification-subscriber/once
 */
import { invalidArgument, type KeyValueStore, storedText } from './key-value-store.js'

export type { KeyValueStore } from './key-value-store.js'

/** The part of a {@link KeyValueStore} that {@link once} uses, such as `redisStore`. */
export type OnceStore = Pick<Required<KeyValueStore>, 'get' | 'set' | 'compareAndSet'>

const unusable = invalidArgument('once cannot work')

const done = 'done'
const failed = 'failed'
const claimPattern = /^claimed by [-0-9a-f]{36}$/

/** The waits before the mark of work that is done is written again, in milliseconds. */
const markRetriesMs = [100, 1_000, 3_000]

/**
 * Does the work for an id, unless it was done before (docs/stores.md, Drop duplicates). If calls come at the same moment, one
 * does the work. The others reject, so that a spool or a queue repeats them, because the first call may still fail.
 *
 * If a process dies during the work, the claim ends after `claimMs`, and the next call does the work again: perhaps twice,
 * but it is never left out.
 *
 * @param id - names the work: `notification.id`, with a prefix if several functions work on one notification
 * @param options.claimMs - longer than the work takes, in milliseconds. Default: 60,000
 * @param options.keepMs - how long a repetition is recognised, in milliseconds. Default: 604,800,000 (a week)
 * @returns whether this call did the work
 * @throws what `work` or the store rejects with; an `Error` named `InProgressError` while another call does the work;
 * `ConfigurationError` for a store without `compareAndSet` or with a foreign value for this id, or an `id` that is no text
 *
 * @example
 * ```ts
 * const store = redisStore(redisClient, { prefix: 'coaching:' })
 * await DeliverySpool.open({
 *   path: './spool',
 *   deliver: ({ notification }) => once(store, notification.id, () => work(notification)),
 * })
 * ```
 */
export async function once(
  store: OnceStore,
  id: string,
  work: () => unknown,
  options: { readonly claimMs?: number | undefined; readonly keepMs?: number | undefined } = {},
): Promise<boolean> {
  if (typeof store?.compareAndSet !== 'function') {
    throw unusable('store', 'must have get, set and compareAndSet, as redisStore has')
  }
  // All work without an id would count as one.
  if (typeof id !== 'string' || id === '') throw unusable('id', 'must be text that is not empty')
  // In UTF-8 all lone surrogates are the same.
  if (/\p{Surrogate}/u.test(id)) throw unusable('id', 'has half of a character (a lone surrogate)')
  const { claimMs = 60_000, keepMs = 7 * 24 * 60 * 60 * 1_000 } = options
  for (const [name, ms] of Object.entries({ claimMs, keepMs })) {
    if (!Number.isInteger(ms) || ms < 1) throw unusable(name, 'must be a whole number of milliseconds')
  }
  const key = `once:${id}`
  const present = storedText(await store.get(key))
  if (present === done) return false
  // Such a value would count as a claim that never ends.
  if (present !== undefined && present !== failed && !claimPattern.test(present)) {
    throw unusable('store', `holds a value of another program at ${key}: give your store a \`prefix\``)
  }
  const claim = `claimed by ${crypto.randomUUID()}`
  const isFree = present === undefined || present === failed
  const isOurs =
    isFree &&
    ((await store.compareAndSet(key, present, claim, claimMs)) ||
      // The client library repeated a write whose answer was lost.
      (await store.get(key)) === claim)
  if (!isOurs) {
    if ((await store.get(key)) === done) return false
    const error = new Error(`The work for ${id} is in progress in another call: try again later`)
    throw Object.assign(error, { name: 'InProgressError' })
  }
  try {
    await work()
  } catch (error) {
    // The claim of a call that took over after `claimMs` stays. If the store fails, too, the claim ends by itself.
    const release = async () => store.compareAndSet(key, claim, failed, claimMs)
    await release().catch(() => {})
    throw error
  }
  await mark(store, key, keepMs)
  return true
}

/** Without the mark the work is done twice, so a store that fails for a moment is asked again. @throws the last error */
async function mark(store: OnceStore, key: string, keepMs: number): Promise<void> {
  for (const waitMs of markRetriesMs) {
    try {
      await store.set(key, done, keepMs)
      return
    } catch {
      await new Promise((resolve) => setTimeout(resolve, waitMs))
    }
  }
  await store.set(key, done, keepMs)
}
