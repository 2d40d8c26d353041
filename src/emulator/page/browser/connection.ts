/** The connection to the emulator: what it sends as it happens, and what the page asks it to do. */
import { useEffect, useState } from 'preact/hooks'
import type {
  Batch,
  EntryView,
  PlannedFaultView,
  SampleView,
  ServiceView,
  Snapshot,
  SubscriptionView,
} from '../protocol.js'

/** As many as the server keeps. */
const keptEntries = 1_000

/** `lost`: the browser tries again by itself. `ended`: this emulator is closed, or another one answers now. */
export type ConnectionState = 'connecting' | 'live' | 'lost' | 'ended'

/** What the page knows. Lists are never changed, only replaced, so that a component notices a change by identity. */
export interface FeedState {
  readonly connection: ConnectionState
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

/** Follows the emulator by server-sent events. */
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
      this.#set({ connection: source.readyState === EventSource.CLOSED ? 'ended' : 'lost' })
    })
    source.addEventListener('closed', () => {
      source.close()
      this.#set({ connection: 'ended' })
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

/** The state as it is now; the component is rendered again when the state changes. */
export function useFeed(feed: Feed): FeedState {
  const [state, setState] = useState(feed.state)
  useEffect(() => {
    // An effect runs after the first paint: the snapshot may have come before there was a listener.
    setState(feed.state)
    return feed.listen(() => setState(feed.state))
  }, [feed])
  return state
}

function idOf({ subscriptionId }: SubscriptionView): number {
  return subscriptionId
}

/** Puts changed items into a list with the newest item (the greatest ID) first. */
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
  // An unknown item that is older than those shown was dropped before, and stays dropped.
  const added = [...byId.values()].filter((item) => newest === undefined || id(item) > id(newest))
  return [...added.sort((a, b) => id(b) - id(a)), ...kept].slice(0, limit)
}

/** Asks the emulator to do something. Rejects with an `Error` whose message can be shown. */
export async function post<Answer extends object>(action: string, body: object): Promise<Answer> {
  let response: Response
  try {
    response = await fetch(`api/${action}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    })
  } catch {
    throw new Error('The emulator does not answer. Is it still running?')
  }
  const answer = await response.json()
  if (!response.ok) throw new Error(answer.message)
  return answer
}

/** What {@link post} rejected with, in words. */
export function problemOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}

export interface Reveal<Revealed> {
  /** As it was sent, once it was asked for. */
  readonly revealed: Revealed | undefined
  readonly problem: string | undefined
  readonly reveal: () => Promise<void>
  readonly hide: () => void
}

/**
 * Asks the emulator for secrets that the page shows masked.
 *
 * @param what - the body of the POST: an entry or a subscription by its ID
 */
export function useReveal<Revealed extends object>(what: object): Reveal<Revealed> {
  const [revealed, setRevealed] = useState<Revealed>()
  const [problem, setProblem] = useState<string>()

  async function reveal(): Promise<void> {
    try {
      setRevealed(await post<Revealed>('reveal', what))
      setProblem(undefined)
    } catch (error) {
      setProblem(problemOf(error))
    }
  }

  return { revealed, problem, reveal, hide: () => setRevealed(undefined) }
}
