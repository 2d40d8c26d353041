/** The time line of an emulator: its newest events, and the listeners for each. */
import { EventEmitter } from 'node:events'
import { callLogged, consoleLogOf } from '../logger.js'
import type { CallbackFault, EmulatorOperation, Fault } from './faults.js'
import type { EndReason, SubscriptionChange, SubscriptionRecord } from './service/subscription-store.js'

/** What came back for a request or a callback. Nothing is redacted. */
export interface RecordedAnswer {
  /** The headers; received ones by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** The body as text, its first 16,384 characters. */
  readonly body: string
  /** The length of the whole body in characters; for a request larger than 1 MiB, of the part that was read. */
  readonly bodyLength: number
}

/** A request that arrived, with credentials and tokens as they were sent, and how it ended. Nothing is redacted. */
export interface RecordedRequest extends RecordedAnswer {
  /** The number of this request, or of this callback, from 1. The list has only the newest. */
  readonly id: number
  /** When it began, in milliseconds since 1970. */
  readonly startedAt: number
  /** `unknown` for a path or method that the service does not have. */
  readonly operation: EmulatorOperation | 'unknown'
  readonly method: string
  readonly path: string
  /** The subscription that the request created or names. */
  readonly subscriptionId?: number
  readonly fault?: Fault
  /** Why the emulator refused the request: the code and the sentence that its answer has. */
  readonly refusal?: {
    /** One word for the reason, such as `duplicate_subscription`. */
    readonly code: string
    readonly message: string
    /** The subscription that is in the way of a create. */
    readonly subscriptionId?: number
  }
  /** Status of the answer, if there was one. */
  readonly status?: number
  /** The answer, if it arrived completely. */
  readonly answer?: RecordedAnswer
  /** Why there was no answer, or why a callback failed, as a sentence. */
  readonly error?: string
  /** How long the answer took, in milliseconds; missing until then. */
  readonly durationMs?: number
}

/**
 * A callback that was sent, with the associated values as they were sent. `error` is missing if the callback succeeded;
 * everything but a complete answer with 2xx in time is a failure.
 */
export interface RecordedCallback
  extends Omit<RecordedRequest, 'operation' | 'method' | 'path' | 'subscriptionId' | 'fault' | 'refusal'> {
  readonly subscriptionId: number
  readonly callbackUrl: string
  /** The delivered `notification.id`: the same for all callbacks of one notification. */
  readonly notificationId: string
  readonly type: string
  /** The user (agent) that the notification is about. */
  readonly username: string
  readonly fault?: CallbackFault
}

/** How many requests of each kind arrived since the start. */
export type RequestCounts = Readonly<Record<RecordedRequest['operation'], number>>

/** The events of `Emulator.on`, and the arguments that a listener is called with. */
export interface EmulatorEvents {
  /** A request was answered, or its connection was broken. */
  readonly request: readonly [request: RecordedRequest]
  /** A callback was answered, or it failed. */
  readonly callback: readonly [callback: RecordedCallback]
  readonly created: readonly [subscription: SubscriptionRecord]
  /** A subscription ended, with its last record. */
  readonly ended: readonly [subscription: SubscriptionRecord, reason: EndReason]
}

type Begun<Request> = Omit<
  Request,
  'id' | 'startedAt' | 'bodyLength' | 'status' | 'answer' | 'error' | 'durationMs'
>

/** A line of the time line, by its number, which counts from 1. A changed one, such as a request in flight, is replaced. */
export type TimeLineEvent = { readonly number: number } & WhatHappened

type WhatHappened =
  | { readonly kind: 'request'; readonly request: RecordedRequest }
  | { readonly kind: 'callback'; readonly request: RecordedCallback }
  | (Extract<SubscriptionChange, { kind: 'ended' }> & { readonly at: number })

/** How many events of each kind are kept. */
const keptEvents = 1_000
const keptCharacters = 16 * 1024

const log = consoleLogOf(undefined)

export class Activity {
  readonly #events = new Map<number, TimeLineEvent>()
  readonly #counts = { token: 0, create: 0, update: 0, unsubscribe: 0, unknown: 0 }
  readonly #emitter = new EventEmitter().setMaxListeners(0)
  #version = 0
  readonly #lastIds = { event: 0, request: 0, callback: 0 }

  /** The returned function ends the request. */
  beginRequest(request: Begun<RecordedRequest>): (ended: Partial<RecordedRequest>) => void {
    this.#counts[request.operation]++
    const begun = { ...request, ...this.#begun('request', request.body) }
    return this.#follow((ended) => ({ kind: 'request', request: { ...begun, ...ended } }))
  }

  beginCallback(callback: Begun<RecordedCallback>): (ended: Partial<RecordedCallback>) => void {
    const begun = { ...callback, ...this.#begun('callback', callback.body) }
    return this.#follow((ended) => ({ kind: 'callback', request: { ...begun, ...ended } }))
  }

  subscriptionChanged(change: SubscriptionChange): void {
    if (change.kind === 'ended') this.#add({ ...change, at: Date.now() })
    this.#emitter.emit(change.kind, change.subscription, 'reason' in change && change.reason)
  }

  /** Another number whenever an event began or ended. */
  get version(): number {
    return this.#version
  }

  get requests(): RecordedRequest[] {
    return this.events.flatMap((event) => (event.kind === 'request' ? [event.request] : []))
  }

  get callbacks(): RecordedCallback[] {
    return this.events.flatMap((event) => (event.kind === 'callback' ? [event.request] : []))
  }

  get requestCounts(): RequestCounts {
    return { ...this.#counts }
  }

  /** The last 1,000 events of each kind, in order of their beginning. */
  get events(): TimeLineEvent[] {
    return [...this.#events.values()]
  }

  event(number: number): TimeLineEvent | undefined {
    return this.#events.get(number)
  }

  /** See `Emulator.on`. */
  on<Name extends keyof EmulatorEvents>(
    name: Name,
    listener: (...args: EmulatorEvents[Name]) => unknown,
  ): () => void {
    const failure = { event: 'emulator.listener-failed', listener: name }
    const call = (...args: EmulatorEvents[Name]) =>
      void callLogged(log, failure, 'A listener of the emulator failed', () => listener(...args))
    this.#emitter.on(name, call)
    return () => void this.#emitter.off(name, call)
  }

  #begun(kind: 'request' | 'callback', body: string) {
    return { ...beginningOf(body), id: ++this.#lastIds[kind], startedAt: Date.now() }
  }

  #follow<Request>(eventOf: (ended: Partial<Request>) => WhatHappened): (ended: Partial<Request>) => void {
    const number = this.#add(eventOf({}))
    const startedSince = performance.now()
    return (ended) => {
      const durationMs = Math.round(performance.now() - startedSince)
      const event = { number, ...eventOf({ ...ended, durationMs }) }
      if (this.#events.has(number)) this.#events.set(number, event)
      this.#version++
      if ('request' in event) this.#emitter.emit(event.kind, event.request)
    }
  }

  #add(event: WhatHappened): number {
    const number = ++this.#lastIds.event
    this.#events.set(number, { number, ...event })
    const ofKind = this.events.filter(({ kind }) => kind === event.kind)
    if (ofKind.length > keptEvents) this.#events.delete(ofKind[0]?.number ?? 0)
    this.#version++
    return number
  }
}

export function beginningOf(body: string): Pick<RecordedAnswer, 'body' | 'bodyLength'> {
  // Copied, because a slice keeps the whole text in memory.
  const beginning = Buffer.from(body.slice(0, keptCharacters), 'utf16le').toString('utf16le')
  return { body: beginning, bodyLength: body.length }
}
