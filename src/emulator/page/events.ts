/** Sends server-sent events to the page: a snapshot first, then the changes, in batches. */
import type { ServerResponse } from 'node:http'
import type { HistoryEntry } from '../activity.js'
import type { SubscriptionRecord } from '../service/subscription-store.js'
import type { Mask } from './mask.js'
import {
  type Batch,
  entryView,
  faultView,
  type PageHost,
  type Snapshot,
  snapshotOf,
  subscriptionView,
} from './views.js'

/** At 100 changes a second a page gets ten messages, without visible delay. */
const gatherMs = 100

interface Reader {
  readonly response: ServerResponse
  readonly mask: Mask
  /** A slow reader missed changes. It gets a snapshot when it has read the earlier messages. */
  isBehind: boolean
}

export class EventStream {
  readonly #host: PageHost
  readonly #readers = new Set<Reader>()
  readonly #stopWatching: () => void
  /** The changes since the last message, by id. */
  readonly #entries = new Map<number, HistoryEntry>()
  readonly #subscriptions = new Map<number, SubscriptionRecord>()
  #gathering: NodeJS.Timeout | undefined

  constructor(host: PageHost) {
    this.#host = host
    this.#stopWatching = host.activity.watch(({ entry, subscription }) => {
      if (this.#readers.size === 0) return
      if (entry !== undefined) this.#entries.set(entry.number, entry)
      if (subscription !== undefined) this.#subscriptions.set(subscription.subscriptionId, subscription)
      // The entry of the end has the subscription.
      if (entry?.kind === 'ended') this.#subscriptions.delete(entry.subscription.subscriptionId)
      this.#gathering ??= setTimeout(() => this.#sendChanges(), gatherMs).unref()
    })
  }

  open(response: ServerResponse, mask: Mask): undefined {
    response.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8' })
    response.write('retry: 1000\n\n')
    const reader = { response, mask, isBehind: true }
    const sendSnapshot = () => {
      if (!reader.isBehind) return
      reader.isBehind = false
      send(reader, 'snapshot', snapshotOf(this.#host, mask))
    }
    this.#readers.add(reader)
    response.once('close', () => this.#readers.delete(reader))
    response.on('drain', sendSnapshot)
    sendSnapshot()
  }

  /** Ends every stream with an event that means that this emulator has ended. */
  close(): void {
    this.#stopWatching()
    clearTimeout(this.#gathering)
    for (const { response } of this.#readers) response.end('event: closed\ndata:\n\n')
  }

  #sendChanges(): void {
    this.#gathering = undefined
    for (const reader of this.#readers) {
      if (reader.response.writableNeedDrain) reader.isBehind = true
      else send(reader, 'batch', this.#batchFor(reader.mask))
    }
    this.#entries.clear()
    this.#subscriptions.clear()
  }

  #batchFor(mask: Mask): Batch {
    return {
      entries: Array.from(this.#entries.values(), (entry) => entryView(entry, mask)),
      subscriptions: Array.from(this.#subscriptions.values(), (each) => subscriptionView(each, mask)),
      faults: this.#host.faults.list().map(faultView),
    }
  }
}

function send({ response }: Reader, event: 'snapshot' | 'batch', data: Snapshot | Batch): void {
  response.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
}
