/** Follows the emulator by server-sent events and holds what they say. */
import { useEffect, useState } from 'preact/hooks'
import type {
  Batch,
  EntryView,
  PlannedFaultView,
  SampleView,
  ServiceView,
  Snapshot,
  SubscriptionView,
} from '../feed.js'

/** As many as the server keeps. */
const keptEntries = 1_000

/** `lost`: the browser tries again by itself. `gone`: what answers now is not the emulator that this page is of. */
export type Connection = 'connecting' | 'live' | 'lost' | 'gone'

/** What the page knows. Lists are never changed, only replaced: a component sees by identity that one is new. */
export interface FeedState {
  readonly connection: Connection
  readonly service: ServiceView | undefined
  readonly samples: readonly SampleView[]
  /** Active, the newest first. */
  readonly subscriptions: readonly SubscriptionView[]
  /** The last that ended first. */
  readonly ended: readonly SubscriptionView[]
  readonly endedCount: number
  /** The newest first. */
  readonly entries: readonly EntryView[]
  readonly faults: readonly PlannedFaultView[]
}

export class Feed {
  state: FeedState = {
    connection: 'connecting',
    service: undefined,
    samples: [],
    subscriptions: [],
    ended: [],
    endedCount: 0,
    entries: [],
    faults: [],
  }
  readonly #listeners = new Set<() => void>()
  #isScheduled = false

  constructor() {
    const source = new EventSource('events')
    source.addEventListener('open', () => {
      // Not before there is something to show: the first snapshot may come a while after the connection.
      if (this.state.service !== undefined) this.#set({ connection: 'live' })
    })
    source.addEventListener('error', () => {
      this.#set({ connection: source.readyState === EventSource.CLOSED ? 'gone' : 'lost' })
    })
    source.addEventListener('snapshot', ({ data }) => this.#replace(JSON.parse(data)))
    source.addEventListener('batch', ({ data }) => this.#apply(JSON.parse(data)))
  }

  /** Calls back after changes, at most once for each frame that the browser paints. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  #set(change: Partial<FeedState>): void {
    this.state = { ...this.state, ...change }
    if (this.#isScheduled) return
    this.#isScheduled = true
    requestAnimationFrame(() => {
      this.#isScheduled = false
      for (const listener of this.#listeners) listener()
    })
  }

  #replace({ subscriptions, ended, entries, ...rest }: Snapshot): void {
    this.#set({
      ...rest,
      connection: 'live',
      subscriptions: subscriptions.toReversed(),
      ended: ended.toReversed(),
      entries: entries.toReversed(),
    })
  }

  #apply({ entries, subscriptions, faults }: Batch): void {
    if (faults !== undefined) this.#set({ faults })
    if (entries !== undefined) this.#set({ entries: merge(this.state.entries, entries, ({ id }) => id) })
    if (subscriptions !== undefined) this.#applySubscriptions(subscriptions)
  }

  #applySubscriptions(changed: readonly SubscriptionView[]): void {
    const ended = changed.filter((subscription) => subscription.ended !== undefined)
    const endedIds = new Set(ended.map(idOf))
    const active = changed.filter((subscription) => subscription.ended === undefined)
    const stillActive = this.state.subscriptions.filter((subscription) => !endedIds.has(idOf(subscription)))
    this.#set({
      subscriptions: merge(stillActive, active, idOf, Number.POSITIVE_INFINITY),
      ended: [...ended.toReversed(), ...this.state.ended].slice(0, keptEntries),
      endedCount: this.state.endedCount + ended.length,
    })
  }
}

/** The state as it is now; the component is rendered again when it changes. */
export function useFeed(feed: Feed): FeedState {
  const [state, setState] = useState(feed.state)
  useEffect(() => {
    // An effect runs after the first paint: by then the snapshot may have come, and been told to nobody.
    setState(feed.state)
    return feed.listen(() => setState(feed.state))
  }, [feed])
  return state
}

function idOf({ subscriptionId }: SubscriptionView): number {
  return subscriptionId
}

/** Puts changed items into a list that stands newest (greatest id) first. */
function merge<Item>(
  items: readonly Item[],
  changed: readonly Item[],
  id: (item: Item) => number,
  limit = keptEntries,
): readonly Item[] {
  const byId = new Map(changed.map((item) => [id(item), item]))
  const kept = items.map((item) => {
    const replacement = byId.get(id(item))
    byId.delete(id(item))
    return replacement ?? item
  })
  const [newest] = items
  // An unknown item that is older than those shown was dropped before: it stays dropped.
  const added = [...byId.values()].filter((item) => newest === undefined || id(item) > id(newest))
  return [...added.sort((a, b) => id(b) - id(a)), ...kept].slice(0, limit)
}
