/**
 * The names of a spool's files, and the lines in them. Each entry is between two line breaks of its own, which JSON text
 * never contains. So a damaged byte costs only one entry: its neighbours keep their line breaks.
 */
import { crc32 } from 'node:zlib'

/** A file of deliveries gets more (`open`) or no more (`closed`, not `log`: cleaners delete those). The others are dead letters. */
const kinds = ['open', 'closed', 'invalid', 'stuck', 'unreadable'] as const

export interface FileFields {
  readonly kind: (typeof kinds)[number]
  readonly id: number
  /** The highest id in the file. */
  readonly lastId: number
  /** How many entries waited when the file got its name. Only version 0.5, after a rollback, reads this and `oldestAt`. */
  readonly count: number
  /** The size of the file when it got its name, in bytes. */
  readonly size: number
  /** When the oldest entry that waited was received, in milliseconds since 1970. */
  readonly oldestAt: number
}

/** How a waiting delivery stands. A new state is written over the old one, so its text has a fixed length. */
export interface EntryState {
  /** How many attempts have failed. */
  attempts: number
  /** When it is due, and when `onStuck` was called last, in milliseconds since 1970; 0 for never. */
  dueAt: number
  reportedAt: number
  /** How many processes ended during an attempt. */
  crashes: number
}

export const notAttempted: Readonly<EntryState> = { attempts: 0, dueAt: 0, reportedAt: 0, crashes: 0 }

/** The fields of a line that never change. */
export interface EntryFields {
  readonly id: number
  /** When it was received, in milliseconds since 1970. */
  readonly receivedAt: number
  /** The header `traceparent` of its callback. */
  traceparent?: string | undefined
  /** JSON on one line. */
  text: string
}

export type StoredEntry = EntryFields & EntryState

/** What is known of a waiting entry without its text. */
export interface Place extends Pick<EntryFields, 'id' | 'receivedAt'>, EntryState {
  /** Where its line is in the file, in bytes. */
  readonly offset: number
  readonly length: number
}

const lineBreak = 0x0a
const space = 0x20
const zero = 0x30
const letterA = 0x61
/** The latest time that a state has room for. */
const maxStateTime = 10 ** 13 - 1

const newState = stateOf(notAttempted)
const stateBytes = newState.length
const doneState = '-'.repeat(stateBytes)

/** Where checksum and fields begin in a line: there is a space after state and checksum. */
const checksumAt = stateBytes + 1
const fieldsAt = stateBytes + ' 12345678 '.length

/** The disk space of a file, in bytes. */
export function diskBytesOf(bytes: number): number {
  return Math.ceil(bytes / 4_096) * 4_096
}

/** A lock or an unfinished lock, but not `yarn.lock`. The number says how many calls of `deliver` may run. */
export const lockPattern = /^[0-9a-f]{12}-(\d{1,4})\.lock(\.new)?$/

/** The name of a file. Names sort by id. */
export function nameOf({ kind, id, lastId, count, size, oldestAt }: FileFields): string {
  const head = [digits(id, 16), digits(lastId, 16), count, size, oldestAt].join('-')
  return `${head}-${checksumOf(`${head}.${kind}`)}.${kind}`
}

/** The fields of a name; `unfinished` if nothing in the file was acknowledged; `other` for a lock or a damaged file. */
export function parseName(name: string): FileFields | 'unfinished' | 'other' | 'unknown' {
  const kind = kinds.find((each) => name.endsWith(`.${each}`))
  if (kind !== undefined) {
    const [id = 0, lastId = 0, count = 0, size = 0, oldestAt = 0] = name.split('-').map(Number)
    const fields = { kind, id, lastId, count, size, oldestAt }
    if (nameOf(fields) === name) return fields
  }
  if (name.endsWith('.new') && typeof parseName(name.slice(0, -4)) === 'object') return 'unfinished'
  return lockPattern.test(name) || name.endsWith('.damaged') ? 'other' : 'unknown'
}

/** `+`, the numbers, and their checksum; dashes for an entry that is done. */
export function stateOf({ attempts, dueAt, reportedAt, crashes }: EntryState, isDone = false): string {
  if (isDone) return doneState
  const [due, reported] = [dueAt, reportedAt].map((time) => digits(Math.min(time, maxStateTime), 13))
  const head = `+${digits(Math.min(attempts, 99_999), 5)} ${due} ${reported} ${crashes}`
  return `${head} ${checksumOf(head)}`
}

/** A state that is not exactly as {@link stateOf} makes it is damaged, and counts as not attempted. */
function parseState(state: string): EntryState | undefined {
  if (state === newState) return notAttempted
  const [attempts = 0, dueAt = 0, reportedAt = 0, crashes = 0] = state.split(' ').map(Number)
  const parsed = { attempts, dueAt, reportedAt, crashes }
  return stateOf(parsed) === state ? parsed : undefined
}

/** The line of an entry. The checksum also covers the file's id: a line of another file is damage. */
export function lineOf(fileId: number, entry: EntryFields, state = notAttempted): string {
  const fields = `${entry.id} ${entry.receivedAt} ${entry.traceparent ?? '-'} ${entry.text}`
  return `\n${stateOf(state)} ${checksumOf(fields, fileId)} ${fields}\n`
}

/** The fields of a line without its line breaks; `undefined` if the line is damaged. */
export function fieldsIn(line: Buffer, fileId: number): EntryFields | undefined {
  if (!isWhole(line, fileId)) return undefined
  const text = line.toString('utf8', fieldsAt)
  const [head = '', id, receivedAt, traceparent] = /^(\d+) (\d+) (\S+) /.exec(text) ?? []
  return {
    id: Number(id),
    receivedAt: Number(receivedAt),
    traceparent: traceparent === '-' ? undefined : traceparent,
    text: text.slice(head.length),
  }
}

/** Whether the checksum of a line is right. */
function isWhole(line: Buffer, fileId: number): boolean {
  const [checksum, next] = numberAt(line, checksumAt, 16)
  const isInPlace = line[checksumAt - 1] === space && next === fieldsAt
  return isInPlace && crc32(line.subarray(fieldsAt), fileId % 2 ** 32) === checksum
}

/**
 * The entries that are not done, and where the file is damaged.
 *
 * @param size - that of a complete file. An open one may end with a line that its process was writing when it ended
 */
export function placesIn(bytes: Buffer, fileId: number, size?: number) {
  const places: Place[] = []
  const damagedAt: number[] = []
  const seen = new Set<number>()
  // Each entry begins and ends with its own line break.
  let nextStart = 1
  for (let start = 0, end = 0; start < bytes.length; start = end + 1) {
    end = bytes.indexOf(lineBreak, start)
    // Damage of the last byte looks like a line that its process was writing.
    if (end < 0) break
    if (end === start) continue
    const isInPlace = start === nextStart
    nextStart = end + 2
    const line = bytes.subarray(start, end)
    const stateText = line.toString('latin1', 0, stateBytes)
    const isDone = stateText === doneState
    const state = isDone ? undefined : parseState(stateText)
    const [id, at] = numberAt(line, fieldsAt)
    // The checksum of a finished entry counts, too: a damaged line break would hide the next entry behind it.
    // A repeated line comes from a disk that confused its blocks.
    const isNew = isWhole(line, fileId) && (isDone || !seen.has(id))
    if (!isNew || !isInPlace || !(isDone || state)) damagedAt.push(start)
    if (!isNew || isDone) continue
    seen.add(id)
    const [receivedAt] = numberAt(line, at)
    places.push({ id, receivedAt, offset: start, length: line.length, ...(state ?? notAttempted) })
  }
  const isComplete = size === undefined || (bytes.length === size && nextStart === size + 1)
  if (!isComplete && damagedAt.length === 0) damagedAt.push(Math.min(nextStart, bytes.length))
  return { places, damagedAt }
}

/** The number at a place, and where the next field begins. Takes a quarter of the time of a regular expression. */
function numberAt(line: Buffer, from: number, radix = 10): [value: number, next: number] {
  let value = 0
  let at = from
  for (; at < line.length && line[at] !== space; at += 1) {
    const digit = line[at] ?? 0
    value = value * radix + digit - (digit < letterA ? zero : letterA - 10)
  }
  return [value, at + 1]
}

function checksumOf(data: string | Uint8Array, seed = 0): string {
  const checksum = crc32(data, seed % 2 ** 32)
  return checksum.toString(16).padStart(8, '0')
}

function digits(value: number, count: number): string {
  return String(value).padStart(count, '0')
}
