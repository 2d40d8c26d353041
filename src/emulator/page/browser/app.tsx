/** The page: what is where, at each width, and what is looked at. */
import type { JSX } from 'preact'
import { useCallback, useState } from 'preact/hooks'
import { Announcer } from './announcer.js'
import { Details, type Selection } from './details.js'
import { FaultForm } from './fault-form.js'
import { type Feed, useFeed } from './feed-client.js'
import { focusSoon } from './focus.js'
import { Header } from './header.js'
import type { EntryFilter } from './search.js'
import { type Draft, SendForm } from './send-form.js'
import { Subscriptions } from './subscriptions.js'
import { type Tab, Tabs } from './tabs.js'
import { TimeLine } from './time-line.js'
import { useLayout } from './use-layout.js'

export type View = 'time-line' | 'subscriptions' | 'send' | 'faults' | 'details'

export function App({ feed }: { feed: Feed }): JSX.Element {
  const state = useFeed(feed)
  const layout = useLayout()
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
        <Tabs tabs={tabsFor(layout, lists, tools)} view={view} onView={setView} />
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

/** What has no pane of its own is a tab. */
function tabsFor(
  layout: ReturnType<typeof useLayout>,
  lists: readonly Tab<View>[],
  tools: readonly Tab<View>[],
): readonly Tab<View>[] {
  if (layout === 'wide') return tools
  if (layout === 'narrow') return [...lists, ...tools]
  return [...lists.slice(1), ...tools]
}
