/** An entry in two lines, and the marks that lists and details share. */
import type { JSX } from 'preact'
import { clock, durationInWords, endReasons, toneOf } from '../../words.js'
import type { CallbackView, EndView, EntryView, RequestView } from '../views.js'
import { Icon } from './controls.js'
import { count, isFailure, nameList, reasonOf, shortUrl } from './format.js'
import { hrefOf } from './store.js'
import { Breakable } from './text.js'

/** Failures in a row that end a subscription (docs/service.md, Delivery). */
const failuresToTheEnd = 3

/** The status, or that there is none yet, or none at all. */
export function Status({ entry }: { entry: RequestView | CallbackView }): JSX.Element {
  const { status, durationMs } = entry
  return (
    <span class={`status ${toneOf(entry)}`}>
      {status ?? (durationMs === undefined ? 'waiting' : 'no answer')}
    </span>
  )
}

/** How long the answer took. */
export function Duration({ entry }: { entry: RequestView | CallbackView }): JSX.Element | undefined {
  const { durationMs } = entry
  return durationMs === undefined ? undefined : <span class="muted">{durationInWords(durationMs)}</span>
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

/** Why a subscription ended: red wherever it stands if callbacks failed. */
export function EndReason({ end }: { end: EndView }): JSX.Element {
  return <span class={isFailure(end) ? 'bad' : undefined}>{endReasons[end.reason]}</span>
}

/** What happened, in few words. */
export function titleOf(entry: EntryView): string {
  switch (entry.kind) {
    case 'request':
      return entry.operation === 'unknown' ? `${entry.method} ${shortUrl(entry.target)}` : entry.operation
    case 'callback':
      return entry.type
    case 'ended':
      return `Subscription #${entry.subscription.subscriptionId} ended`
    case 'tokens-revoked':
      return 'Access tokens revoked'
  }
}

const glyphs = {
  request: ['in', 'Request'],
  callback: ['out', 'Callback'],
  ended: ['ended', 'End'],
  'tokens-revoked': ['key', 'Tokens'],
} as const

/** What it was and how it ended; below, when it began, more about it, and how long it took. */
export function EntryLines(props: {
  entry: EntryView
  /** How several callbacks of one notification ended, if the entry stands for them. */
  children?: JSX.Element
}): JSX.Element {
  const { entry, children } = props
  const [glyph, word] = glyphs[entry.kind]
  const tone = entry.kind === 'ended' && isFailure(entry) ? 'bad' : glyph
  const single = 'target' in entry && children === undefined ? entry : undefined
  return (
    <>
      <span class={`glyph ${tone}`} role="img" aria-label={word} title={word}>
        <Icon name={glyph} />
      </span>
      <span class="row-title">
        <Breakable text={titleOf(entry)} />{' '}
        {single?.subscriptionId !== undefined && <span class="id">#{single.subscriptionId}</span>}
      </span>
      {single === undefined ? children : <Status entry={single} />}
      <span class="about">
        <span class="mono">{clock(entry.at)}</span>{' '}
        {entry.kind === 'callback' && (
          <Breakable text={`for ${entry.username}${single === undefined ? '' : ' · '}`} />
        )}
        {entry.kind === 'ended' && <EndReason end={entry} />}
        {entry.kind === 'tokens-revoked' && 'every token issued until then is refused with 401'}
        {single !== undefined && <About entry={single} />}
      </span>
      {single !== undefined && <Duration entry={single} />}
    </>
  )
}

/** Its fault, and why it failed, or what else there is to say about it. */
export function About({ entry }: { entry: RequestView | CallbackView }): JSX.Element {
  const reason = reasonOf(entry)
  const what = entry.kind === 'request' ? aboutRequest(entry) : shortUrl(entry.target)
  return (
    <>
      {entry.fault !== undefined && <span class="pending">fault: {entry.fault} · </span>}
      {reason === undefined ? <Breakable text={what} /> : <span class="bad">{reason}</span>}
    </>
  )
}

function aboutRequest({ operation, method, target, body }: RequestView): string {
  if (operation !== 'create') return `${method} ${shortUrl(target)}`
  const fields = new URLSearchParams(body)
  const users = nameList((fields.get('username') ?? '').split(','))
  return `${users} · ${fields.get('notification_type') ?? ''} → ${shortUrl(fields.get('callback_url') ?? '')}`
}

/** Links to entries. */
export function EntryLinks({ entries }: { entries: readonly EntryView[] }): JSX.Element {
  return (
    <ol class="entry-links">
      {entries.map((entry) => (
        <li key={entry.id}>
          <a class="row entry" href={hrefOf({ view: 'entry', id: entry.id })}>
            <EntryLines entry={entry} />
          </a>
        </li>
      ))}
    </ol>
  )
}
