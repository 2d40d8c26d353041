/** Sends a notification, beginning with a sample. */
import type { JSX } from 'preact'
import { useEffect, useMemo, useRef, useState } from 'preact/hooks'
import type { NotifyAnswer, SampleView, SubscriptionView } from '../protocol.js'
import { type FeedState, post, problemOf } from './connection.js'
import { Field, Icon } from './controls.js'
import { count, nameList } from './format.js'

type Category = SampleView['category']

/** What the form is filled with from elsewhere on the page; each has its own revision. */
export interface Draft {
  readonly revision: number
  readonly type?: string
  readonly category?: Category
  readonly username?: string
  readonly payload?: object
}

const categories: readonly Category[] = ['behavioral', 'call-score', 'conversation-ai']
const firstType = 'lowEnergyAgentOpened'
const otherType = 'another type'
const suggestedUsers = 200

type Outcome = { answer: NotifyAnswer; about: string } | { error: string }

export function SendForm({ state, draft }: { state: FeedState; draft: Draft }): JSX.Element {
  const { samples, subscriptions } = state
  const [type, setType] = useState(firstType)
  const [isOther, setIsOther] = useState(false)
  const [category, setCategory] = useState<Category>('behavioral')
  const [username, setUsername] = useState('alice')
  const [payload, setPayload] = useState('')
  const [isEdited, setIsEdited] = useState(false)
  const [outcome, setOutcome] = useState<Outcome>()
  const [isSending, setIsSending] = useState(false)
  const users = useMemo(
    () => [
      ...new Set(subscriptions.slice(0, suggestedUsers).flatMap(({ usernames }) => usernames.slice(0, 20))),
    ],
    [subscriptions],
  )
  const isUntouched = useRef(true)
  const sampleText = sampleFor(samples, type, username)
  const payloadText = isEdited ? payload : sampleText

  const [newest] = subscriptions
  useEffect(() => {
    // The first subscription that the page sees is the one to send to, unless the form is in use.
    if (newest !== undefined && isUntouched.current) fill(draftFor(newest))
  }, [newest === undefined])

  useEffect(() => {
    if (draft.revision > 0) fill(draft)
  }, [draft])

  function fill(from: Omit<Draft, 'revision'>): void {
    isUntouched.current = false
    const sample = samples.find((known) =>
      from.type === undefined ? known.category === from.category : known.type === from.type,
    )
    const filledType = from.type ?? (from.category === 'behavioral' ? firstType : sample?.type)
    if (filledType !== undefined) setType(filledType)
    setIsOther(from.type !== undefined && sample === undefined)
    if (from.category !== undefined) setCategory(from.category)
    if (from.username !== undefined) setUsername(from.username)
    setIsEdited(from.payload !== undefined)
    if (from.payload !== undefined) setPayload(JSON.stringify(from.payload, undefined, 2))
    setOutcome(undefined)
  }

  function pickType(picked: string): void {
    setIsOther(picked === otherType)
    setIsEdited(false)
    setType(picked === otherType ? '' : picked)
    setCategory(samples.find((sample) => sample.type === picked)?.category ?? category)
  }

  async function send(event: Event): Promise<void> {
    event.preventDefault()
    let parsed: unknown
    try {
      parsed = JSON.parse(payloadText)
    } catch (error) {
      setOutcome({ error: `The payload is not JSON: ${problemOf(error)}` })
      return
    }
    setIsSending(true)
    try {
      const answer = await post<NotifyAnswer>('notify', { type, category, username, payload: parsed })
      setOutcome({ answer, about: `${category} of ${username}` })
    } catch (error) {
      setOutcome({ error: problemOf(error) })
    }
    setIsSending(false)
  }

  return (
    <form
      class="form"
      aria-label="Send a notification"
      onSubmit={send}
      onInput={() => {
        isUntouched.current = false
      }}
    >
      <Field htmlFor="send-type" label="Type">
        <select
          id="send-type"
          value={isOther ? otherType : type}
          onChange={({ currentTarget }) => pickType(currentTarget.value)}
        >
          {categories.map((group) => (
            <optgroup key={group} label={group}>
              {samples
                .filter((sample) => sample.category === group)
                .map((sample) => (
                  <option key={sample.type} value={sample.type}>
                    {sample.type}
                  </option>
                ))}
            </optgroup>
          ))}
          <option value={otherType}>Another type…</option>
        </select>
      </Field>
      {isOther && (
        <>
          <Field htmlFor="send-other" label="Its name">
            <input
              id="send-other"
              required
              autocomplete="off"
              value={type}
              onInput={({ currentTarget }) => setType(currentTarget.value)}
            />
          </Field>
          <Field htmlFor="send-category" label="Counts as">
            <select
              id="send-category"
              value={category}
              onChange={({ currentTarget }) => {
                const picked = categories.find((known) => known === currentTarget.value)
                if (picked !== undefined) setCategory(picked)
              }}
            >
              {categories.map((known) => (
                <option key={known}>{known}</option>
              ))}
            </select>
          </Field>
        </>
      )}
      <Field htmlFor="send-user" label="User">
        <input
          id="send-user"
          list="send-users"
          required
          autocomplete="off"
          value={username}
          onInput={({ currentTarget }) => setUsername(currentTarget.value)}
        />
        <datalist id="send-users">
          {users.map((user) => (
            <option key={user} value={user} />
          ))}
        </datalist>
      </Field>
      <Field
        htmlFor="send-payload"
        label="Payload"
        {...(sampleText === '{}' && {
          hint: 'The payload of this type is not documented: any object will do.',
        })}
      >
        <textarea
          id="send-payload"
          class="mono"
          rows={Math.min(14, Math.max(4, payloadText.split('\n').length))}
          spellcheck={false}
          value={payloadText}
          onInput={({ currentTarget }) => {
            setPayload(currentTarget.value)
            setIsEdited(true)
          }}
        />
      </Field>
      <div class="buttons">
        <button type="submit" class="button primary" disabled={isSending}>
          <Icon name="send" />
          {isSending ? 'Sending…' : 'Send'}
        </button>
        {isEdited && (
          <button type="button" class="button quiet" onClick={() => setIsEdited(false)}>
            Back to the sample
          </button>
        )}
      </div>
      <div role="status" class="send-outcome">
        {outcome !== undefined && <SendOutcome outcome={outcome} />}
      </div>
    </form>
  )
}

function SendOutcome({ outcome }: { outcome: Outcome }): JSX.Element {
  if ('error' in outcome) return <p class="error">{outcome.error}</p>
  const { results } = outcome.answer
  if (results.length === 0) {
    return <NothingSent answer={outcome.answer} about={outcome.about} />
  }
  return (
    <>
      <p>{count(results.length, 'callback')}:</p>
      <ul class="results">
        {results.slice(0, 20).map(({ subscriptionId, status, error, subscriptionEnded }) => (
          <li key={subscriptionId}>
            <span class="id">#{subscriptionId}</span>
            <span class={error === undefined ? 'status good' : 'status bad'}>{status ?? 'no answer'}</span>
            <span class="muted">
              {error}
              {subscriptionEnded && ' The subscription has ended.'}
            </span>
          </li>
        ))}
      </ul>
      {results.length > 20 && <p class="muted">The time line has the others.</p>}
    </>
  )
}

function NothingSent({ answer, about }: { answer: NotifyAnswer; about: string }): JSX.Element {
  const { subscribed = [], subscribedCount = 0 } = answer
  return (
    <>
      <p class="warning">Nothing was sent: no active subscription is for {about}.</p>
      {subscribed.length > 0 && (
        <>
          <p class="muted">Subscribed are:</p>
          <ul class="results">
            {subscribed.map(({ subscriptionId, notificationTypes, usernames }) => (
              <li key={subscriptionId}>
                <span class="id">#{subscriptionId}</span>
                <span>
                  {nameList(usernames)}: {notificationTypes.join(', ')}
                </span>
              </li>
            ))}
          </ul>
          {subscribedCount > subscribed.length && (
            <p class="muted">and {(subscribedCount - subscribed.length).toLocaleString('en')} more</p>
          )}
        </>
      )}
    </>
  )
}

function draftFor({ usernames, notificationTypes }: SubscriptionView): Omit<Draft, 'revision'> {
  const [username] = usernames
  const [category] = notificationTypes
  return { ...(username !== undefined && { username }), ...(category !== undefined && { category }) }
}

/** The documented payload, about the user of the form. */
function sampleFor(samples: readonly SampleView[], type: string, username: string): string {
  const payload = samples.find((sample) => sample.type === type)?.payload ?? {}
  const about = 'username' in payload && username !== '' ? { ...payload, username } : payload
  return JSON.stringify(about, undefined, 2)
}
