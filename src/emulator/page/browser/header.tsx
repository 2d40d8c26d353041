/** The top of the page: which emulator this is, whether the page is connected, and what concerns all of it. */
import type { JSX } from 'preact'
import { useRef } from 'preact/hooks'
import type { Tone } from '../../words.js'
import { ConnectGuide } from './connect-guide.js'
import { ActionButton, Button, CopyButton, Icon } from './controls.js'
import { shortUrl } from './format.js'
import { ask, type ConnectionState, goTo, type Place, placeNow, showSecrets, state } from './store.js'

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

export function Header(): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  const { service, connection, secretsShown } = state
  const { tone, word, notice } = connections[connection]
  return (
    <header>
      <Button kind="visually-hidden" onClick={() => goTo({ view: 'time-line' }, 'time-line-filter')}>
        Skip to the time line
      </Button>
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
          <Button
            icon="eye"
            kind="quiet"
            aria-pressed={secretsShown}
            title="For this tab, until it is closed"
            onClick={() => showSecrets(!secretsShown)}
          >
            Show secrets
          </Button>
          <ActionButton icon="key" kind="quiet" act={() => ask('revoke-tokens', {}, 'Tokens revoked')}>
            Revoke tokens
          </ActionButton>
          <Button icon="plug" kind="quiet" onClick={() => dialog.current?.showModal()}>
            Connect
          </Button>
        </span>
        <nav aria-label="Parts of the page">
          <Tab view="time-line" name="Time line" />
          <Tab view="subscriptions" name="Subscriptions" count={state.subscriptions.length} />
          <Tab view="send" name="Send" />
          <Tab view="faults" name="Faults" count={state.faults.length} />
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
          <Button kind="quiet" onClick={() => dialog.current?.close()}>
            Close
          </Button>
        </div>
        {service !== undefined && <ConnectGuide service={service} />}
      </dialog>
    </header>
  )
}

function Tab(props: { view: Place['view']; name: string; count?: number }): JSX.Element {
  const { view, name, count = 0 } = props
  return (
    <a class={`tab ${view}`} href={`#${view}`} aria-current={placeNow().view === view ? 'page' : undefined}>
      {name} {count > 0 && <span class="badge">{count.toLocaleString('en')}</span>}
    </a>
  )
}
