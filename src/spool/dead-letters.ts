/** Dead letters: one file each, with the body in its first line and the reason in its second. */
import { InvalidDeliveryError, type Issue, SpoolError } from '../errors.js'
import { bytesOf, isBytes, jsonOf } from '../webhooks/body.js'
import type { SpoolFolder } from './folder.js'
import type { EntryFields, FileFields } from './format.js'
import { diskBytesOf, fieldsIn, lineOf, nameOf, placesIn } from './format.js'

/** A body that the spool keeps for inspection; see `DeliverySpool.deadLetters`. */
export interface DeadLetter {
  /** The argument of `retry` and `discard`. */
  readonly id: number
  /** When it was received, in milliseconds since 1970. */
  readonly receivedAt: number
  /** What was received: text, bytes or a parsed value; of a kept delivery its JSON text. */
  readonly body: unknown
  /** The body as text: bytes are read as UTF-8, a parsed value is written as JSON. */
  readonly bodyText: string
  /** `invalid`: the body is no delivery, or no longer valid. `stuck`: `onStuck` said so, or the delivery ended three processes. */
  readonly reason: 'invalid' | 'stuck'
  /** With `invalid`: why the body is no delivery. */
  readonly issues?: readonly Issue[]
  /** With `stuck`: the last error of `deliver`. */
  readonly error?: {
    readonly name: string
    readonly message: string
  }
}

/** A letter with the header of its callback. */
export type StoredLetter = DeadLetter & Pick<EntryFields, 'traceparent'>

/** The second line of a letter. */
export type LetterDetails = Pick<DeadLetter, 'issues' | 'error'>

/** The disk quota of invalid bodies, in bytes. */
const maxInvalidBytes = 16 * 2 ** 20

export class DeadLetters {
  readonly #letters = new Map<number, FileFields>()
  /** The disk space of letters of kept deliveries, in bytes. */
  keptBytes = 0

  constructor(private readonly folder: SpoolFolder) {}

  /** The ids, the oldest first. */
  get ids(): number[] {
    return [...this.#letters.keys()].sort((a, b) => a - b)
  }

  /** Counts a letter that is on the disk. */
  track(fields: FileFields): void {
    this.#letters.set(fields.id, fields)
    if (fields.kind !== 'invalid') this.keptBytes += diskBytesOf(fields.size)
  }

  /** Keeps a letter. The letter of a kept delivery has the delivery's JSON text, and is never dropped. @throws `SpoolError` */
  async add(kind: FileFields['kind'], entry: EntryFields, details: LetterDetails): Promise<void> {
    const { id, receivedAt } = entry
    const text = lineOf(id, entry) + lineOf(id, { id: id + 1, receivedAt, text: JSON.stringify(details) })
    const size = Buffer.byteLength(text)
    if (kind === 'invalid' && diskBytesOf(size) > maxInvalidBytes) {
      throw new SpoolError('The body is larger than 16 MiB, and cannot be kept.', { reason: 'full' })
    }
    const fields = { kind, id, lastId: id, count: 1, size, oldestAt: receivedAt }
    await this.folder.write(nameOf(fields), text)
    this.track(fields)
  }

  /** Keeps a body that is no delivery; drops the oldest above the quota. @throws `SpoolError`, `InvalidDeliveryError` */
  async addInvalid(id: number, body: unknown, issues: readonly Issue[]): Promise<void> {
    const kept = isBytes(body) ? { base64: Buffer.from(bytesOf(body)).toString('base64') } : { body }
    await this.add('invalid', { id, receivedAt: Date.now(), text: jsonOf(kept, body) }, { issues })
    const invalid = [...this.#letters.values()].filter(({ kind }) => kind === 'invalid')
    let bytes = invalid.reduce((sum, { size }) => sum + diskBytesOf(size), 0)
    for (const letter of invalid) {
      if (bytes <= maxInvalidBytes) return
      bytes -= diskBytesOf(letter.size)
      await this.remove(letter.id)
    }
  }

  /** Resolves with `undefined` if the letter is gone or damaged; damage is reported. @throws `SpoolError` */
  async read(id: number): Promise<StoredLetter | undefined> {
    const fields = this.#letters.get(id)
    if (fields === undefined) return undefined
    const name = nameOf(fields)
    const { letter, damagedAt } = letterIn(await this.folder.read(name), fields)
    if (letter !== undefined) return letter
    // A letter that was discarded meanwhile is not damaged.
    const isDamaged = await this.remove(id, () => this.folder.keepDamaged(name))
    if (isDamaged) this.folder.reports.damaged(name, damagedAt)
    return undefined
  }

  /** Removes a letter after `first`. Resolves with whether the letter existed. If two calls race, one wins. */
  async remove(id: number, first: () => Promise<void> = async () => {}): Promise<boolean> {
    const fields = this.#letters.get(id)
    if (fields === undefined) return false
    this.#letters.delete(id)
    try {
      await first()
      await this.folder.remove(nameOf(fields))
    } catch (error) {
      this.#letters.set(id, fields)
      throw error
    }
    if (fields.kind !== 'invalid') this.keptBytes -= diskBytesOf(fields.size)
    return true
  }
}

/** The letter in a file, or where the file is damaged. */
export function letterIn(bytes: Buffer, fields: FileFields): { letter?: StoredLetter; damagedAt?: number } {
  const { places, damagedAt } = placesIn(bytes, fields.id, fields.size)
  const [first, second] = places.map(({ offset, length }) =>
    fieldsIn(bytes.subarray(offset, offset + length), fields.id),
  )
  if (first === undefined || second === undefined || damagedAt.length > 0) {
    return { damagedAt: damagedAt[0] ?? 0 }
  }
  const details: LetterDetails = JSON.parse(second.text)
  const { id, kind, oldestAt: receivedAt } = fields
  const kept: { body?: unknown; base64?: string } =
    kind === 'invalid' ? JSON.parse(first.text) : { body: first.text }
  const body = kept.base64 === undefined ? kept.body : Buffer.from(kept.base64, 'base64')
  const { bodyText } = new InvalidDeliveryError('', { issues: [], body })
  const reason = kind === 'stuck' ? 'stuck' : 'invalid'
  return { letter: { id, receivedAt, body, bodyText, reason, ...details, traceparent: first.traceparent } }
}
