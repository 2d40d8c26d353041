/** The page: which panes there are, and which of them is open. */
import { type JSX, render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { type PageState, PageStore } from './connection.js'
import { Details } from './details.js'
import { FaultForm } from './fault-form.js'
import { count, isFailure } from './format.js'
import { Header } from './header.js'
import { rowId } from './list.js'
import { goTo, type Place, placeNow } from './place.js'
import type { EntryFilter } from './search.js'
import { type Draft, SendForm } from './send-form.js'
import { Subscriptions } from './subscriptions.js'
import { TimeLine } from './time-line.js'

function App({ store, place }: { store: PageStore; place: Place }): JSX.Element {
  const { state } = store
  const [filter, setFilter] = useState<EntryFilter>({ kind: 'all', text: '' })
  const [draft, setDraft] = useState<Draft>({})
  const hasDetails = 'id' in place
  const isOpened = !['time-line', 'subscriptions'].includes(place.view)

  function compose(from: Draft): void {
    setDraft(from)
    goTo({ view: 'send' }, 'send-user')
  }

  function showAll(text: string): void {
    setFilter({ kind: 'all', text })
    goTo({ view: 'time-line' }, 'time-line-filter')
  }

  /** Closes what is open beside the lists. */
  function leave(): void {
    const view = place.view === 'subscription' ? 'subscriptions' : 'time-line'
    goTo({ view }, hasDetails ? rowId(place) : `${view}-filter`)
  }

  return (
    <div class="app">
      <Header store={store} place={place} />
      <Announcer entries={state.entries} />
      {/* Escape is a shortcut for the button "Close". */}
      <main
        data-view={isOpened ? 'opened' : place.view}
        onKeyDown={({ key }) => {
          if (key === 'Escape' && isOpened) leave()
        }}
      >
        <section class="pane rail" aria-label="Subscriptions">
          <Subscriptions state={state} place={place} />
        </section>
        <section class="pane time-line" aria-label="Time line">
          <TimeLine
            state={state}
            place={place}
            filter={filter}
            onFilter={setFilter}
            onCompose={() => compose({})}
          />
        </section>
        {hasDetails && (
          <section class="pane opened" aria-label="Details">
            <Details state={state} place={place} onCompose={compose} onFilter={showAll} onLeave={leave} />
          </section>
        )}
        {/* Hidden and not removed: a form keeps what was typed into it. */}
        <section class="pane opened" aria-label="Send" hidden={place.view !== 'send'}>
          <SendForm state={state} draft={draft} onLeave={leave} />
        </section>
        <section class="pane opened" aria-label="Faults" hidden={place.view !== 'faults'}>
          <FaultForm state={state} onLeave={leave} />
        </section>
      </main>
    </div>
  )
}

/** Announces to a screen reader how many entries there are, when nothing has happened for a second. */
function Announcer({ entries }: Pick<PageState, 'entries'>): JSX.Element {
  const [announced, setAnnounced] = useState(entries)
  useEffect(() => {
    const timer = setTimeout(() => setAnnounced(entries), 1_000)
    return () => clearTimeout(timer)
  }, [entries])
  const failures = announced.filter(isFailure).length
  return (
    <p class="visually-hidden" role="status">
      {count(announced.length, 'entry', 'entries')}, {count(failures, 'failure')}
    </p>
  )
}

const root = document.getElementById('app')
const store = new PageStore(renderPage)
addEventListener('hashchange', renderPage)
renderPage()

function renderPage(): void {
  if (root !== null) render(<App store={store} place={placeNow()} />, root)
}
