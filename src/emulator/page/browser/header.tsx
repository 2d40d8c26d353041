/** The top of the page: which emulator this is, whether the page is connected, and what concerns all of it. */
import type { JSX } from 'preact'
import { useRef } from 'preact/hooks'
import { ConnectGuide } from './connect-guide.js'
import type { ConnectionState, FeedState } from './connection.js'
import { ActionButton, CopyButton, Icon } from './controls.js'
import { shortUrl } from './format.js'

const connections: Readonly<Record<ConnectionState, { word: string; sentence: string }>> = {
  connecting: { word: 'Connecting', sentence: '' },
  live: { word: 'Live', sentence: '' },
  lost: {
    word: 'Not connected',
    sentence:
      'The emulator does not answer. This page shows what it knew last, and goes on when the connection is back. ' +
      'If you restarted the emulator, open the new address that it printed.',
  },
  ended: {
    word: 'Ended',
    sentence:
      'This emulator has ended. This page shows what it knew last. ' +
      'After a restart the page has a new address, often on another port: open the address that the emulator printed.',
  },
}

export function Header({ state }: { state: FeedState }): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null)
  const { service, connection } = state
  const { word, sentence } = connections[connection]
  return (
    <header>
      <div class="bar">
        <h1>
          <span class="logo">
            <Icon name="logo" />
          </span>
          Notification emulator
        </h1>
        {service !== undefined && (
          <span class="address">
            <code>{shortUrl(service.baseUrl)}</code>
            <CopyButton what="the base address" text={service.baseUrl} />
          </span>
        )}
        <span class={`connection ${connection}`} role="status">
          {word}
        </span>
        <span class="bar-buttons">
          <ActionButton action="revoke-tokens" body={{}} done="Tokens revoked" icon="key">
            Revoke tokens
          </ActionButton>
          <button type="button" class="button" onClick={() => dialog.current?.showModal()}>
            <Icon name="plug" />
            Connect a client
          </button>
        </span>
      </div>
      {sentence !== '' && (
        <p class="notice" role="alert">
          {sentence}
        </p>
      )}
      <dialog ref={dialog} aria-labelledby="connect-heading">
        <div class="dialog-head">
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
