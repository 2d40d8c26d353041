/** What happened, the newest first: requests that came in, callbacks that went out, those of one notification together. */
import type { JSX } from 'preact'
import { useMemo, useState } from 'preact/hooks'
import type { CallbackView, EntryView } from '../views.js'
import { ConnectGuide } from './connect-guide.js'
import { Button } from './controls.js'
import { About, Duration, EntryLines, Status } from './entry.js'
import { count, isFailure } from './format.js'
import { ListPane, Row } from './list.js'
import { type EntryFilter, withWords, wordsOfEntry } from './search.js'
import { change, compose, placeNow, state } from './store.js'

/** The filter finds the others. */
const shownEntries = 1_000

const kinds = [
  ['all', 'All'],
  ['request', 'Requests'],
  ['callback', 'Callbacks'],
  ['failure', 'Failures'],
] as const

export function TimeLine(): JSX.Element {
  const { entries: known, filter } = state
  const place = placeNow()
  const [clearedUpTo, setClearedUpTo] = useState(0)
  const [paused, setPaused] = useState<readonly EntryView[]>()
  const kept = paused ?? known
  const entries = useMemo(() => kept.filter(({ id }) => id > clearedUpTo), [kept, clearedUpTo])
  const items = useMemo(() => {
    const ofKind = entries.filter((entry) => isOfKind(entry, filter.kind))
    return withWords(ofKind, filter.text, wordsOfEntry)
  }, [entries, filter])
  const newest = known[0]?.id ?? 0
  const forgotten = newest - known.length + Math.max(0, items.length - shownEntries)
  const shown = items.slice(0, shownEntries)
  const stop = shown.find(({ id }) => place.view === 'entry' && place.id === id) ?? shown[0]
  const row = (entry: EntryView, isOfSeveral = false) => (
    <li key={entry.id}>
      <Row
        place={{ view: 'entry', id: entry.id }}
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
    <ListPane
      id="time-line"
      title="Time line"
      kinds={kinds}
      filter={filter}
      onFilter={(filter) => change({ filter })}
      hint="User, type, status, #id, text"
      buttons={
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
      }
      label="Time line, the newest first"
      rows={grouped(shown).map((group) => {
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
      empty={kept.length === 0 ? <Beginning /> : <Nothing among={entries.length} />}
      footer={
        clearedUpTo === 0 && forgotten > 0
          ? `${count(forgotten, 'older entry is', 'older entries are')} not shown: the newest 1,000 are.`
          : undefined
      }
    />
  )
}

function isOfKind(entry: EntryView, kind: EntryFilter['kind']): boolean {
  if (kind === 'failure') return isFailure(entry)
  return kind === 'all' || kind === entry.kind
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

function Nothing({ among }: { among: number }): JSX.Element {
  if (among === 0) {
    return <p class="empty">The time line is cleared. New entries appear here; a reload shows all.</p>
  }
  return (
    <div class="empty">
      <p>None of {count(among, 'entry', 'entries')} matches this filter.</p>
      <Button onClick={() => change({ filter: { kind: 'all', text: '' } })}>Show all</Button>
    </div>
  )
}

function Beginning(): JSX.Element {
  if (state.service === undefined) return <p class="empty">Connecting to the emulator…</p>
  return (
    <div class="beginning">
      <h3>Nothing has happened yet</h3>
      <p class="muted">Every request and every callback appears here when it begins.</p>
      <ConnectGuide service={state.service} />
      <p>
        When your app has subscribed, send a notification:{' '}
        <Button icon="send" onClick={() => compose({})}>
          To the form
        </Button>
      </p>
    </div>
  )
}
