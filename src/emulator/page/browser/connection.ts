/** The connection to the emulator: what it sends as it happens, and what the page asks it to do. */
import type { Batch, EntryView, Snapshot, SubscriptionView } from '../views.js'

/** The newest: the emulator keeps 1,000 of each kind. */
const keptEntries = 4_000

/** `lost`: the browser tries again by itself. `ended`: this emulator is closed, or another one answers now. */
export type ConnectionState = 'connecting' | 'live' | 'lost' | 'ended'

/** What the page knows. Lists are never changed, only replaced, so that a component notices a change by identity. */
export interface PageState extends Omit<Snapshot, 'service'> {
  readonly connection: ConnectionState
  readonly secretsShown: boolean
  /** Missing until the first snapshot. */
  readonly service: Snapshot['service'] | undefined
  /** Active, the newest first. */
  readonly subscriptions: SubscriptionView[]
  /** The newest first. */
  readonly entries: EntryView[]
}

const secretsKey = `secrets ${location.pathname}`

/** Follows the emulator by server-sent events. */
export class PageStore {
  state: PageState = {
    connection: 'connecting',
    secretsShown: sessionStorage.getItem(secretsKey) !== null,
    service: undefined,
    samples: [],
    subscriptions: [],
    entries: [],
    faults: [],
  }
  readonly #onChange: () => void
  #source: EventSource

  constructor(onChange: () => void) {
    this.#onChange = onChange
    this.#source = this.#connect()
  }

  /** For this tab, also after a reload: the emulator sends everything again, with its secrets or without. */
  showSecrets(secretsShown: boolean): void {
    if (secretsShown) sessionStorage.setItem(secretsKey, 'shown')
    else sessionStorage.removeItem(secretsKey)
    this.#set({ secretsShown })
    this.#source.close()
    this.#source = this.#connect()
  }

  #connect(): EventSource {
    const source = new EventSource(this.state.secretsShown ? 'events?secrets' : 'events')
    source.addEventListener('error', () => {
      this.#set({ connection: source.readyState === EventSource.CLOSED ? 'ended' : 'lost' })
    })
    source.addEventListener('closed', () => {
      source.close()
      this.#set({ connection: 'ended' })
    })
    source.addEventListener('snapshot', ({ data }) => {
      const { subscriptions, entries, ...rest }: Snapshot = JSON.parse(data)
      const newestFirst = { subscriptions: subscriptions.reverse(), entries: entries.reverse() }
      this.#set({ ...rest, ...newestFirst, connection: 'live' })
    })
    source.addEventListener('batch', ({ data }) => this.#apply(JSON.parse(data)))
    return source
  }

  #apply({ entries, subscriptions, faults }: Batch): void {
    const endedIds = new Set(
      entries.map((entry) => (entry.kind === 'ended' ? entry.subscription.subscriptionId : undefined)),
    )
    this.#set({
      faults: [...faults],
      entries: merge(this.state.entries, entries, ({ id }) => id).slice(0, keptEntries),
      subscriptions: merge(
        this.state.subscriptions,
        subscriptions,
        ({ subscriptionId }) => subscriptionId,
      ).filter(({ subscriptionId }) => !endedIds.has(subscriptionId)),
    })
  }

  #set(change: Partial<PageState>): void {
    this.state = { ...this.state, ...change }
    this.#onChange()
  }
}

/** Puts changed items into a list with the newest item (the greatest ID) first. */
function merge<Item>(items: readonly Item[], changed: readonly Item[], id: (item: Item) => number): Item[] {
  const byId = new Map([...items, ...changed].map((item) => [id(item), item]))
  return [...byId.values()].sort((a, b) => id(b) - id(a))
}

/** Asks the emulator to do something. Rejects with an `Error` whose message can be shown. */
export async function post<Reply extends object>(action: string, body: object): Promise<Reply> {
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

/** Asks the emulator to do something, and resolves with `done`. */
export async function ask(action: string, body: object, done: string): Promise<string> {
  await post(action, body)
  return done
}

/** What {@link post} rejected with, in words. */
export function problemOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
