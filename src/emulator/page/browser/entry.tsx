/** An entry of the time line in one line, and the marks that lists and details share. */
import type { JSX } from 'preact'
import { clock, durationInWords, toneOf } from '../../words.js'
import type { CallbackView, EntryView, RequestView } from '../views.js'
import { count } from './format.js'
import { hrefOf } from './place.js'

/** Failures in a row that end a subscription (docs/service.md, Delivery). */
const failuresToTheEnd = 3

/** The status, or that there is none yet, or none at all. */
export function EntryOutcome({ entry }: { entry: RequestView | CallbackView }): JSX.Element {
  const { status, durationMs } = entry
  return (
    <span class="outcome">
      {durationMs !== undefined && <span class="muted">{durationInWords(durationMs)}</span>}
      <span class={`status ${toneOf(entry)}`}>
        {status ?? (durationMs === undefined ? 'waiting' : 'no answer')}
      </span>
    </span>
  )
}

/** A pip for each failure in a row. */
export function Pips({ failures }: { failures: number }): JSX.Element {
  const words = `${count(failures, 'failure')} in a row, ${failuresToTheEnd} end it`
  return (
    <span class="pips" role="img" aria-label={words} title={words}>
      {Array.from({ length: failuresToTheEnd }, (_, index) => (
        <span key={index} class={index < failures ? 'pip failed' : 'pip'} />
      ))}
    </span>
  )
}

/** What happened, in few words. */
export function titleOf(entry: EntryView): string {
  switch (entry.kind) {
    case 'request':
      return entry.operation === 'unknown' ? `${entry.method} ${entry.target}` : entry.operation
    case 'callback':
      return entry.type
    case 'ended':
      return `Subscription #${entry.subscription.subscriptionId} ended`
    case 'tokens-revoked':
      return 'Access tokens revoked'
  }
}

/** Why a request or a callback failed: what the answer says, or why there is none. */
export function reasonOf(entry: RequestView | CallbackView): string | undefined {
  if (toneOf(entry) !== 'bad') return undefined
  const refusal = entry.kind === 'request' ? entry.refusal?.message : undefined
  return refusal ?? (entry.answer?.body.slice(0, 200) || entry.error)
}

/** Links to entries, those that failed with the reason. */
export function EntryLinks({ entries }: { entries: readonly EntryView[] }): JSX.Element {
  return (
    <ol class="entry-links">
      {entries.map((entry) => (
        <li key={entry.id}>
          <a href={hrefOf({ view: 'entry', id: entry.id })}>
            <span class="mono muted">{clock(entry.at).slice(0, 8)}</span>
            <span class="ellipsis">
              {titleOf(entry)}
              {entry.kind === 'callback' && <span class="id"> #{entry.subscriptionId}</span>}
            </span>
            {'target' in entry && <EntryOutcome entry={entry} />}
          </a>
          {'target' in entry && <p class="muted wrap">{reasonOf(entry)}</p>}
        </li>
      ))}
    </ol>
  )
}
