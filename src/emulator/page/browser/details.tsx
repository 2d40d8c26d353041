/** Everything about the entry or subscription that was opened last. */
import type { JSX } from 'preact'
import type { EntryView } from '../feed.js'
import { EntryDetails } from './entry-details.js'
import type { FeedState } from './feed-client.js'
import type { Draft } from './send-form.js'
import { SubscriptionDetails } from './subscription-details.js'

export interface Selection {
  readonly kind: 'entry' | 'subscription'
  readonly id: number
}

export interface DetailsProps {
  readonly state: FeedState
  readonly selection: Selection | undefined
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
        Open an entry of the time line or a subscription: headers, bodies and what can be done with it stand
        here.
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
  const { state, selection } = props
  const { kind, id } = selection
  if (kind === 'entry') {
    const entry = state.entries.find((candidate: EntryView) => candidate.id === id)
    if (entry === undefined)
      return <p class="empty">This entry is gone: the emulator keeps the last 1,000.</p>
    return <EntryDetails key={`entry ${id}`} {...props} entry={entry} />
  }
  const subscription = [state.subscriptions, state.ended]
    .flat()
    .find(({ subscriptionId }) => subscriptionId === id)
  if (subscription === undefined) return <p class="empty">Subscription #{id} is not known any more.</p>
  return <SubscriptionDetails key={`subscription ${id}`} {...props} subscription={subscription} />
}
