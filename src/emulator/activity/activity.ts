/** Tells of everything that happens in an emulator: all of it to the page, the public events to a user's listeners. */
import { InvalidRequestError } from '../../errors.js'
import { lossLogOf } from '../../logger.js'
import { callSafely } from '../../shared/call-safely.js'
import { messageOf } from '../../shared/excerpt.js'
import type { RecordedCallback } from '../callbacks/callback-log.js'
import type { RecordedRequest } from '../service/request-log.js'
import type { EndReason, SubscriptionRecord } from '../service/subscription-store.js'

/** The events of {@link Emulator.on}, and what a listener is called with. */
export interface EmulatorEvents {
  /** A request was answered, or its connection was broken. */
  readonly request: readonly [entry: RecordedRequest]
  /** A callback was answered, or it failed. */
  readonly callback: readonly [entry: RecordedCallback]
  /** A subscription exists now. */
  readonly created: readonly [subscription: SubscriptionRecord]
  /** A subscription exists no longer; the record is as it was last. */
  readonly ended: readonly [subscription: SubscriptionRecord, reason: EndReason]
}

/** Something that happened. A request or callback is told of twice: when it begins, and when it is over. */
export type Change =
  | { readonly kind: 'request'; readonly entry: RecordedRequest }
  | { readonly kind: 'callback'; readonly entry: RecordedCallback }
  | { readonly kind: 'created' | 'updated'; readonly subscription: SubscriptionRecord }
  | { readonly kind: 'ended'; readonly subscription: SubscriptionRecord; readonly reason: EndReason }
  | { readonly kind: 'faults' | 'tokens-revoked' }

/** Called by `Emulator.on` with the arguments of its event. */
export type EmulatorListener<Name extends keyof EmulatorEvents> = (...args: EmulatorEvents[Name]) => unknown

type Listeners = { readonly [Name in keyof EmulatorEvents]: Set<{ call: EmulatorListener<Name> }> }

const log = lossLogOf(undefined)

export class Activity {
  readonly #watchers = new Set<{ call: (change: Change) => void }>()
  readonly #listeners: Listeners = {
    request: new Set(),
    callback: new Set(),
    created: new Set(),
    ended: new Set(),
  }

  /** Calls everybody, one after the other, before it returns. */
  tell(change: Change): void {
    for (const { call } of [...this.#watchers]) call(change)
    switch (change.kind) {
      case 'request':
        if (isOver(change.entry)) this.#emit('request', change.entry)
        break
      case 'callback':
        if (isOver(change.entry)) this.#emit('callback', change.entry)
        break
      case 'created':
        this.#emit('created', change.subscription)
        break
      case 'ended':
        this.#emit('ended', change.subscription, change.reason)
    }
  }

  /** Calls `watcher` with every change from now on, until the returned function is called. */
  watch(watcher: (change: Change) => void): () => void {
    return addTo(this.#watchers, watcher)
  }

  /**
   * Calls `listener` at one kind of public event from now on, until the returned function is called.
   *
   * @throws `InvalidRequestError` for an event that does not exist, or a listener that is no function
   */
  on<Name extends keyof EmulatorEvents>(name: Name, listener: EmulatorListener<Name>): () => void {
    const names = Object.keys(this.#listeners)
    if (!names.includes(name)) throw refused('event', `must be one of ${names.join(', ')}`)
    if (typeof listener !== 'function') throw refused('listener', 'must be a function')
    return addTo(this.#listeners[name], listener)
  }

  #emit<Name extends keyof EmulatorEvents>(name: Name, ...args: EmulatorEvents[Name]): void {
    for (const { call } of [...this.#listeners[name]]) {
      callSafely(
        () => call(...args),
        (err) => log('error', { err }, `A listener for "${name}" of the emulator failed: ${messageOf(err)}`),
      )
    }
  }
}

function isOver(entry: RecordedRequest | RecordedCallback): boolean {
  return entry.durationMs !== undefined
}

/** Adds a function in an object of its own: one that is added twice is called twice, and each is stopped on its own. */
function addTo<Call>(calls: Set<{ call: Call }>, call: Call): () => void {
  const added = { call }
  calls.add(added)
  return () => void calls.delete(added)
}

function refused(path: string, message: string): InvalidRequestError {
  return new InvalidRequestError(`The emulator cannot be listened to: ${path} ${message}.`, {
    issues: [{ path: [path], message }],
  })
}
