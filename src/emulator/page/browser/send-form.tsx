/** Sends a notification, beginning with a sample; says beforehand which subscriptions get it. */
import type { JSX } from 'preact'
import { useState } from 'preact/hooks'
import type { SampleView, SubscriptionView } from '../views.js'
import { Button, Choice, Field, Input, Problem } from './controls.js'
import { EntryLinks } from './entry.js'
import { count, nameList } from './format.js'
import { change, type Draft, hrefOf, post, problemOf, state } from './store.js'
import { Breakable } from './text.js'

type Category = SampleView['category']

const firstType = 'lowEnergyAgentOpened'

export function SendForm(): JSX.Element {
  const { samples, subscriptions, draft } = state
  const [isSending, setIsSending] = useState(false)

  // The oldest subscription is the one to send to, until something was typed.
  const oldest = subscriptions.at(-1)
  const username = draft.username ?? oldest?.usernames[0] ?? 'alice'
  const type = draft.type ?? typeFor(samples, draft.category ?? oldest?.notificationTypes[0])
  const sample = samples.find((known) => known.type === type)
  const category = sample?.category ?? draft.category ?? 'behavioral'
  const types: Partial<Record<Category, Record<string, string>>> = {}
  for (const known of samples) types[known.category] = { ...types[known.category], [known.type]: known.type }
  const isOther = sample === undefined && samples.length > 0
  const sampleText = textOf(sample, username)
  const payload = draft.payload ?? sampleText
  const matching = subscriptions.filter(
    ({ notificationTypes, usernames }) =>
      notificationTypes.includes(category) && usernames.includes(username),
  )
  const users = new Set(subscriptions.slice(0, 200).flatMap(({ usernames }) => usernames.slice(0, 20)))

  function fill(filled: Draft): void {
    change({ draft: { ...state.draft, ...filled } })
  }

  async function send(event: Event): Promise<void> {
    event.preventDefault()
    setIsSending(true)
    const id = crypto.randomUUID()
    try {
      const notification = { id, type, category, username, payload: parsed(payload) }
      fill({ outcome: { sentId: id } })
      await post('notify', notification)
    } catch (error) {
      fill({ outcome: { problem: problemOf(error) } })
    }
    setIsSending(false)
  }

  return (
    <form class="form" aria-label="Send a notification" onSubmit={send}>
      <h2>Send a notification</h2>
      <Input
        id="send-user"
        label="User"
        list="send-users"
        required
        value={username}
        onInput={({ currentTarget }) => fill({ username: currentTarget.value })}
      />
      <datalist id="send-users">
        {Array.from(users, (user) => (
          <option key={user} value={user} />
        ))}
      </datalist>
      <Choice
        id="send-type"
        label="Type"
        value={isOther ? '' : type}
        options={{ ...types, '': 'Another type…' }}
        onPick={(picked) => fill({ type: picked, category, payload: undefined })}
      />
      {isOther && (
        <>
          <Input
            id="send-other"
            label="Its name"
            required
            value={type}
            onInput={({ currentTarget }) => fill({ type: currentTarget.value })}
          />
          <Choice
            id="send-category"
            label="Counts as"
            value={category}
            options={Object.fromEntries(Object.keys(types).map((each) => [each, each]))}
            onPick={(picked) =>
              fill({ category: samples.find((each) => each.category === picked)?.category })
            }
          />
        </>
      )}
      <Field htmlFor="send-payload" label="Payload">
        <textarea
          id="send-payload"
          rows={Math.min(14, Math.max(4, payload.split('\n').length))}
          spellcheck={false}
          value={payload}
          onInput={({ currentTarget }) => fill({ payload: currentTarget.value })}
        />
        {sampleText === '{}' && <p class="hint muted">Not documented for this type: any object will do.</p>}
      </Field>
      <Recipients matching={matching} about={`${category} of ${username}`} />
      <div class="buttons">
        <Button type="submit" icon="send" kind="primary" disabled={isSending}>
          Send
        </Button>
        {draft.payload !== undefined && (
          <Button kind="quiet" onClick={() => fill({ payload: undefined })}>
            Back to the sample
          </Button>
        )}
      </div>
      <div role="status">{draft.outcome !== undefined && <Sent outcome={draft.outcome} />}</div>
    </form>
  )
}

function Recipients(props: { matching: readonly SubscriptionView[]; about: string }): JSX.Element {
  const { matching, about } = props
  if (matching.length > 0) {
    return (
      <p class="notice-box good">
        {count(matching.length, 'subscription gets', 'subscriptions get')} <Breakable text={about} />:{' '}
        {matching.slice(0, 10).map(({ subscriptionId: id }) => (
          <a key={id} href={hrefOf({ view: 'subscription', id })}>
            #{id}{' '}
          </a>
        ))}
        {matching.length > 10 && '…'}
      </p>
    )
  }
  return (
    <div class="notice-box pending">
      <p>
        No active subscription is for <Breakable text={about} />.
      </p>
      {state.subscriptions.slice(0, 3).map(({ subscriptionId, usernames, notificationTypes }) => (
        <p key={subscriptionId}>
          #{subscriptionId} is for {notificationTypes.join(', ')} of {nameList(usernames)}.
        </p>
      ))}
    </div>
  )
}

function Sent({ outcome }: { outcome: NonNullable<Draft['outcome']> }): JSX.Element {
  if ('problem' in outcome) return <Problem text={outcome.problem} />
  const callbacks = state.entries.filter(
    (entry) => entry.kind === 'callback' && entry.notificationId === outcome.sentId,
  )
  return (
    <>
      <p>Sent {count(callbacks.length, 'callback')}.</p>
      <EntryLinks entries={callbacks.slice(0, 20)} />
      {callbacks.length > 20 && <p class="muted">The time line has the others.</p>}
    </>
  )
}

function parsed(payload: string): unknown {
  try {
    return JSON.parse(payload)
  } catch (error) {
    throw new Error(`The payload is not JSON: ${problemOf(error)}`)
  }
}

/** The type that the form begins with for a category. */
function typeFor(samples: readonly SampleView[], category: Category | undefined): string {
  if (category === undefined || category === 'behavioral') return firstType
  return samples.find((sample) => sample.category === category)?.type ?? firstType
}

function textOf(sample: SampleView | undefined, username: string): string {
  const payload = sample?.payload ?? {}
  const about = 'username' in payload && username !== '' ? { ...payload, username } : payload
  return JSON.stringify(about, undefined, 2)
}
