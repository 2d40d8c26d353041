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
import { ActionButton, Button, CopyButton } from './controls.js'
import { curlOf } from './curl.js'
import { Duration, EndReason, EntryLinks, Pips, Status, titleOf } from './entry.js'
import { count, dateAndTime, isFailure, nameList, reasonOf, subscriptionOf } from './format.js'
import { ask, change, compose, type Draft, goTo, hrefOf, type Place, post, state } from './store.js'
import { Breakable, JsonText, prettyJson } from './text.js'

export function Details({ place }: { place: Extract<Place, { id: number }> }): JSX.Element {
  return (
    <div class="details-body" key={hrefOf(place)}>
      {contentOf(place)}
    </div>
  )
}

function contentOf({ view, id }: Extract<Place, { id: number }>): JSX.Element | undefined {
  const subscription = view === 'subscription' ? subscriptionWith(id) : undefined
  if (subscription !== undefined) return <Subscription subscription={subscription} />
  const entry = view === 'entry' ? state.entries.find((each) => each.id === id) : undefined
  if (entry?.kind === 'request') return <Request entry={entry} />
  if (entry?.kind === 'callback') return <Callback entry={entry} />
  if (entry !== undefined) return <Note entry={entry} />
  if (state.service === undefined) return undefined
  return (
    <>
      <Heading>Gone</Heading>
      <p class="muted">The emulator keeps the newest 1,000 of each kind, and nothing of an earlier start.</p>
    </>
  )
}

function subscriptionWith(id: number): SubscriptionView | undefined {
  return state.subscriptions.find((each) => each.subscriptionId === id) ?? endOf(id)?.subscription
}

function endOf(id: number): EndView | undefined {
  return state.entries.find(
    (entry): entry is EndView => entry.kind === 'ended' && subscriptionOf(entry) === id,
  )
}

function Note({ entry }: { entry: Exclude<EntryView, RequestView | CallbackView> }): JSX.Element {
  return (
    <>
      <Heading>{titleOf(entry)}</Heading>
      <p class="muted">{dateAndTime(entry.at)}</p>
      {entry.kind === 'ended' ? (
        <>
          <End end={entry} />
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
function End({ end }: { end: EndView }): JSX.Element {
  const { subscription, id } = end
  const isByFailures = isFailure(end)
  const failures = state.entries.filter(
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

function Request({ entry }: { entry: RequestView }): JSX.Element {
  const { subscriptionId } = entry
  return (
    <>
      <Summary entry={entry} />
      <div class="buttons">
        {subscriptionId !== undefined && <SubscriptionLink id={subscriptionId} />}
        <CurlButton entry={entry} />
      </div>
      <Message title="The emulator's answer" message={entry.answer} />
      <Message title="The request" message={entry} />
    </>
  )
}

function Callback({ entry }: { entry: CallbackView }): JSX.Element {
  const { subscriptionId, notificationId, username } = entry
  const end = endOf(subscriptionId)
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
        <CurlButton entry={entry} />
        <Button onClick={() => compose(draftOf(entry))}>Change and send…</Button>
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

function Subscription({ subscription }: { subscription: SubscriptionView }): JSX.Element {
  const { subscriptionId, usernames, notificationTypes, parameters, consecutiveFailures } = subscription
  const end = endOf(subscriptionId)
  const story = state.entries.filter((entry) => subscriptionOf(entry) === subscriptionId)
  const [username] = usernames
  const [category] = notificationTypes
  const fault = { operation: 'callback', fault: { status: 503 }, subscriptionId }
  function showItsEntries(): void {
    change({ filter: { kind: 'all', text: `#${subscriptionId}` } })
    goTo({ view: 'time-line' }, 'time-line-filter')
  }
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
        <End end={end} />
      ) : (
        <>
          <p>
            <Pips failures={consecutiveFailures} /> {consecutiveFailures} of 3 failures in a row
          </p>
          <div class="buttons">
            <Button kind="primary" onClick={() => compose({ username, category })}>
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
        <Button kind="small" onClick={showItsEntries}>
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
        <Pairs pairs={[...new URLSearchParams(body)]} />
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
function CurlButton({ entry }: { entry: RequestView | CallbackView }): JSX.Element | undefined {
  const { id, cutFrom } = entry
  const { service } = state
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
function draftOf({ type, username, subscriptionId, body }: CallbackView): Draft {
  // Of a documented type the form knows the category.
  const category = subscriptionWith(subscriptionId)?.notificationTypes[0]
  try {
    const { payload } = JSON.parse(body).notification
    return { type, username, category, payload: JSON.stringify(payload, undefined, 2) }
  } catch {
    return { type, username, category }
  }
}
