/** What the page shows, kept as it happens: the newest entries, every subscription, and what changed since when. */
import { documentedNotificationTypes, notificationTypes } from '../../notification-types.js'
import type { Change } from '../activity/activity.js'
import type { RecordedCallback } from '../callbacks/callback-log.js'
import { sampleNotification } from '../callbacks/sample-notification.js'
import type { PageControls } from '../page-controls.js'
import type { RecordedRequest } from '../service/request-log.js'
import type {
  Batch,
  CallbackView,
  EntryView,
  NoteView,
  RequestView,
  SampleView,
  Snapshot,
  SubscriptionView,
} from './feed.js'
import { callbackView, faultView, requestView, subscriptionView } from './views.js'

/** Entries of the time line, and ended subscriptions, that are kept. */
const keptEntries = 1_000

/** How many changes are remembered: a page that is further behind gets a snapshot. */
const keptChanges = 5_000

type RecordedMessage = RecordedRequest | RecordedCallback

/** The record behind an entry, with its secrets, and the entry as it is shown. */
interface Kept {
  readonly view: EntryView
  readonly record?: RecordedMessage
}

/** What changed: the value is looked up when it is sent, so that several changes of one thing are sent once. */
type Mark = { readonly of: 'entry' | 'subscription'; readonly id: number } | { readonly of: 'faults' }

export class Journal {
  readonly #controls: PageControls
  readonly #entries = new Map<number, Kept>()
  readonly #subscriptions = new Map<number, SubscriptionView>()
  readonly #ended = new Map<number, SubscriptionView>()
  /** Ids of entries here by ids of the emulator's own lists, while the answer to a message is outstanding. */
  readonly #outstanding = new Map<string, number>()
  readonly #marks: Mark[] = []
  #revision = 0
  #lastEntryId = 0
  #endedCount = 0

  constructor(controls: PageControls) {
    this.#controls = controls
    for (const subscription of controls.emulator.subscriptions) {
      this.#subscriptions.set(subscription.subscriptionId, subscriptionView(subscription))
    }
  }

  /** Grows with every change. */
  get revision(): number {
    return this.#revision
  }

  /** The record behind an entry, if that is a request or a callback and still kept. */
  record(entryId: number): RecordedMessage | undefined {
    return this.#entries.get(entryId)?.record
  }

  /** Takes in a change of the emulator. */
  add(change: Change): void {
    switch (change.kind) {
      case 'request':
        this.#addMessage('request', change.entry, (id) => requestView(id, change.entry))
        break
      case 'callback': {
        const subscription = this.#subscriptions.get(change.entry.subscriptionId)
        this.#addMessage('callback', change.entry, (id) => callbackView(id, change.entry, subscription))
        break
      }
      case 'created':
      case 'updated':
        this.#setSubscription(subscriptionView(change.subscription))
        break
      case 'ended':
        this.#end(change)
        break
      case 'tokens-revoked':
        this.#addNote((base) => ({ ...base, note: 'tokens-revoked' }))
        break
      case 'faults':
        this.#mark({ of: 'faults' })
    }
  }

  snapshot(): Snapshot {
    const { baseUrl, authUrl, domain, clientId } = this.#controls.emulator
    return {
      service: { baseUrl, authUrl, domain, clientId },
      samples: samples(),
      subscriptions: [...this.#subscriptions.values()],
      ended: [...this.#ended.values()],
      entries: Array.from(this.#entries.values(), ({ view }) => view),
      faults: this.#controls.plannedFaults().map(faultView),
      endedCount: this.#endedCount,
    }
  }

  /** What changed since a revision, or nothing if that is too long ago or was never. */
  changesSince(revision: number): Batch | undefined {
    const missed = this.#revision - revision
    if (!(missed >= 0 && missed <= this.#marks.length)) return undefined
    const ids = { entry: new Set<number>(), subscription: new Set<number>() }
    let areFaultsChanged = false
    for (const mark of this.#marks.slice(this.#marks.length - missed)) {
      if (mark.of === 'faults') areFaultsChanged = true
      else ids[mark.of].add(mark.id)
    }
    const entries = present(ids.entry, (id) => this.#entries.get(id)?.view)
    const subscriptions = present(
      ids.subscription,
      (id) => this.#subscriptions.get(id) ?? this.#ended.get(id),
    )
    // A subscription that ended so long ago that it is forgotten: only a snapshot says that it is not active any more.
    if (subscriptions.length < ids.subscription.size) return undefined
    return {
      ...(entries.length > 0 && { entries }),
      ...(subscriptions.length > 0 && { subscriptions }),
      ...(areFaultsChanged && { faults: this.#controls.plannedFaults().map(faultView) }),
    }
  }

  /** A message comes twice: when it begins and when it is over. */
  #addMessage(
    kind: 'request' | 'callback',
    record: RecordedMessage,
    view: (id: number) => RequestView | CallbackView,
  ): void {
    const key = `${kind} ${record.id}`
    const known = this.#outstanding.get(key)
    const id = known ?? ++this.#lastEntryId
    if (record.durationMs === undefined) this.#outstanding.set(key, id)
    else this.#outstanding.delete(key)
    // An entry that was dropped while it was outstanding stays dropped: the newest are kept, by their beginning.
    if (known !== undefined && !this.#entries.has(id)) return
    this.#keep(id, { view: view(id), record })
  }

  #addNote(note: (base: { kind: 'note'; id: number; at: number }) => NoteView): void {
    const id = ++this.#lastEntryId
    this.#keep(id, { view: note({ kind: 'note', id, at: Date.now() }) })
  }

  #keep(id: number, kept: Kept): void {
    this.#entries.set(id, kept)
    dropOldest(this.#entries)
    this.#mark({ of: 'entry', id })
  }

  #setSubscription(view: SubscriptionView): void {
    this.#subscriptions.set(view.subscriptionId, view)
    this.#mark({ of: 'subscription', id: view.subscriptionId })
  }

  #end({ subscription, reason }: Extract<Change, { kind: 'ended' }>): void {
    const { subscriptionId } = subscription
    this.#subscriptions.delete(subscriptionId)
    this.#ended.set(subscriptionId, { ...subscriptionView(subscription), ended: { reason, at: Date.now() } })
    this.#endedCount++
    dropOldest(this.#ended)
    this.#mark({ of: 'subscription', id: subscriptionId })
    this.#addNote((base) => ({ ...base, note: 'ended', subscriptionId, reason }))
  }

  #mark(mark: Mark): void {
    this.#revision++
    this.#marks.push(mark)
    if (this.#marks.length > keptChanges) this.#marks.shift()
  }
}

function present<Value>(ids: ReadonlySet<number>, get: (id: number) => Value | undefined): Value[] {
  return Array.from(ids, get).filter((value) => value !== undefined)
}

function dropOldest(map: Map<number, unknown>): void {
  for (const oldest of map.keys()) {
    if (map.size <= keptEntries) return
    map.delete(oldest)
  }
}

function samples(): SampleView[] {
  return notificationTypes.flatMap((category) =>
    documentedNotificationTypes[category].map((type) => {
      const { payload } = sampleNotification(type)
      return { type, category, payload }
    }),
  )
}
