/** What happened, the newest first: requests that came in, callbacks that went out, those of one notification together. */
import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { CallbackView, EntryView } from '../views.js'
import { ConnectGuide } from './connect-guide.js'
import type { PageState } from './connection.js'
import { Button, FilterField, Segmented } from './controls.js'
import { About, Duration, EntryLines, Status } from './entry.js'
import { count, isFailure } from './format.js'
import { List, Row } from './list.js'
import type { Place } from './place.js'
import { type EntryFilter, filterEntries } from './search.js'

/** The filter finds the others. */
const shownEntries = 1_000

export interface TimeLineProps {
  readonly state: PageState
  readonly place: Place
  readonly filter: EntryFilter
  readonly onFilter: (filter: EntryFilter) => void
  readonly onCompose: () => void
}

export function TimeLine({ state, place, filter, onFilter, onCompose }: TimeLineProps): JSX.Element {
  const known = state.entries
  const [clearedUpTo, setClearedUpTo] = useState(0)
  const [paused, setPaused] = useState<readonly EntryView[]>()
  const kept = paused ?? known
  const entries = useMemo(() => kept.filter(({ id }) => id > clearedUpTo), [kept, clearedUpTo])
  const items = useMemo(() => filterEntries(entries, filter), [entries, filter])
  const newest = known[0]?.id ?? 0
  const forgotten = newest - known.length + Math.max(0, items.length - shownEntries)
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
            ['all', 'All'],
            ['request', 'Requests'],
            ['callback', 'Callbacks'],
            ['failure', 'Failures'],
          ]}
        />
        <FilterField
          id="time-line-filter"
          label="User, type, status, #id, text"
          value={filter.text}
          onChange={(text) => onFilter({ ...filter, text })}
        />
        <span class="buttons">
          <Button
            icon={paused === undefined ? 'pause' : 'resume'}
            kind="quiet small"
            aria-pressed={paused !== undefined}
            title={paused === undefined ? 'Stop adding new entries' : 'Show what arrived meanwhile'}
            onClick={() => setPaused(paused === undefined ? known : undefined)}
          >
            Pause
            {paused !== undefined && (
              <span class="badge">{(newest - (paused[0]?.id ?? 0)).toLocaleString('en')} new</span>
            )}
          </Button>
          <Button
            icon="clear"
            kind="quiet small"
            title="Hide all entries until now"
            onClick={() => setClearedUpTo(newest)}
          >
            Clear
          </Button>
        </span>
      </div>
      {kept.length > 0 && entries.length === 0 && (
        <p class="empty">The time line is cleared. New entries appear here; a reload shows all.</p>
      )}
      {kept.length === 0 && <Beginning state={state} onCompose={onCompose} />}
      {entries.length > 0 && items.length === 0 && (
        <div class="empty">
          <p>None of {count(entries.length, 'entry', 'entries')} matches this filter.</p>
          <Button onClick={() => onFilter({ kind: 'all', text: '' })}>Show all</Button>
        </div>
      )}
      {items.length > 0 && (
        <Entries
          key={`${filter.kind} ${filter.text}`}
          entries={items.slice(0, shownEntries)}
          selectedId={place.view === 'entry' ? place.id : undefined}
          footer={
            clearedUpTo === 0 && forgotten > 0
              ? `${count(forgotten, 'older entry is', 'older entries are')} not shown: the newest 1,000 are.`
              : undefined
          }
        />
      )}
    </>
  )
}

function Entries(props: {
  entries: readonly EntryView[]
  selectedId: number | undefined
  footer: string | undefined
}): JSX.Element {
  const { entries, selectedId, footer } = props
  const stop = entries.find(({ id }) => id === selectedId) ?? entries[0]
  const row = (entry: EntryView, isOfSeveral = false) => (
    <li key={entry.id}>
      <Row
        place={{ view: 'entry', id: entry.id }}
        isSelected={entry.id === selectedId}
        isTabStop={entry === stop}
        class={isOfSeveral ? 'member' : 'entry'}
        item={entry}
        render={() =>
          isOfSeveral && entry.kind === 'callback' ? <Member entry={entry} /> : <EntryLines entry={entry} />
        }
      />
    </li>
  )
  return (
    <List
      id="time-line-list"
      label="Time line, the newest first"
      isFollowed={selectedId !== undefined}
      footer={footer}
    >
      {grouped(entries).map((group) => {
        const [newest] = group
        return group.length === 1 || newest.kind !== 'callback' ? (
          row(newest)
        ) : (
          <li key={`group ${newest.notificationId}`} class="group">
            <GroupHead newest={newest} group={group} />
            <ol class="members" aria-label={`Callbacks of this ${newest.type}`}>
              {group.map((entry) => row(entry, true))}
            </ol>
          </li>
        )
      })}
    </List>
  )
}

/** The callbacks of one notification together, at the place of the newest. */
function grouped(entries: readonly EntryView[]): [EntryView, ...EntryView[]][] {
  const groups = new Map<string | number, [EntryView, ...EntryView[]]>()
  for (const entry of entries) {
    const key = entry.kind === 'callback' ? entry.notificationId : entry.id
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [entry])
    else group.push(entry)
  }
  return [...groups.values()]
}

function GroupHead({ newest, group }: { newest: CallbackView; group: readonly EntryView[] }): JSX.Element {
  const failures = group.filter(isFailure).length
  return (
    <div class="group-head entry">
      <EntryLines entry={newest}>
        <span class="outcome">
          {count(group.length, 'callback')}
          {failures > 0 && <span class="bad">{count(failures, 'failure')}</span>}
        </span>
      </EntryLines>
    </div>
  )
}

function Member({ entry }: { entry: CallbackView }): JSX.Element {
  return (
    <>
      <span>
        <span class="id">#{entry.subscriptionId}</span> <About entry={entry} />
      </span>
      <span class="outcome">
        <Duration entry={entry} /> <Status entry={entry} />
      </span>
    </>
  )
}

function Beginning({ state, onCompose }: Pick<TimeLineProps, 'state' | 'onCompose'>): JSX.Element {
  if (state.service === undefined) return <p class="empty">Connecting to the emulator…</p>
  return (
    <div class="beginning">
      <h3>Nothing has happened yet</h3>
      <p class="muted">Every request and every callback appears here when it begins.</p>
      <ConnectGuide service={state.service} />
      <p>
        When your app has subscribed, send a notification:{' '}
        <Button icon="send" onClick={onCompose}>
          To the form
        </Button>
      </p>
    </div>
  )
}
