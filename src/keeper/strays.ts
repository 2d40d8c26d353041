/** Deliveries of subscriptions that the keeper does not know. */
import { lateCallbacksMs, replacingMs, strayMemoryMs, strayPatienceMs } from './timing.js'
import type { UserRecord } from './user-record.js'

/** So many ids are watched at most: who sends more makes them up. */
const maxWatched = 1_000

interface Stray {
  readonly firstSince: number
  lastSince: number
  isReported: boolean
}

export class Strays {
  readonly #seen = new Map<number, Stray>()
  /** Ids that are no longer in use, and until when their deliveries are no strays; monotonic. */
  readonly #ended = new Map<number, number>()
  /** From how many on those that are over are thrown away. */
  #tidiedFrom = maxWatched

  /** A delivery came with an id that is not recorded. */
  see(id: number): void {
    const now = performance.now()
    if (this.#isEnded(id, now)) return
    const known = this.#seen.get(id)
    if (known !== undefined) known.lastSince = now
    else if (this.#seen.size < maxWatched) {
      this.#seen.set(id, { firstSince: now, lastSince: now, isReported: false })
    }
  }

  /**
   * A subscription whose id was never known was replaced: what was seen so far may have been its deliveries. A stray
   * that is somebody else's goes on and is seen again.
   */
  forgetUnreported(): void {
    for (const [id, { isReported }] of this.#seen) if (!isReported) this.#seen.delete(id)
  }

  /** The keeper has ended or replaced the subscription of this id: its last callbacks may still arrive. */
  hasEnded(id: number): void {
    this.#end(id, performance.now() + lateCallbacksMs)
  }

  /** The process at work no longer records this id: it has replaced the subscription, or is about to. */
  wasDropped(id: number): void {
    this.#end(id, performance.now() + replacingMs)
  }

  #end(id: number, until: number): void {
    const now = performance.now()
    this.#ended.set(id, Math.max(until, this.#ended.get(id) ?? 0))
    if (this.#ended.size < this.#tidiedFrom) return
    for (const [each, end] of this.#ended) if (end <= now) this.#ended.delete(each)
    this.#tidiedFrom = Math.max(maxWatched, 2 * this.#ended.size)
  }

  #isEnded(id: number, now: number): boolean {
    return now < (this.#ended.get(id) ?? Number.NEGATIVE_INFINITY)
  }

  /** Whether there is an id that has been unknown for a minute and is not reported yet. */
  hasCandidate(now: number): boolean {
    for (const stray of this.#seen.values()) if (isCandidate(stray, now)) return true
    return false
  }

  /**
   * What to report and what is over.
   *
   * @param isKnown - whether an id is recorded by now
   */
  review(now: number, isKnown: (id: number) => boolean): { begun: number[]; over: number[] } {
    const begun: number[] = []
    const over: number[] = []
    for (const [id, stray] of this.#seen) {
      if (isKnown(id) || this.#isEnded(id, now) || now - stray.lastSince > strayMemoryMs) {
        this.#seen.delete(id)
        if (stray.isReported) over.push(id)
      } else if (isCandidate(stray, now)) {
        stray.isReported = true
        begun.push(id)
      }
    }
    return { begun, over }
  }
}

/**
 * Whether an unknown id may be of a subscription that the keeper made itself, without the answer, and that will be known
 * before long.
 */
export function isSettling(
  records: Iterable<UserRecord>,
  { hasParameters, isOutage }: { hasParameters: boolean; isOutage: boolean },
): boolean {
  for (const { slots, failures } of records) {
    // A user who fails alone may fail for ever.
    if (failures > 0 && !isOutage) continue
    // Only a proof by id ends what a process that died has left open.
    if (slots.some(({ doubt }) => doubt === 'unanswered' || (doubt === 'loaded' && hasParameters)))
      return true
  }
  return false
}

export function strayMessage(subscriptionId: number): string {
  return (
    `Deliveries arrive of subscription ${subscriptionId}, which this keeper does not know. The keeper may have made it ` +
    'all the same, and lost the answer, or what was in its store. If nobody else needs the subscription, call ' +
    `\`client.unsubscribe(${subscriptionId})\` and then \`sweep()\`, which subscribes its user again if the roster has ` +
    'that user. If several keepers share this receiver, set `reportStrays: false`.'
  )
}

function isCandidate({ firstSince, isReported }: Stray, now: number): boolean {
  return !isReported && now - firstSince >= strayPatienceMs
}
