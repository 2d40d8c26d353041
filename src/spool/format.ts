/**
 * The names of a spool's files, and the lines in them. Each entry is between two line breaks of its own, which JSON text
 * never contains. So a damaged byte costs only one entry: its neighbours keep their line breaks.
 */
import { crc32 } from 'node:zlib'

/** What a file holds: deliveries, and more to come (`open`) or not (`closed`; cleaners delete `*.log`), or a dead letter. */
const kinds = ['open', 'closed', 'invalid', 'stuck', 'unreadable'] as const

/** The fields of a file name. */
export interface FileFields {
  readonly kind: (typeof kinds)[number]
  readonly id: number
  /** The highest id in it. */
  readonly lastId: number
  /** The number of entries that waited when it got its name. */
  readonly count: number
  /** Its size then, in bytes. */
  readonly size: number
  /** When the oldest entry that waited was received, in milliseconds since 1970. */
  readonly oldestAt: number
}

/** What becomes of a waiting delivery. Written over itself, so it has a fixed length. */
export interface EntryState {
  /** How many attempts have failed. */
  attempts: number
  /** When it is due, and when `onStuck` was called last, in milliseconds since 1970; 0 for never. */
  dueAt: number
  reportedAt: number
  /** How many processes ended during an attempt. */
  crashes: number
}

export const untried: Readonly<EntryState> = { attempts: 0, dueAt: 0, reportedAt: 0, crashes: 0 }

/** What an entry is, wherever it stands. */
export interface EntryContent {
  readonly id: number
  /** When it was received, in milliseconds since 1970. */
  readonly receivedAt: number
  /** The header `traceparent` of its callback. */
  readonly traceparent?: string | undefined
  /** JSON on one line. */
  text: string
}

export type StoredEntry = EntryContent & EntryState

const lineBreak = 0x0a
const untriedState = stateOf(untried)
export const stateBytes = untriedState.length
const doneState = '-'.repeat(stateBytes)

/** State, sum, and a space after each. */
const headerBytes = stateBytes + ' 12345678 '.length

/** No file is larger: twice what waits in memory. */
const maxFileBytes = 2 ** 27

/** The latest time of a `Date`. */
const maxTime = 8.64e15

/** The disk space of a file, in bytes. */
export function diskBytesOf(bytes: number): number {
  return Math.ceil(bytes / 4_096) * 4_096
}

/** A lock or an unfinished lock, but not `yarn.lock`. The number says how many calls of `deliver` may run. */
export const lockPattern = /^[0-9a-f]{12}-(\d{1,4})\.lock(\.new)?$/

/** The name of a file. Names sort by id. */
export function nameOf({ kind, id, lastId, count, size, oldestAt }: FileFields): string {
  const head = [digits(id, 16), digits(lastId, 16), count, size, oldestAt].join('-')
  return `${head}-${sumOf(`${head}.${kind}`)}.${kind}`
}

/**
 * What a name in the folder says; `unfinished` for a file that was being written when its process ended, of which nothing was
 * acknowledged; `other` for a lock or a damaged file. A name that is not exactly as {@link nameOf} makes it is `unknown`.
 */
export function parseName(name: string): FileFields | 'unfinished' | 'other' | 'unknown' {
  const kind = kinds.find((each) => name.endsWith(`.${each}`))
  if (kind !== undefined) {
    const [id = 0, lastId = 0, count = 0, size = 0, oldestAt = 0] = name.split('-').map(Number)
    const fields = { kind, id, lastId, count, size, oldestAt }
    const isPossible = count <= size && size <= maxFileBytes && lastId < 2 ** 53 - 1 && oldestAt <= maxTime
    if (isPossible && nameOf(fields) === name) return fields
  }
  if (name.endsWith('.new') && typeof parseName(name.slice(0, -4)) === 'object') return 'unfinished'
  return lockPattern.test(name) || name.endsWith('.damaged') ? 'other' : 'unknown'
}

/** `+`, the numbers, and their sum; dashes for an entry that is done. */
export function stateOf({ attempts, dueAt, reportedAt, crashes }: EntryState, isDone = false): string {
  if (isDone) return doneState
  const numbers = [digits(Math.min(attempts, 99_999), 5), digits(dueAt, 13), digits(reportedAt, 13), crashes]
  const head = `+${numbers.join(' ')}`
  return `${head} ${sumOf(head)}`
}

/** `undefined` for one that is not exactly as {@link stateOf} makes it. */
function parseState(state: string): EntryState | undefined {
  if (state === untriedState) return untried
  const [attempts = 0, dueAt = 0, reportedAt = 0, crashes = 0] = state.split(' ').map(Number)
  const parsed = { attempts, dueAt, reportedAt, crashes }
  return stateOf(parsed) === state ? parsed : undefined
}

/** The line of an entry. The sum also covers the file's id: a line of another file is damage. */
export function lineOf(fileId: number, entry: EntryContent, state = untried): string {
  const content = `${entry.id} ${entry.receivedAt} ${entry.traceparent ?? '-'} ${entry.text}`
  return `\n${stateOf(state)} ${sumOf(content, fileId)} ${content}\n`
}

/** What a line without its line breaks says; `undefined` if it is damaged. */
export function contentIn(line: Buffer, fileId: number): EntryContent | undefined {
  const content = line.subarray(headerBytes)
  if (line.toString('latin1', stateBytes, headerBytes) !== ` ${sumOf(content, fileId)} `) return undefined
  const text = content.toString()
  const [head = '', id, receivedAt, traceparent] = /^(\d+) (\d+) (\S+) /.exec(text) ?? []
  return {
    id: Number(id),
    receivedAt: Number(receivedAt),
    traceparent: traceparent === '-' ? undefined : traceparent,
    text: text.slice(head.length),
  }
}

/** The entries that are not done, and where the file of that size is damaged. Never throws: damaged entries are left out. */
export function contentOf(bytes: Buffer, fileId: number, size = bytes.length) {
  const entries: (StoredEntry & { readonly offset: number; readonly length: number })[] = []
  const damagedAt: number[] = []
  const seen = new Set<number>()
  // Each entry begins and ends with its own line break.
  let nextStart = 1
  for (let start = 0, end = 0; start < bytes.length; start = end + 1) {
    end = bytes.indexOf(lineBreak, start)
    if (end < 0) end = bytes.length
    if (end === start) continue
    const isInPlace = start === nextStart
    nextStart = end + 2
    const line = bytes.subarray(start, end)
    const content = contentIn(line, fileId)
    const shownState = line.toString('latin1', 0, stateBytes)
    const isDone = shownState === doneState
    const state = isDone ? undefined : parseState(shownState)
    // A repeated line comes from a disk that confused its blocks.
    const isNew = content !== undefined && (isDone || !seen.has(content.id))
    // The sum of a finished entry counts, too: a damaged line break would hide the next entry behind it.
    if (!isNew || !isInPlace || !(isDone || state)) damagedAt.push(start)
    if (!isNew || isDone) continue
    seen.add(content.id)
    // A damaged state counts as never tried. Not spread into a new object, which takes longer than all else here.
    entries.push(Object.assign(content, state ?? untried, { offset: start, length: line.length }))
  }
  const isWhole = bytes.length === size && nextStart === size + 1
  if (!isWhole && damagedAt.length === 0) damagedAt.push(Math.min(bytes.length, size))
  return { entries, damagedAt }
}

/**
 * The fields of a segment that its process did not close, without the line that was being written: it was not acknowledged.
 * Damage of the last byte looks the same. `undefined` if there is nothing in it.
 */
export function closedFieldsOf(bytes: Buffer, open: FileFields): FileFields | undefined {
  let size = bytes.lastIndexOf(lineBreak) + 1
  // Its first line break.
  while (size === 1 || bytes[size - 2] === lineBreak) size -= 1
  const { entries, damagedAt } = contentOf(bytes.subarray(0, size), open.id)
  const count = entries.length
  if (count + damagedAt.length === 0) return undefined
  const lastId = Math.max(open.id, ...entries.map(({ id }) => id))
  const oldestAt = Math.min(open.oldestAt, ...entries.map(({ receivedAt }) => receivedAt))
  return { kind: 'closed', id: open.id, lastId, count, size, oldestAt }
}

function sumOf(content: string | Uint8Array, seed = 0): string {
  const sum = crc32(content, seed % 2 ** 32)
  return sum.toString(16).padStart(8, '0')
}

function digits(value: number, count: number): string {
  return String(value).padStart(count, '0')
}
