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
import { type PageState, post } from './connection.js'
import { ActionButton, CloseButton, CopyButton } from './controls.js'
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
  readonly onLeave: () => void
}

export function Details(props: DetailsProps): JSX.Element {
  const { state, place, onLeave } = props
  const isEntry = place.view === 'entry'
  const entry = isEntry ? state.entries.find(({ id }) => id === place.id) : undefined
  const subscription = isEntry ? undefined : subscriptionWith(state, place.id)
  return (
    <div class="details-body" key={hrefOf(place)}>
      <CloseButton onClick={onLeave} />
      {entry !== undefined && <Entry {...props} entry={entry} />}
      {subscription !== undefined && <Subscription {...props} subscription={subscription} />}
      {entry === undefined && subscription === undefined && state.service !== undefined && (
        <>
          <Heading>Gone</Heading>
          <p class="muted">
            The emulator keeps the newest 1,000 of each kind, and nothing of an earlier start.
          </p>
        </>
      )}
    </div>
  )
}

function subscriptionWith({ subscriptions, entries }: PageState, id: number): SubscriptionView | undefined {
  return subscriptions.find((each) => each.subscriptionId === id) ?? endOf(entries, id)?.subscription
}

function endOf(entries: readonly EntryView[], id: number): EndView | undefined {
  return entries.find((entry): entry is EndView => entry.kind === 'ended' && subscriptionOf(entry) === id)
}

function Entry(props: DetailsProps & { entry: EntryView }): JSX.Element {
  const { entry, state } = props
  if (entry.kind === 'request') return <Request entry={entry} state={state} />
  if (entry.kind === 'callback') return <Callback {...props} entry={entry} />
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
  const { reason, subscription, id } = end
  const failures = entries.filter(
    (entry) =>
      entry.kind === 'callback' &&
      subscriptionOf(entry) === subscription.subscriptionId &&
      entry.id < id &&
      isFailure(entry),
  )
  return (
    <>
      <p class={reason === 'three-failures' ? 'notice-box bad' : 'notice-box'}>
        It ended because <EndReason end={end} />.
      </p>
      {reason === 'three-failures' && (
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

function Callback(props: DetailsProps & { entry: CallbackView }): JSX.Element {
  const { entry, state, onCompose } = props
  const { subscriptionId, notificationId, username } = entry
  const end = endOf(state.entries, subscriptionId)
  const isActive = state.subscriptions.some((each) => each.subscriptionId === subscriptionId)
  const siblings = state.entries.filter(
    (each) => each.kind === 'callback' && each.notificationId === notificationId && each.id !== entry.id,
  )
  return (
    <>
      <Summary entry={entry} />
      <div class="buttons">
        {isActive && entry.cutFrom === undefined && (
          <ActionButton
            action="resend"
            body={{ entryId: entry.id }}
            done={(answer) => ('status' in answer ? `Answered ${answer.status}` : 'No answer')}
            icon="again"
            kind="primary"
          >
            Resend
          </ActionButton>
        )}
        <CurlButton entry={entry} state={state} />
        <button type="button" class="button" onClick={() => onCompose(draftOf(entry, state))}>
          Change and send…
        </button>
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
  return (
    <>
      <Heading>Subscription #{subscriptionId}</Heading>
      <p class="muted">
        {notificationTypes.join(', ')} of {nameList(usernames, shownUsers)}
      </p>
      <p class="mono">
        <Breakable text={subscription.callbackUrl} />
      </p>
      {end !== undefined && <End end={end} entries={state.entries} />}
      {end === undefined && (
        <>
          <p>
            <Pips failures={consecutiveFailures} /> {consecutiveFailures} of 3 failures in a row
          </p>
          <div class="buttons">
            <button type="button" class="button primary" onClick={() => onCompose({ username, category })}>
              Send to it…
            </button>
            <ActionButton
              action="fault"
              body={{ operation: 'callback', fault: { status: 503 }, subscriptionId }}
              done="Planned"
              icon="bolt"
            >
              Fail its next callback
            </ActionButton>
            <ActionButton action="end" body={{ subscriptionId }} done="Ended" icon="ended" kind="bad">
              End it
            </ActionButton>
          </div>
        </>
      )}
      <Section title="Its time line">
        <EntryLinks entries={story.slice(0, shownEntries)} />
        <button type="button" class="button small" onClick={() => onFilter(`#${subscriptionId}`)}>
          Show only its entries
        </button>
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
      {reason && <p class={`notice-box ${toneOf(entry)}`}>{reason}</p>}
      {kind === 'callback' && isFailed(entry) && <Parameters headers={headers} />}
      <p class="mono">
        {method} <Breakable text={target} />
      </p>
    </>
  )
}

function Parameters({ headers }: { headers: readonly Pair[] }): JSX.Element {
  const parameters = headers.filter(([name]) => name.toLowerCase() !== 'content-type')
  const sentence =
    parameters.length > 0
      ? 'Sent with the parameters'
      : 'Sent without a parameter: a receiver that checks a secret refuses it.'
  return (
    <div class="field">
      <p class={parameters.length > 0 ? 'muted' : 'pending'}>{sentence}</p>
      {parameters.length > 0 && <Pairs pairs={parameters} />}
    </div>
  )
}

/** Body and headers: the body says more. */
function Message({ title, message }: { title: string; message: AnswerView | undefined }): JSX.Element {
  if (message === undefined) {
    return (
      <Section title={title}>
        <p class="muted">No complete answer.</p>
      </Section>
    )
  }
  const { headers, body, cutFrom } = message
  const [, contentType = ''] = headers.find(([name]) => name.toLowerCase() === 'content-type') ?? []
  return (
    <Section title={title} aside={body === '' ? undefined : <CopyButton what="the body" text={body} />}>
      {body === '' ? (
        <p class="muted">No body.</p>
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
      <Pairs pairs={headers} />
    </Section>
  )
}

function Section(props: {
  title: string
  aside?: JSX.Element | undefined
  children: ComponentChildren
}): JSX.Element {
  return (
    <section>
      <div class="section-head">
        <h3>{props.title}</h3>
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
  const { entry, state } = props
  const { service } = state
  if (service === undefined || entry.cutFrom !== undefined) return undefined
  return (
    <CopyButton
      what="as curl, with its secrets"
      text={async () =>
        curlOf(await post<RequestView | CallbackView>('reveal-entry', { entryId: entry.id }), service)
      }
    >
      Copy as curl
    </CopyButton>
  )
}

/** The notification of a callback as a draft to send again, as far as the callback says what it was. */
function draftOf(entry: CallbackView, state: PageState): Draft {
  const { type, username, subscriptionId, body } = entry
  // Of a documented type the form knows the category.
  const category = subscriptionWith(state, subscriptionId)?.notificationTypes[0]
  return { type, username, category, payload: payloadOf(body) }
}

function payloadOf(body: string): object | undefined {
  try {
    return JSON.parse(body).notification.payload
  } catch {
    return undefined
  }
}
