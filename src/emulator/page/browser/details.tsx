/** Everything about one entry or one subscription, and what can be done with it. */
import type { ComponentChildren, JSX } from 'preact'
import { isFailed, toneOf } from '../../words.js'
import type {
  AnswerView,
  CallbackView,
  EndView,
  EntryView,
  Pair,
  RequestView,
  SubscriptionView,
} from '../views.js'
import { ask, type PageState, post } from './connection.js'
import { ActionButton, Button, CopyButton } from './controls.js'
import { curlOf } from './curl.js'
import { Duration, EndReason, EntryLinks, Pips, Status, titleOf } from './entry.js'
import { count, dateAndTime, formFields, isFailure, nameList, reasonOf, subscriptionOf } from './format.js'
import { hrefOf, type Place } from './place.js'
import type { Draft } from './send-form.js'
import { Breakable, JsonText, prettyJson } from './text.js'

export interface DetailsProps {
  readonly state: PageState
  readonly place: Extract<Place, { id: number }>
  readonly onCompose: (draft: Draft) => void
  /** Shows the entries that match this text. */
  readonly onFilter: (text: string) => void
}

export function Details(props: DetailsProps): JSX.Element {
  return (
    <div class="details-body" key={hrefOf(props.place)}>
      {contentOf(props)}
    </div>
  )
}

function contentOf(props: DetailsProps): JSX.Element | undefined {
  const { state, place } = props
  const subscription = place.view === 'subscription' ? subscriptionWith(state, place.id) : undefined
  if (subscription !== undefined) return <Subscription {...props} subscription={subscription} />
  const entry = place.view === 'entry' ? state.entries.find(({ id }) => id === place.id) : undefined
  if (entry?.kind === 'request') return <Request entry={entry} state={state} />
  if (entry?.kind === 'callback') return <Callback {...props} entry={entry} />
  if (entry !== undefined) return <Note entry={entry} state={state} />
  if (state.service === undefined) return undefined
  return (
    <>
      <Heading>Gone</Heading>
      <p class="muted">The emulator keeps the newest 1,000 of each kind, and nothing of an earlier start.</p>
    </>
  )
}

function subscriptionWith({ subscriptions, entries }: PageState, id: number): SubscriptionView | undefined {
  return subscriptions.find((each) => each.subscriptionId === id) ?? endOf(entries, id)?.subscription
}

function endOf(entries: readonly EntryView[], id: number): EndView | undefined {
  return entries.find((entry): entry is EndView => entry.kind === 'ended' && subscriptionOf(entry) === id)
}

function Note(props: {
  entry: Exclude<EntryView, RequestView | CallbackView>
  state: PageState
}): JSX.Element {
  const { entry, state } = props
  return (
    <>
      <Heading>{titleOf(entry)}</Heading>
      <p class="muted">{dateAndTime(entry.at)}</p>
      {entry.kind === 'ended' ? (
        <>
          <End end={entry} entries={state.entries} />
          <div class="buttons">
            <SubscriptionLink id={entry.subscription.subscriptionId} />
          </div>
        </>
      ) : (
        <p>Every token issued before is refused with 401. A client that requests another one goes on.</p>
      )}
    </>
  )
}

/** Why a subscription ended; with the three failures, if these ended it. */
function End({ end, entries }: { end: EndView; entries: readonly EntryView[] }): JSX.Element {
  const { subscription, id } = end
  const isByFailures = isFailure(end)
  const failures = entries.filter(
    (entry) =>
      entry.kind === 'callback' &&
      entry.subscriptionId === subscription.subscriptionId &&
      entry.id < id &&
      isFailure(entry),
  )
  return (
    <>
      <p class={isByFailures ? 'notice-box bad' : 'notice-box'}>
        It ended because <EndReason end={end} />.
      </p>
      {isByFailures && (
        <Section title="The three failures">
          <EntryLinks entries={failures.slice(0, 3).reverse()} />
        </Section>
      )}
    </>
  )
}

function Request({ entry, state }: { entry: RequestView; state: PageState }): JSX.Element {
  const { subscriptionId } = entry
  return (
    <>
      <Summary entry={entry} />
      <div class="buttons">
        {subscriptionId !== undefined && <SubscriptionLink id={subscriptionId} />}
        <CurlButton entry={entry} state={state} />
      </div>
      <Message title="The emulator's answer" message={entry.answer} />
      <Message title="The request" message={entry} />
    </>
  )
}

function Callback({ entry, state, onCompose }: DetailsProps & { entry: CallbackView }): JSX.Element {
  const { subscriptionId, notificationId, username } = entry
  const end = endOf(state.entries, subscriptionId)
  const isActive = state.subscriptions.some((each) => each.subscriptionId === subscriptionId)
  const siblings = state.entries.filter(
    (each) => each.kind === 'callback' && each.notificationId === notificationId && each.id !== entry.id,
  )
  async function resend(): Promise<string> {
    const { status } = await post<{ status?: number }>('resend', { entryId: entry.id })
    return status === undefined ? 'No answer' : `Answered ${status}`
  }
  return (
    <>
      <Summary entry={entry} />
      <div class="buttons">
        {isActive && entry.cutFrom === undefined && (
          <ActionButton icon="again" kind="primary" act={resend}>
            Resend
          </ActionButton>
        )}
        <CurlButton entry={entry} state={state} />
        <Button onClick={() => onCompose(draftOf(entry, state))}>Change and send…</Button>
        <SubscriptionLink id={subscriptionId} />
      </div>
      {!isActive && (
        <p>
          Subscription #{subscriptionId} has ended
          {end !== undefined && (
            <>
              , because <EndReason end={end} />
            </>
          )}
          : nothing is sent to it any more.
        </p>
      )}
      <Message title="The receiver's answer" message={entry.answer} />
      <Message title={`The callback for ${username}`} message={entry} />
      {siblings.length > 0 && (
        <Section title="Other callbacks of this notification">
          <EntryLinks entries={siblings} />
        </Section>
      )}
    </>
  )
}

const shownUsers = 50
const shownEntries = 50

function Subscription(props: DetailsProps & { subscription: SubscriptionView }): JSX.Element {
  const { subscription, state, onCompose, onFilter } = props
  const { subscriptionId, usernames, notificationTypes, parameters, consecutiveFailures } = subscription
  const end = endOf(state.entries, subscriptionId)
  const story = state.entries.filter((entry) => subscriptionOf(entry) === subscriptionId)
  const [username] = usernames
  const [category] = notificationTypes
  const fault = { operation: 'callback', fault: { status: 503 }, subscriptionId }
  return (
    <>
      <Heading>Subscription #{subscriptionId}</Heading>
      <p class="muted">
        <Breakable text={`${notificationTypes.join(', ')} of ${nameList(usernames, shownUsers)}`} />
      </p>
      <p class="mono">
        <Breakable text={subscription.callbackUrl} />
      </p>
      {end !== undefined ? (
        <End end={end} entries={state.entries} />
      ) : (
        <>
          <p>
            <Pips failures={consecutiveFailures} /> {consecutiveFailures} of 3 failures in a row
          </p>
          <div class="buttons">
            <Button kind="primary" onClick={() => onCompose({ username, category })}>
              Send to it…
            </Button>
            <ActionButton icon="bolt" act={() => ask('fault', fault, 'Planned')}>
              Fail its next callback
            </ActionButton>
            <ActionButton icon="ended" kind="bad" act={() => ask('end', { subscriptionId }, 'Ended')}>
              End it
            </ActionButton>
          </div>
        </>
      )}
      <Section title="Its time line">
        <EntryLinks entries={story.slice(0, shownEntries)} />
        <Button kind="small" onClick={() => onFilter(`#${subscriptionId}`)}>
          Show only its entries
        </Button>
      </Section>
      <Section title="Parameters, sent as headers of each callback">
        <Pairs pairs={parameters} />
      </Section>
    </>
  )
}

/** Takes the focus when something is opened by the keyboard. */
function Heading({ children }: { children: ComponentChildren }): JSX.Element {
  return (
    <h2 id="details-heading" tabIndex={-1}>
      {children}
    </h2>
  )
}

/** What it was, how it ended and why. Of a failed callback also what the receiver had to check it by. */
function Summary({ entry }: { entry: RequestView | CallbackView }): JSX.Element {
  const { kind, method, target, at, fault, headers } = entry
  const reason = (kind === 'request' && entry.refusal?.message) || reasonOf(entry)
  return (
    <>
      <Heading>
        <Breakable text={titleOf(entry)} />
      </Heading>
      <p class="facts">
        <Status entry={entry} /> <Duration entry={entry} /> <span class="muted">{dateAndTime(at)}</span>
      </p>
      {fault !== undefined && <p class="notice-box pending">A planned fault: {fault}.</p>}
      {reason && <p class={`notice-box ${isFailed(entry) ? 'bad' : toneOf(entry)}`}>{reason}</p>}
      {kind === 'callback' && fault === undefined && isFailed(entry) && <Parameters headers={headers} />}
      <p class="mono">
        {method} <Breakable text={target} />
      </p>
    </>
  )
}

function Parameters({ headers }: { headers: readonly Pair[] }): JSX.Element {
  const parameters = headers.filter(([name]) => name.toLowerCase() !== 'content-type')
  if (parameters.length === 0) {
    return <p class="pending">Sent without a parameter: a receiver that checks a secret refuses it.</p>
  }
  return (
    <div class="field">
      <p class="muted">Sent with the parameters</p>
      <Pairs pairs={parameters} />
    </div>
  )
}

/** Body and headers: the body says more. */
function Message({ title, message }: { title: string; message: AnswerView | undefined }): JSX.Element {
  const { headers = [], body = '', cutFrom }: Partial<AnswerView> = message ?? {}
  const [, contentType = ''] = headers.find(([name]) => name.toLowerCase() === 'content-type') ?? []
  return (
    <Section title={title} aside={body !== '' && <CopyButton what="the body" text={body} />}>
      {body === '' ? (
        <p class="muted">{message === undefined ? 'No complete answer.' : 'No body.'}</p>
      ) : contentType.startsWith('application/x-www-form-urlencoded') ? (
        <Pairs pairs={formFields(body)} />
      ) : (
        <pre class="body">
          <JsonText text={prettyJson(body)} />
        </pre>
      )}
      {cutFrom !== undefined && (
        <p class="muted">Only the beginning is kept, of {count(cutFrom, 'character')}.</p>
      )}
      {message !== undefined && <Pairs pairs={headers} />}
    </Section>
  )
}

function Section(props: {
  title: string
  aside?: ComponentChildren
  children: ComponentChildren
}): JSX.Element {
  return (
    <section>
      <div class="section-head">
        <h3>
          <Breakable text={props.title} />
        </h3>
        {props.aside}
      </div>
      {props.children}
    </section>
  )
}

function Pairs({ pairs }: { pairs: readonly Pair[] }): JSX.Element {
  if (pairs.length === 0) return <p class="muted">None.</p>
  return (
    <dl class="pairs">
      {pairs.map(([name, value]) => (
        <div key={name}>
          <dt class="muted">{name}</dt>
          <dd>{value === '' ? <span class="muted">empty</span> : <Breakable text={value} />}</dd>
        </div>
      ))}
    </dl>
  )
}

function SubscriptionLink({ id }: { id: number }): JSX.Element {
  return (
    <a class="button" href={hrefOf({ view: 'subscription', id })}>
      Subscription #{id}
    </a>
  )
}

/** What is copied has its secrets, also while the page masks them: it is there to be run. */
function CurlButton(props: { entry: RequestView | CallbackView; state: PageState }): JSX.Element | undefined {
  const { id, cutFrom } = props.entry
  const { service } = props.state
  if (service === undefined || cutFrom !== undefined) return undefined
  const curl = async () =>
    curlOf(await post<RequestView | CallbackView>('reveal-entry', { entryId: id }), service)
  return (
    <CopyButton what="as curl, with its secrets" text={curl}>
      Copy as curl
    </CopyButton>
  )
}

/** The notification of a callback as a draft to send again, as far as the callback says what it was. */
function draftOf({ type, username, subscriptionId, body }: CallbackView, state: PageState): Draft {
  // Of a documented type the form knows the category.
  const category = subscriptionWith(state, subscriptionId)?.notificationTypes[0]
  try {
    const { payload } = JSON.parse(body).notification
    return { type, username, category, payload: JSON.stringify(payload, undefined, 2) }
  } catch {
    return { type, username, category }
  }
}
