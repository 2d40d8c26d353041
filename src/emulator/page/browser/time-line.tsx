/** What happened, the newest first: requests that came in, callbacks that went out. */
import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { CallbackView, EntryView, NoteView, RequestView } from '../protocol.js'
import { ConnectGuide } from './connect-guide.js'
import type { FeedState } from './connection.js'
import { FilterField, Icon, Segmented } from './controls.js'
import { clock, count, formFields, isFailure, nameList, reasonInWords, shortUrl } from './format.js'
import { FaultMark, Outcome } from './marks.js'
import { type EntryFilter, filterEntries } from './search.js'
import { VirtualList } from './virtual-list.js'

/** The entries that the time line shows, unless its filter leaves them out. */
export interface ShownEntries {
  readonly entries: readonly EntryView[]
  /** How many were cleared and are still kept. */
  readonly clearedCount: number
  readonly isPaused: boolean
  /** How many arrived during the pause. */
  readonly arrivedCount: number
  /** An entry that is kept, whether it is shown or not. */
  readonly find: (id: number) => EntryView | undefined
  /** Hides everything that is known now. */
  readonly clear: () => void
  readonly showCleared: () => void
  readonly togglePause: () => void
}

/** The address of the page has a part that is new at each start of an emulator. */
const clearedKey = `cleared ${location.pathname}`

/** Lets a reader clear and pause the time line. What was cleared stays cleared after a reload. */
export function useTimeLine(known: readonly EntryView[]): ShownEntries {
  const [clearedUpTo, setClearedUpTo] = useState(() => Number(sessionStorage.getItem(clearedKey)))
  const [paused, setPaused] = useState<readonly EntryView[]>()
  const frozen = paused ?? known
  const entries = useMemo(
    () => (clearedUpTo === 0 ? frozen : frozen.filter(({ id }) => id > clearedUpTo)),
    [frozen, clearedUpTo],
  )
  const newest = known[0]?.id ?? 0

  function clearUpTo(id: number): void {
    sessionStorage.setItem(clearedKey, String(id))
    setClearedUpTo(id)
  }

  return {
    entries,
    clearedCount: frozen.length - entries.length,
    isPaused: paused !== undefined,
    arrivedCount: paused === undefined ? 0 : newest - (paused[0]?.id ?? 0),
    find: (id) => [...known, ...frozen].find((entry) => entry.id === id),
    clear: () => clearUpTo(newest),
    showCleared: () => clearUpTo(0),
    togglePause: () => setPaused(paused === undefined ? known : undefined),
  }
}

const rowHeight = 54

export interface TimeLineProps {
  readonly state: FeedState
  readonly shown: ShownEntries
  readonly filter: EntryFilter
  readonly onFilter: (filter: EntryFilter) => void
  readonly selectedId: number | undefined
  readonly onMove: (id: number) => void
  readonly onOpen: (id: number, by: 'pointer' | 'keyboard') => void
  readonly onCompose: () => void
}

export function TimeLine(props: TimeLineProps): JSX.Element {
  const { shown, filter, onFilter, selectedId } = props
  const { entries } = shown
  const items = useMemo(() => filterEntries(entries, filter), [entries, filter])
  return (
    <>
      <div class="pane-head time-line-head">
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
        <TimeLineButtons shown={shown} />
        <FilterField
          id="time-line-filter"
          label="Filter by user, type, status, #id, text"
          value={filter.text}
          onChange={(text) => onFilter({ ...filter, text })}
        />
      </div>
      {entries.length === 0 &&
        (shown.clearedCount > 0 ? <Cleared shown={shown} /> : <Beginning {...props} />)}
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
          footer={<Footer {...props} />}
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
        <Clock at={entry.at} />
        <FaultMark fault={entry.fault} />
        <span class="row-rest ellipsis">{entry.error ?? aboutRequest(entry)}</span>
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
        <Clock at={entry.at} />
        <span class="about-user ellipsis">for {username}</span>
        <FaultMark fault={entry.fault} />
        <span class="row-rest ellipsis">
          {entry.status === undefined && entry.error !== undefined ? entry.error : shortUrl(callbackUrl)}
        </span>
      </span>
    </>
  )
}

function NoteRow({ entry }: { entry: NoteView }): JSX.Element {
  const [icon, title, text] =
    entry.note === 'ended'
      ? (['ended', `Subscription #${entry.subscriptionId} ended`, reasonInWords(entry.reason)] as const)
      : (['key', 'Access tokens revoked', 'every token issued until then is refused with 401'] as const)
  return (
    <>
      <span class="glyph note">
        <Icon name={icon} />
      </span>
      <span class="row-line">
        <span class="row-title">{title}</span>
      </span>
      <span class="row-line muted">
        <Clock at={entry.at} />
        <span class="ellipsis">{text}</span>
      </span>
    </>
  )
}

/** A small pane leaves out the milliseconds. */
function Clock({ at }: { at: number }): JSX.Element {
  const [seconds = '', milliseconds = ''] = clock(at).split('.')
  return (
    <span class="mono">
      {seconds}
      <span class="milliseconds">.{milliseconds}</span>
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

function TimeLineButtons({ shown }: { shown: ShownEntries }): JSX.Element {
  const { isPaused, arrivedCount, togglePause, clear } = shown
  return (
    <span class="pane-buttons">
      <button
        type="button"
        class="button small"
        aria-label="Pause"
        aria-pressed={isPaused}
        title={isPaused ? 'Show what arrived meanwhile' : 'Stop adding new entries'}
        onClick={togglePause}
      >
        <Icon name={isPaused ? 'resume' : 'pause'} />
        <span class="label">Pause</span>
        {isPaused && (
          <span class="badge">
            {arrivedCount.toLocaleString('en')}
            <span class="label"> new</span>
          </span>
        )}
      </button>
      <button
        type="button"
        class="button small"
        aria-label="Clear"
        title="Hide all entries until now"
        onClick={clear}
      >
        <Icon name="clear" />
        <span class="label">Clear</span>
      </button>
    </span>
  )
}

function Cleared({ shown }: { shown: ShownEntries }): JSX.Element {
  return (
    <div class="empty">
      <p>The time line is cleared. New requests and callbacks appear here.</p>
      <ShowCleared shown={shown} />
    </div>
  )
}

function ShowCleared({ shown: { clearedCount, showCleared } }: { shown: ShownEntries }): JSX.Element {
  return (
    <button type="button" class="button small" onClick={showCleared}>
      Show {count(clearedCount, 'cleared entry', 'cleared entries')}
    </button>
  )
}

/** Says below the last row what is not shown. */
function Footer({ state, shown }: TimeLineProps): JSX.Element | undefined {
  if (shown.clearedCount > 0) {
    return (
      <div class="forgotten">
        <ShowCleared shown={shown} />
      </div>
    )
  }
  // IDs count from 1 without a gap.
  const forgotten = (state.entries.at(-1)?.id ?? 1) - 1
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
      <p class="muted">Every request and every callback appears here when it begins.</p>
      <ConnectGuide service={state.service} />
      <p>
        {hasSubscriptions ? 'Send a notification: ' : 'When your app has subscribed, send a notification: '}
        <button type="button" class="button" onClick={onCompose}>
          <Icon name="send" />
          To the form
        </button>
      </p>
    </div>
  )
}
