/** The top of the page: which emulator this is, whether the page is connected, and what concerns all of it. */
import type { ComponentChildren, JSX } from 'preact'
import { useRef } from 'preact/hooks'
import type { Tone } from '../../words.js'
import { ConnectGuide } from './connect-guide.js'
import type { ConnectionState, PageStore } from './connection.js'
import { ActionButton, CopyButton, Icon } from './controls.js'
import { shortUrl } from './format.js'
import { goTo, type Place } from './place.js'

const connections: Readonly<Record<ConnectionState, { tone: Tone; word: string; notice?: string }>> = {
  connecting: { tone: 'pending', word: 'Connecting' },
  live: { tone: 'good', word: 'Live' },
  lost: {
    tone: 'bad',
    word: 'Not connected',
    notice:
      'The emulator does not answer. This page shows the last known state, and continues when the connection is back. ' +
      'If you restarted the emulator, open the new address that it printed.',
  },
  ended: {
    tone: 'bad',
    word: 'Ended',
    notice:
      'This emulator has ended. This page shows the last known state. ' +
      'After a restart the page has a new address, often on another port: open the address that the emulator printed.',
  },
}

export function Header({ store, place }: { store: PageStore; place: Place }): JSX.Element {
  const { state } = store
  const dialog = useRef<HTMLDialogElement>(null)
  const { service, connection, secretsShown } = state
  const { tone, word, notice } = connections[connection]
  return (
    <header>
      <button
        type="button"
        class="button visually-hidden"
        onClick={() => goTo({ view: 'time-line' }, 'time-line-filter')}
      >
        Skip to the time line
      </button>
      <div class="bar">
        <h1>
          <Icon name="logo" />
          Notification emulator
        </h1>
        <span class={`status ${tone}`} role="status">
          {word}
        </span>
        {service !== undefined && (
          <span class="address">
            <code>{shortUrl(service.baseUrl)}</code>
            <CopyButton what="the base address" text={service.baseUrl} />
          </span>
        )}
        <span class="bar-buttons">
          <button
            type="button"
            class="button quiet"
            aria-pressed={secretsShown}
            title="For this tab, until it is closed"
            onClick={() => store.showSecrets(!secretsShown)}
          >
            <Icon name="eye" />
            Show secrets
          </button>
          <ActionButton action="revoke-tokens" body={{}} done="Tokens revoked" icon="key" kind="quiet">
            Revoke tokens
          </ActionButton>
          <button type="button" class="button quiet" onClick={() => dialog.current?.showModal()}>
            <Icon name="plug" />
            Connect
          </button>
        </span>
        <nav aria-label="Parts of the page">
          <Tab view="time-line" place={place}>
            Time line
          </Tab>
          <Tab view="subscriptions" place={place}>
            Subscriptions <Badge number={state.subscriptions.length} />
          </Tab>
          <Tab view="send" place={place}>
            Send
          </Tab>
          <Tab view="faults" place={place}>
            Faults <Badge number={state.faults.length} />
          </Tab>
        </nav>
      </div>
      {notice !== undefined && (
        <p class="notice-box bad" role="alert">
          {notice}
        </p>
      )}
      <dialog ref={dialog} aria-labelledby="connect-heading">
        <div class="section-head">
          <h2 id="connect-heading">Connect a client</h2>
          <button type="button" class="button quiet" onClick={() => dialog.current?.close()}>
            Close
          </button>
        </div>
        {service !== undefined && <ConnectGuide service={service} />}
      </dialog>
    </header>
  )
}

function Tab(props: { view: Place['view']; place: Place; children: ComponentChildren }): JSX.Element {
  const { view, place, children } = props
  return (
    <a class={`tab ${view}`} href={`#${view}`} aria-current={place.view === view ? 'page' : undefined}>
      {children}
    </a>
  )
}

function Badge({ number }: { number: number }): JSX.Element | undefined {
  return number === 0 ? undefined : <span class="badge">{number.toLocaleString('en')}</span>
}
