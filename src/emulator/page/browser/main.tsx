/** The page: what is where at each width, and which part is open. */
import { type JSX, render } from 'preact'
import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { Feed, type FeedState, useFeed } from './connection.js'
import { focusSoon } from './controls.js'
import { Details, type Selection } from './details.js'
import { FaultForm } from './fault-form.js'
import { count, isFailure, reasonInWords } from './format.js'
import { Header } from './header.js'
import type { EntryFilter } from './search.js'
import { type Draft, SendForm } from './send-form.js'
import { Subscriptions } from './subscriptions.js'
import { type Tab, Tabs } from './tabs.js'
import { TimeLine, useTimeLine } from './time-line.js'

type View = 'time-line' | 'subscriptions' | 'send' | 'faults' | 'details'

function App({ feed }: { feed: Feed }): JSX.Element {
  const state = useFeed(feed)
  const layout = useLayout()
  const shownEntries = useTimeLine(state.entries)
  const [view, setView] = useState<View>('time-line')
  const [selection, setSelection] = useState<Selection>()
  const [filter, setFilter] = useState<EntryFilter>({ kind: 'all', text: '' })
  const [draft, setDraft] = useState<Draft>({ revision: 0 })

  const open = useCallback((opened: Selection, by: 'pointer' | 'keyboard') => {
    setSelection(opened)
    setView('details')
    if (by === 'keyboard') focusSoon('details-heading')
  }, [])
  const compose = useCallback((from: Omit<Draft, 'revision'>) => {
    setDraft(({ revision }) => ({ ...from, revision: revision + 1 }))
    setView('send')
    focusSoon('send-type')
  }, [])

  /** A list that is a pane is in sight already: the tab beside it stays. */
  function show(list: 'time-line' | 'subscriptions', focused: string): void {
    const isTab = layout === 'narrow' || (layout === 'medium' && list === 'subscriptions')
    if (isTab) setView(list)
    focusSoon(focused)
  }

  const timeLine = (
    <TimeLine
      state={state}
      shown={shownEntries}
      filter={filter}
      onFilter={setFilter}
      selectedId={selection?.kind === 'entry' ? selection.id : undefined}
      onMove={(id) => setSelection({ kind: 'entry', id })}
      onOpen={(id, by) => open({ kind: 'entry', id }, by)}
      onCompose={() => compose({})}
    />
  )
  const subscriptions = (
    <Subscriptions
      state={state}
      selectedId={selection?.kind === 'subscription' ? selection.id : undefined}
      onMove={(id) => setSelection({ kind: 'subscription', id })}
      onOpen={(id, by) => open({ kind: 'subscription', id }, by)}
    />
  )
  const details = (
    <Details
      state={state}
      entry={selection?.kind === 'entry' ? shownEntries.find(selection.id) : undefined}
      selection={selection}
      onCompose={compose}
      onFilter={(text) => {
        setFilter({ kind: 'all', text })
        show('time-line', 'time-line-filter')
      }}
      onOpen={(opened) => open(opened, 'keyboard')}
      onLeave={() => {
        const list = selection?.kind === 'subscription' ? 'subscriptions' : 'time-line'
        show(list, `${list}-list`)
      }}
    />
  )
  const planned = state.faults.reduce((sum, { remaining }) => sum + remaining, 0)
  const tools: readonly Tab<View>[] = [
    { view: 'send', label: 'Send', content: <SendForm state={state} draft={draft} /> },
    { view: 'faults', label: 'Faults', badge: planned, content: <FaultForm state={state} /> },
    { view: 'details', label: 'Details', content: details },
  ]
  const lists: readonly Tab<View>[] = [
    { view: 'time-line', label: 'Time line', content: timeLine },
    {
      view: 'subscriptions',
      label: 'Subscriptions',
      badge: state.subscriptions.length,
      content: subscriptions,
    },
  ]
  // What has no pane of its own is a tab.
  const tabs = { wide: tools, medium: [...lists.slice(1), ...tools], narrow: [...lists, ...tools] }[layout]
  return (
    <div class={`app ${layout}`}>
      <a class="skip" href="#main">
        Skip to the time line
      </a>
      <Header state={state} />
      <Announcer state={state} />
      <main id="main" tabIndex={-1}>
        {layout === 'wide' && <Pane label="Subscriptions">{subscriptions}</Pane>}
        {layout !== 'narrow' && <Pane label="Time line">{timeLine}</Pane>}
        <Tabs tabs={tabs} view={view} onView={setView} />
      </main>
    </div>
  )
}

function Pane({ label, children }: { label: string; children: JSX.Element }): JSX.Element {
  return (
    <section class="pane" aria-label={label}>
      {children}
    </section>
  )
}

type Layout = 'wide' | 'medium' | 'narrow'

const wide = matchMedia('(min-width: 1180px)')
const narrow = matchMedia('(max-width: 859px)')

/** The arrangement that fits the window. */
function useLayout(): Layout {
  const [layout, setLayout] = useState(layoutNow)
  useEffect(() => {
    const update = () => setLayout(layoutNow())
    for (const query of [wide, narrow]) query.addEventListener('change', update)
    // An effect runs after the first paint: by then the window may have another width.
    update()
    return () => {
      for (const query of [wide, narrow]) query.removeEventListener('change', update)
    }
  }, [])
  return layout
}

function layoutNow(): Layout {
  if (wide.matches) return 'wide'
  return narrow.matches ? 'narrow' : 'medium'
}

const announcePauseMs = 2_000

/** Says to a screen reader what arrived: one sentence for many events. */
function Announcer({ state }: { state: FeedState }): JSX.Element {
  const [text, setText] = useState('')
  const latest = useRef(state)
  latest.current = state
  useEffect(() => {
    let announced: number | undefined
    const timer = setInterval(() => {
      const { entries, service } = latest.current
      if (service === undefined) return
      const newest = entries[0]?.id ?? 0
      if (announced !== undefined && newest > announced) setText(summaryOf(latest.current, announced))
      announced = newest
    }, announcePauseMs)
    return () => clearInterval(timer)
  }, [])
  return (
    <div class="visually-hidden" role="log">
      {text}
    </div>
  )
}

function summaryOf({ entries }: FeedState, since: number): string {
  const fresh = entries.filter(({ id }) => id > since)
  const failures = fresh.filter(isFailure).length
  const endings = fresh.map((entry) =>
    entry.kind === 'note' && entry.note === 'ended'
      ? ` Subscription ${entry.subscriptionId} ended: ${reasonInWords(entry.reason)}.`
      : '',
  )
  const failed = failures === 0 ? '' : `, ${count(failures, 'failure')}`
  return `${count(fresh.length, 'new entry', 'new entries')}${failed}.${endings.slice(0, 3).join('')}`
}

const root = document.getElementById('app')
if (root !== null) render(<App feed={new Feed()} />, root)
