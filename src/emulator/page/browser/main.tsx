/** The page: which panes there are, and which of them is open. */
import { type ComponentChildren, type JSX, render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { Button } from './controls.js'
import { Details } from './details.js'
import { FaultForm } from './fault-form.js'
import { count, isFailure } from './format.js'
import { Header } from './header.js'
import { rowId } from './list.js'
import { SendForm } from './send-form.js'
import { goTo, placeNow, state } from './store.js'
import { Subscriptions } from './subscriptions.js'
import { TimeLine } from './time-line.js'

function App(): JSX.Element {
  const place = placeNow()
  const hasDetails = 'id' in place
  const isOpened = !['time-line', 'subscriptions'].includes(place.view)

  /** Closes what is open beside the lists. */
  function leave(): void {
    const view = place.view === 'subscription' ? 'subscriptions' : 'time-line'
    goTo({ view }, hasDetails ? rowId(place) : `${view}-filter`)
  }

  return (
    <div class="app">
      <Header />
      <Announcer />
      {/* Escape is a shortcut for the button "Close". */}
      <main
        data-view={isOpened ? 'opened' : place.view}
        onKeyDown={({ key }) => {
          if (key === 'Escape' && isOpened) leave()
        }}
      >
        <section class="pane rail" aria-label="Subscriptions">
          <Subscriptions />
        </section>
        <section class="pane time-line" aria-label="Time line">
          <TimeLine />
        </section>
        {hasDetails && (
          <OpenedPane name="Details" onLeave={leave}>
            <Details place={place} />
          </OpenedPane>
        )}
        {/* Hidden and not removed: a form keeps what was typed into it. */}
        <OpenedPane name="Send" hidden={place.view !== 'send'} onLeave={leave}>
          <SendForm />
        </OpenedPane>
        <OpenedPane name="Faults" hidden={place.view !== 'faults'} onLeave={leave}>
          <FaultForm />
        </OpenedPane>
      </main>
    </div>
  )
}

/** What is open beside the lists, until its button or Escape closes it. */
function OpenedPane(props: {
  name: string
  hidden?: boolean
  onLeave: () => void
  children: ComponentChildren
}): JSX.Element {
  const { name, hidden, onLeave, children } = props
  return (
    <section class="pane opened" aria-label={name} hidden={hidden}>
      <Button icon="close" kind="quiet close" aria-label="Close" title="Close (Escape)" onClick={onLeave} />
      {children}
    </section>
  )
}

/** Announces to a screen reader how many entries there are, when nothing has happened for a second. */
function Announcer(): JSX.Element {
  const { entries } = state
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
addEventListener('statechange', renderPage)
addEventListener('hashchange', renderPage)
renderPage()

function renderPage(): void {
  if (root !== null) render(<App />, root)
}
