/** Sends the page what happens, as server-sent events: a snapshot first, then the changes, gathered in bursts. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { documentedNotificationTypes, notificationTypes } from '../../notification-types.js'
import { samplePayload } from '../../webhooks/sample.js'
import type { Change } from '../activity.js'
import type { PageHost } from './host.js'
import type { Batch, Snapshot, SubscriptionView } from './protocol.js'
import { entryView, faultView, serviceView, subscriptionView } from './views.js'

/** Entries of the time line, and ended subscriptions, that the page gets. */
const keptEntries = 1_000

/** At 100 changes a second a page gets ten messages, and an eye sees no delay. */
const gatherMs = 100

/** Keeps proxies and sleeping computers from closing an idle connection. */
const heartbeatMs = 15_000

interface Reader {
  readonly response: ServerResponse
  /** The number of the last change that this page has; `NaN` before its first snapshot. */
  change: number
}

export class EventStream {
  readonly #state: PageState
  readonly #run: string
  readonly #readers = new Set<Reader>()
  readonly #heartbeat: NodeJS.Timeout
  readonly #stopWatching: () => void
  #gathering: NodeJS.Timeout | undefined

  /** `run` distinguishes the changes of two starts of the emulator. */
  constructor(host: PageHost, run: string) {
    this.#state = new PageState(host)
    this.#run = run
    this.#stopWatching = host.activity.watch((change) => {
      this.#state.add(change)
      this.#sendSoon()
    })
    this.#heartbeat = setInterval(() => {
      for (const { response } of this.#readers) response.write(':\n\n')
    }, heartbeatMs).unref()
  }

  /** Answers a page. A browser that lost the connection names its last change in `Last-Event-ID`, and gets the rest. */
  open({ headers }: IncomingMessage, response: ServerResponse): void {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    const [run, change] = String(headers['last-event-id'] ?? '').split(' ', 2)
    const reader = { response, change: run === this.#run ? Number(change) : Number.NaN }
    this.#readers.add(reader)
    response.once('close', () => this.#readers.delete(reader))
    // A slow reader has caught up: it gets everything that it missed at once.
    response.on('drain', () => this.#send(reader))
    response.write('retry: 1000\n\n')
    this.#send(reader)
  }

  /** Ends every stream with an event, by which a page knows that this emulator does not come back. */
  close(): void {
    this.#stopWatching()
    clearInterval(this.#heartbeat)
    clearTimeout(this.#gathering)
    for (const { response } of this.#readers) response.end('event: closed\ndata:\n\n')
  }

  #sendSoon(): void {
    if (this.#readers.size === 0) return
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined
      for (const reader of this.#readers) this.#send(reader)
    }, gatherMs).unref()
  }

  #send(reader: Reader): void {
    const { response } = reader
    // A slow reader is sent nothing until it has read.
    if (response.writableNeedDrain) return
    const { lastChange } = this.#state
    if (reader.change === lastChange) return
    const batch = this.#state.changesSince(reader.change)
    const [name, data] = batch === undefined ? ['snapshot', this.#state.snapshot()] : ['batch', batch]
    reader.change = lastChange
    response.write(`event: ${name}\nid: ${this.#run} ${lastChange}\ndata: ${JSON.stringify(data)}\n\n`)
  }
}

/** A subscription as the page shows it, and the number of its last change. */
interface Changed {
  readonly view: SubscriptionView
  readonly change: number
}

/** What the page shows, with the number of the last change of each part. The time line is the emulator's history. */
class PageState {
  readonly #host: PageHost
  readonly #active = new Map<number, Changed>()
  readonly #ended = new Map<number, Changed>()
  #endedCount = 0
  /** Changes up to this number include ended subscriptions that were dropped from the list. */
  #droppedUpTo = 0
  #faultsChange = 0

  constructor(host: PageHost) {
    this.#host = host
    for (const subscription of host.emulator.subscriptions) this.#setActive(subscriptionView(subscription))
  }

  get lastChange(): number {
    return this.#host.activity.changes
  }

  add(change: Change): void {
    switch (change.kind) {
      case 'faults':
        this.#faultsChange = this.lastChange
        break
      case 'created':
      case 'updated':
        this.#setActive(subscriptionView(change.subscription))
        break
      case 'ended':
        this.#end({
          ...subscriptionView(change.subscription),
          ended: { reason: change.reason, at: Date.now() },
        })
    }
  }

  snapshot(): Snapshot {
    return {
      service: serviceView(this.#host),
      samples: notificationTypes.flatMap((category) =>
        documentedNotificationTypes[category].map((type) => ({
          type,
          category,
          payload: samplePayload(type),
        })),
      ),
      subscriptions: Array.from(this.#active.values(), ({ view }) => view),
      ended: Array.from(this.#ended.values(), ({ view }) => view),
      entries: this.#host.activity.history.slice(-keptEntries).map(entryView),
      faults: this.#host.plannedFaults().map(faultView),
      endedCount: this.#endedCount,
    }
  }

  /** What changed after this change, or nothing where only a snapshot can say it. */
  changesSince(last: number): Batch | undefined {
    // A change that never was, or a subscription that ended meanwhile and that the page would show for ever.
    if (!(last >= this.#droppedUpTo && last <= this.lastChange)) return undefined
    const isNew = ({ change }: { readonly change: number }) => change > last
    const entries = this.#host.activity.history.slice(-keptEntries).filter(isNew).map(entryView)
    const subscriptions = [...this.#active.values(), ...this.#ended.values()].filter(isNew)
    return {
      ...(entries.length > 0 && { entries }),
      ...(subscriptions.length > 0 && { subscriptions: subscriptions.map(({ view }) => view) }),
      ...(this.#faultsChange > last && { faults: this.#host.plannedFaults().map(faultView) }),
    }
  }

  #setActive(view: SubscriptionView): void {
    this.#active.set(view.subscriptionId, { view, change: this.lastChange })
  }

  #end(view: SubscriptionView): void {
    this.#active.delete(view.subscriptionId)
    this.#ended.set(view.subscriptionId, { view, change: this.lastChange })
    this.#endedCount++
    const [oldest] = this.#ended
    if (oldest === undefined || this.#ended.size <= keptEntries) return
    const [id, { change }] = oldest
    this.#ended.delete(id)
    this.#droppedUpTo = change
  }
}
