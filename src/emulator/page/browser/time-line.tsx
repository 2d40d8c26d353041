/** What happened, the newest first: requests that came in, callbacks that went out. */
import type { JSX } from 'preact'
import { useMemo } from 'preact/hooks'
import type { CallbackView, EntryView, NoteView, RequestView } from '../feed.js'
import type { FeedState } from './feed-client.js'
import { FilterField } from './filter-field.js'
import {
  clock,
  count,
  duration,
  formFields,
  isDuplicate,
  isFailure,
  nameList,
  reasonInWords,
  shortUrl,
} from './format.js'
import { ConnectGuide } from './guide.js'
import { Icon } from './icon.js'
import { type EntryFilter, filterEntries } from './search.js'
import { Segmented } from './segmented.js'
import { VirtualList } from './virtual-list.js'

const rowHeight = 54

export interface TimeLineProps {
  readonly state: FeedState
  readonly filter: EntryFilter
  readonly onFilter: (filter: EntryFilter) => void
  readonly selectedId: number | undefined
  readonly onMove: (id: number) => void
  readonly onOpen: (id: number, by: 'pointer' | 'keyboard') => void
  readonly onCompose: () => void
}

export function TimeLine(props: TimeLineProps): JSX.Element {
  const { state, filter, onFilter, selectedId } = props
  const { entries } = state
  const items = useMemo(() => filterEntries(entries, filter), [entries, filter])
  return (
    <>
      <div class="pane-head">
        <h2>Time line</h2>
        <Segmented
          name="entries"
          legend="Which entries"
          value={filter.kind}
          onChange={(kind) => onFilter({ ...filter, kind })}
          options={[
            { value: 'all', label: 'All' },
            { value: 'request', label: 'Requests' },
            { value: 'callback', label: 'Callbacks' },
            { value: 'failure', label: 'Failures' },
          ]}
        />
        <FilterField
          id="time-line-filter"
          label="Filter by user, type, status, #id, text"
          value={filter.text}
          onChange={(text) => onFilter({ ...filter, text })}
        />
      </div>
      {entries.length === 0 && <Beginning {...props} />}
      {entries.length > 0 && items.length === 0 && (
        <div class="empty">
          <p>None of {count(entries.length, 'entry', 'entries')} matches this filter.</p>
          <button type="button" class="button" onClick={() => onFilter({ kind: 'all', text: '' })}>
            Show all
          </button>
        </div>
      )}
      {items.length > 0 && (
        <VirtualList
          id="time-line-list"
          label="Time line, the newest first"
          items={items}
          rowHeight={rowHeight}
          keyOf={({ id }) => id}
          selectedKey={selectedId}
          onMove={({ id }) => props.onMove(id)}
          onOpen={({ id }, by) => props.onOpen(id, by)}
          renderRow={(entry) => <Row entry={entry} />}
          classOf={(entry) => `entry ${entry.kind}${isFailure(entry) ? ' failed' : ''}`}
          footer={<Forgotten entries={entries} />}
          resetKey={`${filter.kind} ${filter.text}`}
        />
      )}
    </>
  )
}

function Row({ entry }: { entry: EntryView }): JSX.Element {
  switch (entry.kind) {
    case 'request':
      return <RequestRow entry={entry} />
    case 'callback':
      return <CallbackRow entry={entry} />
    case 'note':
      return <NoteRow entry={entry} />
  }
}

function RequestRow({ entry }: { entry: RequestView }): JSX.Element {
  return (
    <>
      <span class="glyph in" title="A request that came in">
        <Icon name="in" />
      </span>
      <span class="row-line">
        <span class="visually-hidden">Request </span>
        <span class="row-title">{entry.operation === 'unknown' ? 'unknown request' : entry.operation}</span>
        <span class="muted mono ellipsis wide-only">
          {entry.method} {entry.path}
        </span>
        <Outcome entry={entry} />
      </span>
      <span class="row-line muted">
        <span class="mono">{clock(entry.at)}</span>
        <span class="ellipsis">{entry.error ?? aboutRequest(entry)}</span>
        <FaultMark fault={entry.fault} />
      </span>
    </>
  )
}

function CallbackRow({ entry }: { entry: CallbackView }): JSX.Element {
  const { username, callbackUrl } = entry
  return (
    <>
      <span class="glyph out" title="A callback that went out">
        <Icon name="out" />
      </span>
      <span class="row-line">
        <span class="visually-hidden">Callback </span>
        <span class="row-title ellipsis">{entry.type}</span>
        <span class="id">#{entry.subscriptionId}</span>
        <Outcome entry={entry} />
      </span>
      <span class="row-line muted">
        <span class="mono">{clock(entry.at)}</span>
        <span class="ellipsis">
          {entry.status === undefined && entry.error !== undefined
            ? entry.error
            : `${username === undefined ? '' : `${username} → `}${shortUrl(callbackUrl)}`}
        </span>
        <FaultMark fault={entry.fault} />
      </span>
    </>
  )
}

function NoteRow({ entry }: { entry: NoteView }): JSX.Element {
  const [icon, title, text] =
    entry.note === 'ended'
      ? (['ended', `Subscription #${entry.subscriptionId} ended`, reasonInWords(entry.reason)] as const)
      : (['key', 'Access tokens revoked', 'each one issued so far is refused with 401'] as const)
  return (
    <>
      <span class="glyph note">
        <Icon name={icon} />
      </span>
      <span class="row-line">
        <span class="row-title">{title}</span>
      </span>
      <span class="row-line muted">
        <span class="mono">{clock(entry.at)}</span>
        <span class="ellipsis">{text}</span>
      </span>
    </>
  )
}

/** The status, or that there is none yet, or none at all. */
export function Outcome({ entry }: { entry: RequestView | CallbackView }): JSX.Element {
  const { status, error, durationMs } = entry
  return (
    <span class="outcome">
      {durationMs !== undefined && <span class="duration">{duration(durationMs)}</span>}
      <span class={`status ${stateOf(entry)}`}>
        {status ?? (error !== undefined || durationMs !== undefined ? 'no answer' : 'waiting')}
      </span>
    </span>
  )
}

function stateOf(entry: RequestView | CallbackView): string {
  if (entry.durationMs === undefined) return 'pending'
  if (isDuplicate(entry)) return 'neutral'
  return isFailure(entry) ? 'bad' : 'good'
}

function FaultMark({ fault }: { fault: string | undefined }): JSX.Element | undefined {
  if (fault === undefined) return undefined
  return (
    <span class="fault-mark">
      <Icon name="bolt" />
      fault: {fault}
    </span>
  )
}

/** What a request wanted, in few words. */
function aboutRequest({ operation, method, path, body }: RequestView): string {
  const fields = new Map(formFields(body))
  switch (operation) {
    case 'create': {
      const users = nameList((fields.get('username') ?? '').split(','))
      return `${users} · ${fields.get('notification_type') ?? ''} → ${shortUrl(fields.get('callback_url') ?? '')}`
    }
    case 'token':
      return fields.get('grant_type') ?? path
    case 'update':
      return `#${path.split('/').at(-1)} · ${[...fields.keys()].join(', ')}`
    case 'unsubscribe':
      return `#${path.split('/').at(-1)}`
    default:
      return `${method} ${path}`
  }
}

function Forgotten({ entries }: { entries: readonly EntryView[] }): JSX.Element | undefined {
  // Ids count from 1 without a gap.
  const forgotten = (entries.at(-1)?.id ?? 1) - 1
  if (forgotten === 0) return undefined
  return (
    <p class="forgotten">
      {count(forgotten, 'older entry is', 'older entries are')} gone: the emulator keeps the last 1,000.
    </p>
  )
}

function Beginning({ state, onCompose }: TimeLineProps): JSX.Element {
  if (state.service === undefined) return <p class="empty">Connecting to the emulator…</p>
  const hasSubscriptions = state.subscriptions.length > 0
  return (
    <div class="beginning">
      <h3>Nothing has happened yet</h3>
      <p class="muted">Every request and every callback appears here the moment it begins.</p>
      <ConnectGuide service={state.service} />
      <p>
        {hasSubscriptions
          ? 'Then send a notification: '
          : 'Then, with a subscription there, send a notification: '}
        <button type="button" class="button" onClick={onCompose}>
          <Icon name="send" />
          To the form
        </button>
      </p>
    </div>
  )
}
