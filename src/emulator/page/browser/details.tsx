/** Everything about the entry or the subscription that was opened last. */
import type { ComponentChildren, JSX } from 'preact'
import type {
  CallbackView,
  EntryView,
  MaskedHeader,
  NoteView,
  RequestView,
  RevealedEntry,
  RevealedSubscription,
  SubscriptionView,
} from '../protocol.js'
import { type FeedState, useReveal } from './connection.js'
import { ActionButton, CopyButton, Problem } from './controls.js'
import { dateAndTime, duration, formFields, nameList, reasonInWords } from './format.js'
import { JsonText, prettyJson } from './json-text.js'
import { Outcome, Pips } from './marks.js'
import type { Draft } from './send-form.js'

export interface Selection {
  readonly kind: 'entry' | 'subscription'
  readonly id: number
}

export interface DetailsProps {
  readonly state: FeedState
  readonly selection: Selection | undefined
  /** The selected entry, if it is still kept. */
  readonly entry: EntryView | undefined
  readonly onCompose: (draft: Omit<Draft, 'revision'>) => void
  readonly onFilter: (text: string) => void
  readonly onOpen: (selection: Selection) => void
  /** Escape, or the button. */
  readonly onLeave: () => void
}

export function Details(props: DetailsProps): JSX.Element {
  const { selection, onLeave } = props
  if (selection === undefined) {
    return (
      <p class="empty">
        Open an entry of the time line or a subscription to see its headers and body, and what you can do with
        it.
      </p>
    )
  }
  return (
    // Escape is a shortcut for the button "Back to the list".
    // biome-ignore lint/a11y/noStaticElementInteractions: the region is no control of its own
    <div
      class="details"
      onKeyDown={(event) => {
        if (event.key === 'Escape') onLeave()
      }}
    >
      <button type="button" class="button quiet back" onClick={onLeave}>
        ← Back to the list
      </button>
      <Selected {...props} selection={selection} />
    </div>
  )
}

function Selected(props: DetailsProps & { selection: Selection }): JSX.Element {
  const { state, selection, entry } = props
  const { kind, id } = selection
  if (kind === 'entry') {
    if (entry === undefined) {
      return <p class="empty">This entry is gone: the emulator keeps the last 1,000.</p>
    }
    return entry.kind === 'note' ? (
      <NoteDetails key={`entry ${id}`} entry={entry} onOpen={props.onOpen} />
    ) : (
      <MessageDetails key={`entry ${id}`} {...props} entry={entry} />
    )
  }
  const subscription = [state.subscriptions, state.ended]
    .flat()
    .find(({ subscriptionId }) => subscriptionId === id)
  if (subscription === undefined) return <p class="empty">Subscription #{id} is not known any more.</p>
  return <SubscriptionDetails key={`subscription ${id}`} {...props} subscription={subscription} />
}

function NoteDetails({ entry, onOpen }: Pick<DetailsProps, 'onOpen'> & { entry: NoteView }): JSX.Element {
  if (entry.note === 'tokens-revoked') {
    return (
      <>
        <DetailsHeading>Access tokens revoked</DetailsHeading>
        <p>
          At {dateAndTime(entry.at)}. Every token issued before is refused with 401; a client that requests
          another one goes on with that.
        </p>
      </>
    )
  }
  const { subscriptionId } = entry
  return (
    <>
      <DetailsHeading>Subscription #{subscriptionId} ended</DetailsHeading>
      <p>
        At {dateAndTime(entry.at)}: {reasonInWords(entry.reason)}.
      </p>
      <OpenSubscription id={subscriptionId} onOpen={onOpen} />
    </>
  )
}

function MessageDetails(props: DetailsProps & { entry: RequestView | CallbackView }): JSX.Element {
  const { entry, state, onCompose, onOpen } = props
  const { revealed, problem, reveal, hide } = useReveal<RevealedEntry>({ entryId: entry.id })
  const shown = revealed ?? entry
  const target =
    entry.kind === 'request' ? (revealed?.path ?? entry.path) : (revealed?.callbackUrl ?? entry.callbackUrl)

  return (
    <>
      <DetailsHeading>{entry.kind === 'request' ? `Request: ${entry.operation}` : entry.type}</DetailsHeading>
      <p class="request-line mono">
        {entry.kind === 'request' ? entry.method : 'POST'} {target}
      </p>
      <dl class="facts">
        <dt>Outcome</dt>
        <dd>
          <Outcome entry={entry} />
        </dd>
        {entry.error !== undefined && (
          <>
            <dt>Error</dt>
            <dd class="error">{entry.error}</dd>
          </>
        )}
        {entry.kind === 'request' && entry.refusal !== undefined && (
          <>
            <dt>Refused</dt>
            <dd>{entry.refusal.message}</dd>
          </>
        )}
        {entry.fault !== undefined && (
          <>
            <dt>Fault</dt>
            <dd>{entry.fault}, injected</dd>
          </>
        )}
        <dt>Began</dt>
        <dd class="mono">
          {dateAndTime(entry.at)}
          {entry.durationMs !== undefined && `, took ${duration(entry.durationMs)}`}
        </dd>
      </dl>
      <div class="buttons">
        {entry.kind === 'callback' && (
          <>
            <button type="button" class="button" onClick={() => onCompose(draftOf(entry, state))}>
              Send again…
            </button>
            <OpenSubscription id={entry.subscriptionId} onOpen={onOpen} />
          </>
        )}
        {entry.hasSecrets && revealed === undefined && (
          <button type="button" class="button" onClick={reveal}>
            Reveal secrets
          </button>
        )}
        {revealed !== undefined && (
          <button type="button" class="button" onClick={hide}>
            Hide secrets
          </button>
        )}
      </div>
      <Problem text={problem} />
      <h3>Headers</h3>
      <Pairs pairs={shown.headers.map(({ name, value }: MaskedHeader) => [name, value])} />
      <Body body={shown.body} whole={entry.bodyLength} headers={entry.headers} />
    </>
  )
}

const shownUsers = 50

function SubscriptionDetails(props: DetailsProps & { subscription: SubscriptionView }): JSX.Element {
  const { subscription, onCompose, onFilter } = props
  const { subscriptionId, usernames, notificationTypes, ended } = subscription
  const { revealed, problem, reveal } = useReveal<RevealedSubscription>({ subscriptionId })
  const { callbackUrl, parameters } = revealed ?? subscription
  const [username] = usernames
  const [category] = notificationTypes

  return (
    <>
      <DetailsHeading>Subscription #{subscriptionId}</DetailsHeading>
      {ended !== undefined && (
        <p class="ended-reason">
          Ended at {dateAndTime(ended.at)}: {reasonInWords(ended.reason)}.
        </p>
      )}
      <dl class="facts">
        <dt>Callback URL</dt>
        <dd class="mono">{callbackUrl}</dd>
        <dt>Types</dt>
        <dd>{notificationTypes.join(', ')}</dd>
        <dt>Users</dt>
        <dd>{nameList(usernames, shownUsers)}</dd>
        {ended === undefined && (
          <>
            <dt>Failures</dt>
            <dd class="with-pips">
              <Pips failures={subscription.consecutiveFailures} /> {subscription.consecutiveFailures} of 3 in
              a row
            </dd>
          </>
        )}
      </dl>
      <div class="buttons">
        {ended === undefined && (
          <button
            type="button"
            class="button primary"
            onClick={() => onCompose({ ...(username && { username }), ...(category && { category }) })}
          >
            Send to it…
          </button>
        )}
        <button type="button" class="button" onClick={() => onFilter(`#${subscriptionId}`)}>
          Its time line
        </button>
        {parameters.length > 0 && ended === undefined && revealed === undefined && (
          <button type="button" class="button" onClick={reveal}>
            Reveal secrets
          </button>
        )}
      </div>
      <Problem text={problem} />
      <h3>Parameters, sent as headers of each callback</h3>
      <Pairs pairs={parameters.map(({ name, value }) => [name, value])} />
      {ended === undefined && (
        <>
          <h3>Try what would happen</h3>
          <div class="buttons">
            <ActionButton
              action="fault"
              body={{ operation: 'callback', fault: { status: 503 }, subscriptionId }}
              done="Planned"
              icon="bolt"
            >
              Fail its next callback
            </ActionButton>
            <ActionButton action="end" body={{ subscriptionId }} done="Ended" icon="ended" isDangerous>
              End it
            </ActionButton>
          </div>
        </>
      )}
    </>
  )
}

function Body(props: { body: string; whole: number; headers: readonly MaskedHeader[] }): JSX.Element {
  const { body, whole, headers } = props
  const contentType = headers.find(({ name }) => name.toLowerCase() === 'content-type')?.value ?? ''
  if (body === '') return <p class="muted">No body.</p>
  return (
    <>
      <div class="body-head">
        <h3>Body</h3>
        <CopyButton what="the body" text={body} />
      </div>
      {contentType.startsWith('application/x-www-form-urlencoded') ? (
        <Pairs pairs={formFields(body)} />
      ) : (
        <pre class="body">
          <JsonText text={prettyJson(body)} />
        </pre>
      )}
      {whole > body.length && body.length >= 16_384 && (
        <p class="muted">
          The first {body.length.toLocaleString('en')} of {whole.toLocaleString('en')} characters: no more is
          kept.
        </p>
      )}
    </>
  )
}

function Pairs({ pairs }: { pairs: readonly (readonly [string, string])[] }): JSX.Element {
  if (pairs.length === 0) return <p class="muted">None.</p>
  return (
    <dl class="pairs">
      {pairs.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{value}</dd>
        </div>
      ))}
    </dl>
  )
}

/** Takes the focus when something is opened by the keyboard. */
function DetailsHeading({ children }: { children: ComponentChildren }): JSX.Element {
  return (
    <h2 id="details-heading" tabIndex={-1}>
      {children}
    </h2>
  )
}

function OpenSubscription({ id, onOpen }: { id: number; onOpen: DetailsProps['onOpen'] }): JSX.Element {
  return (
    <button type="button" class="button" onClick={() => onOpen({ kind: 'subscription', id })}>
      Subscription #{id}
    </button>
  )
}

/** The notification of a callback as a draft to send again, as far as the callback says what it was. */
function draftOf(entry: CallbackView, { samples, subscriptions, ended }: DetailsProps['state']) {
  const subscription = [subscriptions, ended]
    .flat()
    .find((one) => one.subscriptionId === entry.subscriptionId)
  const category =
    samples.find(({ type }) => type === entry.type)?.category ?? subscription?.notificationTypes[0]
  const username = entry.username ?? subscription?.usernames[0]
  const payload = payloadOf(entry.body)
  return {
    type: entry.type,
    ...(category !== undefined && { category }),
    ...(username !== undefined && { username }),
    ...(payload !== undefined && { payload }),
  }
}

function payloadOf(body: string): object | undefined {
  try {
    return JSON.parse(body).notification.payload
  } catch {
    return undefined
  }
}
