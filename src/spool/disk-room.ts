/** Room on the disk: what is added waits until there is enough, and is refused where there is none. */
import { SpoolError } from '../errors.js'
import { messageOf } from '../shared/excerpt.js'
import type { DataFile } from './data-file.js'
import type { Measures } from './measures.js'

/** What may wait in memory for a disk that is slow, in bytes. */
const maxUnwrittenBytes = 64 * 2 ** 20

/** The longest value that needs no pages next to each other, in bytes. */
const maxInlineBytes = 1_900

/** What the file has to have free for everything but what is added: removing, postponing. */
const spareBytes = 2 ** 20
const spareBytesPerDelivery = 2 ** 14

/** How many bytes of the file an added byte may take, because pages may be half empty after they are split. */
const fileBytesPerByte = 3

export interface SpoolLimits {
  readonly maxBytes: number
  /** How many entries may be removed or postponed at the same time. */
  readonly concurrency: number
}

export class DiskRoom {
  readonly #file: DataFile
  readonly #measure: () => Measures
  readonly #maxBytes: number
  readonly #spareBytes: number
  #unwrittenBytes = 0
  /** The last measures; none after a write, until they are needed again. */
  #measured: Measures | undefined

  /** @param measure - measures what the file holds now */
  constructor(file: DataFile, measure: () => Measures, { maxBytes, concurrency }: SpoolLimits) {
    this.#file = file
    this.#measure = measure
    this.#maxBytes = maxBytes
    this.#spareBytes = spareBytes + concurrency * spareBytesPerDelivery
  }

  /**
   * Calls `write` when there is room for so many bytes more.
   *
   * @throws `SpoolError` if there is none, or what `write` throws
   */
  async take(bytes: number, write: () => Promise<void>): Promise<void> {
    // Counted before the first `await`: what is added meanwhile needs room besides these bytes.
    this.#unwrittenBytes += bytes
    try {
      await this.#require(bytes)
      await write()
    } finally {
      this.#unwrittenBytes -= bytes
    }
  }

  /** To be called when something was written: the last measures are out of date then. */
  changed(): void {
    this.#measured = undefined
  }

  /** @throws `SpoolError` if there is no room for what is not written yet, of which `bytes` come last */
  async #require(bytes: number): Promise<void> {
    const unwritten = this.#unwrittenBytes
    if (unwritten > maxUnwrittenBytes) {
      throw new SpoolError(`The disk is too slow: ${unwritten} bytes wait for it.`, { reason: 'disk' })
    }
    const { waitingBytes } = this.#measures
    if (waitingBytes + unwritten > this.#maxBytes) {
      throw new SpoolError(
        `The spool is full: ${waitingBytes} bytes wait, and maxBytes is ${this.#maxBytes}.`,
        { reason: 'full' },
      )
    }
    const needed = this.#spareBytes + fileBytesPerByte * unwritten
    if (await this.#file.growTo(this.#measures.endBytes + needed)) return
    // The disk is full. Pages that became free in the file will do, where none have to be next to each other.
    const { usedBytes, endBytes } = this.#measures
    const isRoomInside = this.#file.size - usedBytes >= 2 * needed
    const isRoomToRemove = this.#file.size - endBytes >= this.#spareBytes / 2
    if (bytes <= maxInlineBytes && isRoomInside && isRoomToRemove) return
    const cause = this.#file.failure
    throw new SpoolError(
      `The disk has no room for the spool (${messageOf(cause)}).`,
      { reason: 'disk' },
      { cause },
    )
  }

  get #measures(): Measures {
    this.#measured ??= this.#measure()
    return this.#measured
  }
}
