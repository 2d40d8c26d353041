/** A request or a callback with its headers and its body. */
import type { JSX } from 'preact'
import type { CallbackView, EntryView, MaskedHeader, NoteView, RequestView, RevealedEntry } from '../feed.js'
import { CopyButton } from './copy-button.js'
import type { DetailsProps } from './details.js'
import { dateAndTime, duration, formFields, reasonInWords } from './format.js'
import { JsonText, prettyJson } from './json-text.js'
import { Problem } from './problem.js'
import { Outcome } from './time-line.js'
import { useReveal } from './use-reveal.js'

export function EntryDetails(props: DetailsProps & { entry: EntryView }): JSX.Element {
  const { entry } = props
  return entry.kind === 'note' ? (
    <NoteDetails {...props} entry={entry} />
  ) : (
    <MessageDetails {...props} entry={entry} />
  )
}

function NoteDetails({ entry, onOpen }: DetailsProps & { entry: NoteView }): JSX.Element {
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

export function Pairs({ pairs }: { pairs: readonly (readonly [string, string])[] }): JSX.Element {
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
export function DetailsHeading({ children }: { children: (string | number)[] | string }): JSX.Element {
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
