/**
 * The names and lines of a spool's files. A name says when its deliveries are due; a line has a checksum.
 *
 * Each entry is between two line breaks of its own, which JSON text never contains. So a damaged byte costs only one
 * entry: its neighbours keep their line breaks.
 */
import { crc32 } from 'node:zlib'

/**
 * The content of a file: waiting deliveries, or a dead letter. A dead letter is an invalid body, a kept delivery that
 * fails, or a kept delivery that can no longer be read.
 */
const kinds = ['batch', 'invalid', 'stuck', 'unreadable'] as const

/** The fields of a file name. */
export interface FileFields extends NextAttempt {
  readonly kind: (typeof kinds)[number]
  /** The id of the first entry; the others follow. See {@link receivedAtOf}. */
  readonly id: number
  /** The number of lines when the file was written. */
  readonly count: number
  /** Size of the file. */
  readonly bytes: number
}

/** When the entries of a file are due. */
export interface NextAttempt {
  /** On the clock of the deliverer; 0 if they were never tried. */
  readonly dueAt: number
  /** How often they have failed. */
  readonly attempts: number
  /** When `onStuck` was called last, on the clock of the deliverer; 0 if never. */
  readonly reportedAt: number
}

export const untried: NextAttempt = { dueAt: 0, attempts: 0, reportedAt: 0 }

/** An entry of a file. */
export interface Line {
  readonly id: number
  /** The position of its mark. */
  readonly offset: number
  readonly text: string
}

/** Replaces the mark and the sum of a finished entry. A single damaged byte cannot produce it. */
export const doneMark = Buffer.from('---------')

/** Mark, sum and a space. */
const headerBytes = doneMark.length + 1
const waitsMark = 0x2b
const lineBreak = 0x0a

const blockBytes = 4_096

/** The disk space of a file, in bytes. */
export function diskBytesOf(bytes: number): number {
  return Math.ceil(bytes / blockBytes) * blockBytes
}

/** When a delivery was received, in milliseconds since 1970: its id is that time in microseconds. */
export function receivedAtOf(id: number): number {
  return Math.floor(id / 1_000)
}

/** A lock or an unfinished lock, but not `yarn.lock`. */
export const lockPattern = /^[0-9a-f]{16}\.lock(\.new)?$/

/** The name of a file. Names sort by due time, then by id. */
export function nameOf({ kind, dueAt, id, attempts, reportedAt, count, bytes }: FileFields): string {
  const head = [digits(dueAt, 13), digits(id, 16), attempts, reportedAt, count, bytes].join('-')
  return `${head}-${sumOf(`${head}.${kind}`)}.${kind}`
}

/**
 * What a name in the folder says: the fields of a file; `unfinished` for a file that was being written when its process
 * ended, of which nothing was acknowledged; `other` for a lock or a damaged file. A name that is not exactly as
 * {@link nameOf} makes it is `unknown`: a wrong time or id would delay entries or lose them.
 */
export function parseName(name: string): FileFields | 'unfinished' | 'other' | 'unknown' {
  const kind = kinds.find((each) => name.endsWith(`.${each}`))
  if (kind !== undefined) {
    const numbers = name.split('-').map(Number)
    const [dueAt = 0, id = 0, attempts = 0, reportedAt = 0, count = 0, bytes = 0] = numbers
    const fields = { kind, dueAt, id, attempts, reportedAt, count, bytes }
    if (nameOf(fields) === name) return fields
  }
  if (name.endsWith('.new') && typeof parseName(name.slice(0, -4)) === 'object') return 'unfinished'
  return lockPattern.test(name) || name.endsWith('.damaged') ? 'other' : 'unknown'
}

/** An entry in a file. @param text - JSON on one line */
export function lineOf(id: number, text: string): Buffer {
  const content = `${id} ${text}`
  return Buffer.from(`\n+${sumOf(content)} ${content}\n`)
}

/** A new file of these lines, with consecutive ids. */
export function fileOf(kind: FileFields['kind'], id: number, texts: readonly string[], next = untried) {
  const content = Buffer.concat(texts.map((text, index) => lineOf(id + index, text)))
  const fields: FileFields = { kind, ...next, id, count: texts.length, bytes: content.length }
  return { name: nameOf(fields), fields, content }
}

/** The waiting entries of a file, and where the file is damaged. Never throws: damaged entries are left out. */
export function contentOf(
  bytes: Buffer,
  expected: Pick<FileFields, 'id' | 'count' | 'bytes'>,
): { readonly lines: readonly Line[]; readonly damagedAt: readonly number[] } {
  const lines: Line[] = []
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
    const segment = bytes.subarray(start, end)
    if (segment.subarray(0, doneMark.length).equals(doneMark)) continue
    const line = lineIn(segment, start)
    // A foreign or repeated line comes from a disk that confused its blocks.
    const isOwn =
      line !== undefined &&
      line.id >= expected.id &&
      line.id < expected.id + expected.count &&
      !seen.has(line.id)
    if (isOwn) {
      seen.add(line.id)
      lines.push(line)
    }
    if (!isOwn || !isInPlace || segment[0] !== waitsMark) damagedAt.push(start)
  }
  const isWhole = bytes.length === expected.bytes && nextStart === bytes.length + 1
  if (!isWhole && damagedAt.length === 0) damagedAt.push(Math.min(bytes.length, expected.bytes))
  return { lines, damagedAt }
}

function lineIn(segment: Buffer, offset: number): Line | undefined {
  const content = segment.subarray(headerBytes)
  if (segment.toString('latin1', 1, headerBytes) !== `${sumOf(content)} `) return undefined
  const text = content.toString()
  const space = text.indexOf(' ')
  return { id: Number(text.slice(0, space)), offset, text: text.slice(space + 1) }
}

function sumOf(content: string | Uint8Array): string {
  return crc32(content).toString(16).padStart(8, '0')
}

function digits(value: number, count: number): string {
  return String(value).padStart(count, '0')
}
