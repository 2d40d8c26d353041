/** What the page knows: what the emulator sends as it happens, what a person chose, and where the page is. And what it asks the emulator to do. */
import type { Batch, EntryView, SampleView, Snapshot, SubscriptionView } from '../views.js'
import type { EntryFilter } from './search.js'

/** The newest: the emulator keeps 1,000 of each kind. */
const keptEntries = 4_000

/** `lost`: the browser tries again by itself. `ended`: this emulator is closed, or another one answers now. */
export type ConnectionState = 'connecting' | 'live' | 'lost' | 'ended'

/** What is in the form, where that is not its beginning. */
export interface Draft {
  readonly type?: string | undefined
  readonly category?: SampleView['category'] | undefined
  readonly username?: string | undefined
  /** As JSON. */
  readonly payload?: string | undefined
  /** Of the last notification that was sent: its callbacks are in the time line. */
  readonly outcome?: { readonly sentId: string } | { readonly problem: string }
}

interface PageState extends Omit<Snapshot, 'service'> {
  readonly connection: ConnectionState
  readonly secretsShown: boolean
  /** Missing until the first snapshot. */
  readonly service: Snapshot['service'] | undefined
  /** Active, the newest first. */
  readonly subscriptions: SubscriptionView[]
  /** The newest first. */
  readonly entries: EntryView[]
  /** Which entries the time line shows. */
  readonly filter: EntryFilter
  /** What is in the form to send. */
  readonly draft: Draft
}

const secretsKey = `secrets ${location.pathname}`

/** Lists are never changed, only replaced, so that a component notices a change by identity. */
export let state: PageState = {
  connection: 'connecting',
  secretsShown: sessionStorage.getItem(secretsKey) !== null,
  service: undefined,
  samples: [],
  subscriptions: [],
  entries: [],
  faults: [],
  filter: { kind: 'all', text: '' },
  draft: {},
}
let source = follow()

/** Changes what a person chose. The page is rendered anew. */
export function change(changes: Partial<PageState>): void {
  state = { ...state, ...changes }
  dispatchEvent(new Event('statechange'))
}

/** For this tab, also after a reload: the emulator sends everything again, with its secrets or without. */
export function showSecrets(secretsShown: boolean): void {
  if (secretsShown) sessionStorage.setItem(secretsKey, 'shown')
  else sessionStorage.removeItem(secretsKey)
  change({ secretsShown })
  source.close()
  source = follow()
}

/** Opens the form to send. */
export function compose(draft: Draft): void {
  change({ draft })
  goTo({ view: 'send' }, 'send-user')
}

/** Follows the emulator by server-sent events. */
function follow(): EventSource {
  const source = new EventSource(state.secretsShown ? 'events?secrets' : 'events')
  source.addEventListener('error', () => {
    change({ connection: source.readyState === EventSource.CLOSED ? 'ended' : 'lost' })
  })
  source.addEventListener('closed', () => {
    source.close()
    change({ connection: 'ended' })
  })
  source.addEventListener('snapshot', ({ data }) => {
    const { subscriptions, entries, ...rest }: Snapshot = JSON.parse(data)
    const newestFirst = { subscriptions: subscriptions.reverse(), entries: entries.reverse() }
    change({ ...rest, ...newestFirst, connection: 'live' })
  })
  source.addEventListener('batch', ({ data }) => apply(JSON.parse(data)))
  return source
}

function apply({ entries, subscriptions, faults }: Batch): void {
  const endedIds = new Set(
    entries.map((entry) => (entry.kind === 'ended' ? entry.subscription.subscriptionId : undefined)),
  )
  change({
    faults: [...faults],
    entries: merge(state.entries, entries, ({ id }) => id).slice(0, keptEntries),
    subscriptions: merge(state.subscriptions, subscriptions, ({ subscriptionId }) => subscriptionId).filter(
      ({ subscriptionId }) => !endedIds.has(subscriptionId),
    ),
  })
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

/** Where the page is: in its address, so that a reload, a link and the buttons of the browser lead there. */
const lists = ['time-line', 'subscriptions', 'send', 'faults'] as const

export type Place =
  | { readonly view: (typeof lists)[number] }
  | { readonly view: 'entry' | 'subscription'; readonly id: number }

export function hrefOf(place: Place): string {
  return 'id' in place ? `#${place.view}-${place.id}` : `#${place.view}`
}

/** Goes there at once, and moves the focus to the element with this ID. */
export function goTo(place: Place, focused: string): void {
  location.hash = hrefOf(place)
  // The event of the browser comes later: the element may not exist before it.
  dispatchEvent(new Event('hashchange'))
  document.getElementById(focused)?.focus()
}

export function placeNow(): Place {
  const [, view = '', id] = /^#([a-z-]+?)(?:-(\d+))?$/.exec(location.hash) ?? []
  const list = lists.find((name) => name === view)
  if (list !== undefined) return { view: list }
  const isOfOne = id !== undefined && (view === 'entry' || view === 'subscription')
  return isOfOne ? { view, id: Number(id) } : { view: 'time-line' }
}
