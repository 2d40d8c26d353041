/** Dead letters: one file each, with the body in its first line and the reason in its second. */
import { type Issue, SpoolError } from '../errors.js'
import { isBytes, jsonOf } from '../webhooks/body.js'
import type { SpoolFolder } from './folder.js'
import { contentOf, diskBytesOf, type FileFields, fileOf, nameOf, receivedAtOf } from './format.js'
import type { SpoolReports } from './spool-options.js'

/** A body that the spool keeps for inspection; see `DeliverySpool.deadLetters`. */
export interface DeadLetter {
  /** The argument of `retry` and `discard`. */
  readonly id: number
  /** When it was received, in milliseconds since 1970. */
  readonly receivedAt: number
  /** What was received: text, bytes or a parsed value; of a kept delivery its JSON text. */
  readonly body: unknown
  /** `invalid`: the body is no delivery, or no longer valid. `stuck`: `onStuck` returned `'dead-letter'`. */
  readonly reason: 'invalid' | 'stuck'
  /** With `invalid`: why the body is no delivery. */
  readonly issues?: readonly Issue[]
  /** With `stuck`: the last error of `deliver`. Missing if the disk was full. */
  readonly error?: {
    /** The error's name. */
    readonly name: string
    /** The error's message. */
    readonly message: string
  }
}

/** The second line of a letter. */
export type LetterDetails = Pick<DeadLetter, 'issues' | 'error'>

/** The disk quota of invalid bodies, in bytes. */
const maxInvalidBytes = 16 * 2 ** 20

export class DeadLetters {
  readonly #folder: SpoolFolder
  readonly #reports: SpoolReports
  readonly #letters = new Map<number, FileFields>()
  #keptBytes = 0

  constructor(folder: SpoolFolder, reports: SpoolReports) {
    this.#folder = folder
    this.#reports = reports
  }

  /** The disk space of letters of kept deliveries, in bytes. */
  get keptBytes(): number {
    return this.#keptBytes
  }

  /** The ids, the oldest first. */
  get ids(): number[] {
    return [...this.#letters.keys()].sort((a, b) => a - b)
  }

  /** Counts a letter that is on the disk. */
  track(fields: FileFields): void {
    this.#letters.set(fields.id, fields)
    if (fields.kind !== 'invalid') this.#keptBytes += diskBytesOf(fields.bytes)
  }

  #forget({ id, kind, bytes }: FileFields): boolean {
    const isKnown = this.#letters.delete(id)
    if (isKnown && kind !== 'invalid') this.#keptBytes -= diskBytesOf(bytes)
    return isKnown
  }

  /**
   * Keeps a letter. The letter of a kept delivery has its JSON text, and is never dropped.
   *
   * @throws `SpoolError` if the disk fails or is full
   */
  async add({ name, fields, content }: ReturnType<typeof fileOf>): Promise<void> {
    await this.#folder.write(name, content)
    this.track(fields)
  }

  /**
   * Keeps a body that is no delivery. Drops the oldest such bodies above the quota.
   *
   * @throws `SpoolError` if the body is too large, or the disk fails or is full, `InvalidDeliveryError` if the body
   * cannot be written as JSON
   */
  async addInvalid(id: number, body: unknown, issues: readonly Issue[]): Promise<void> {
    const text = jsonOf(isBytes(body) ? { base64: bufferOf(body).toString('base64') } : { body }, body)
    const file = fileOf('invalid', id, [text, JSON.stringify({ issues })])
    if (diskBytesOf(file.fields.bytes) > maxInvalidBytes) {
      throw new SpoolError('The body is larger than 16 MiB.', { reason: 'full' })
    }
    await this.add(file)
    const invalid = [...this.#letters.values()].filter(({ kind }) => kind === 'invalid')
    let bytes = invalid.reduce((sum, letter) => sum + diskBytesOf(letter.bytes), 0)
    for (const letter of invalid) {
      if (bytes <= maxInvalidBytes) return
      bytes -= diskBytesOf(letter.bytes)
      await this.remove(letter.id)
    }
  }

  /** Resolves with `undefined` if the letter is gone or damaged; damage is reported. @throws `SpoolError` */
  async read(id: number): Promise<DeadLetter | undefined> {
    const fields = this.#letters.get(id)
    if (fields === undefined) return undefined
    const name = nameOf(fields)
    const { lines, damagedAt } = contentOf(await this.#folder.read(name), fields)
    const [first, second] = lines
    if (first === undefined || damagedAt.length > 0) {
      await this.#folder.keepDamaged(name)
      // Not if it was discarded meanwhile, or another reader found it damaged.
      if (this.#forget(fields)) this.#reports.damaged(name, damagedAt[0])
      return undefined
    }
    const { kind } = fields
    const { body, base64 } = kind === 'invalid' ? JSON.parse(first.text) : { body: first.text }
    return {
      id,
      receivedAt: receivedAtOf(id),
      body: base64 === undefined ? body : Buffer.from(base64, 'base64'),
      reason: kind === 'stuck' ? 'stuck' : 'invalid',
      ...(second === undefined ? {} : JSON.parse(second.text)),
    }
  }

  /** Removes a letter after `first`. Resolves with whether the letter existed. If two calls race, one wins. */
  async remove(id: number, first: () => Promise<void> = async () => {}): Promise<boolean> {
    const fields = this.#letters.get(id)
    if (fields === undefined) return false
    this.#forget(fields)
    try {
      await first()
      await this.#folder.remove(nameOf(fields))
      return true
    } catch (error) {
      this.track(fields)
      throw error
    }
  }
}

function bufferOf(bytes: ArrayBuffer | ArrayBufferView): Buffer {
  return ArrayBuffer.isView(bytes)
    ? Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
    : Buffer.from(bytes)
}
