/** What became of reading a body, and how a web stream is read. */

import { messageOf } from '../../text.js'
import { type Failure, failure } from '../failure.js'
import { startDeadline } from './deadline.js'

/** All of a body; or why it cannot be used, with what there is of it; or more than is allowed. */
export type ReadBody = WholeBody | { readonly bytes: Uint8Array; readonly failure: Failure } | 'too large'

interface WholeBody {
  readonly bytes: Uint8Array
  readonly failure?: undefined
}

export function isWhole(read: ReadBody): read is WholeBody {
  return read !== 'too large' && read.failure === undefined
}

/** How long a body may take to arrive, in milliseconds: a sender that stops half way holds nothing for ever. */
export const bodyTimeoutMs = 10_000

export const unusable = (problem: string, bytes: Uint8Array, cause?: unknown): ReadBody => ({
  bytes,
  failure: failure(problem, cause),
})

export const arrivedTooLate = (bytes: Uint8Array): ReadBody =>
  unusable(`the body did not arrive within ${bodyTimeoutMs} ms`, bytes)

/** Pieces of a body as they arrive, up to a limit. Most bodies are one piece, which is not copied. */
export class Pieces {
  readonly #maxBytes: number
  #bytes: Uint8Array = nothing
  #size = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Keeps a piece; `false` if it is too much. */
  add(piece: Uint8Array): boolean {
    const size = this.#size + piece.byteLength
    if (size > this.#maxBytes) return false
    if (this.#size === 0) {
      this.#bytes = piece
    } else {
      // One buffer that doubles: a sender of single bytes cannot make them cost more than that.
      if (size > this.#bytes.byteLength) this.#grow(size)
      this.#bytes.set(piece, this.#size)
    }
    this.#size = size
    return true
  }

  get size(): number {
    return this.#size
  }

  joined(): Uint8Array {
    return this.#bytes.subarray(0, this.#size)
  }

  #grow(size: number): void {
    const grown = new Uint8Array(Math.max(size, Math.min(size * 2, this.#maxBytes)))
    grown.set(this.#bytes)
    this.#bytes = grown
  }
}

const nothing = new Uint8Array()

/** Reads a web stream up to `maxBytes`, and cancels it beyond that. Never rejects. */
export async function readStream(stream: ReadableStream<Uint8Array>, maxBytes: number): Promise<ReadBody> {
  const pieces = new Pieces(maxBytes)
  let isLate = false
  let cancel = () => {}
  const stopWaiting = startDeadline(bodyTimeoutMs, () => {
    isLate = true
    cancel()
  })
  try {
    const reader = stream.getReader()
    cancel = () => void reader.cancel().catch(() => {})
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      if (!ArrayBuffer.isView(part.value)) throw new TypeError('it is a stream of something else than bytes')
      // Any view will do, whatever its elements are.
      const { buffer, byteOffset, byteLength } = part.value
      if (pieces.add(new Uint8Array(buffer, byteOffset, byteLength))) continue
      cancel()
      return 'too large'
    }
    return isLate ? arrivedTooLate(pieces.joined()) : { bytes: pieces.joined() }
  } catch (cause) {
    return unusable(`the body cannot be read (${messageOf(cause)})`, pieces.joined(), cause)
  } finally {
    stopWaiting()
  }
}
