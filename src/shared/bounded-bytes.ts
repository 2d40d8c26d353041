/** Collects a body that arrives in pieces, up to a limit. */

const nothing = new Uint8Array()

/** Collects pieces up to a size. Most bodies are one piece, which is not copied. */
export class BoundedBytes {
  readonly #maxBytes: number
  #buffer: Uint8Array = nothing
  #size = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Adds a piece, and returns whether all of it fits; otherwise its beginning is kept. */
  add(piece: Uint8Array): boolean {
    const free = this.#maxBytes - this.#size
    if (piece.byteLength > free) {
      this.add(piece.subarray(0, free))
      return false
    }
    const end = this.#size + piece.byteLength
    if (this.#size === 0) {
      this.#buffer = piece
    } else {
      if (end > this.#buffer.byteLength) this.#growFor(end)
      this.#buffer.set(piece, this.#size)
    }
    this.#size = end
    return true
  }

  /** The bytes added so far. */
  get bytes(): Uint8Array {
    return this.#size < this.#buffer.byteLength ? this.#buffer.subarray(0, this.#size) : this.#buffer
  }

  /** Doubles the buffer: otherwise each byte of a slow sender could cost a new buffer. */
  #growFor(size: number): void {
    const grown = new Uint8Array(Math.min(size * 2, this.#maxBytes))
    grown.set(this.#buffer)
    this.#buffer = grown
  }
}

type Pieces = AsyncIterable<Uint8Array> | Iterable<Uint8Array>

/** Reads a body into `bytes`, up to their limit, and returns whether they have the whole body. */
export async function readInto(bytes: BoundedBytes, pieces: Pieces): Promise<boolean> {
  for await (const piece of pieces) if (!bytes.add(piece)) return false
  return true
}

/** Reads a body up to a limit. If a piece exceeds the limit, the part that fits is kept. */
export async function readUpTo(
  maxBytes: number,
  pieces: Pieces,
): Promise<{ bytes: Uint8Array; isComplete: boolean }> {
  const body = new BoundedBytes(maxBytes)
  const isComplete = await readInto(body, pieces)
  return { bytes: body.bytes, isComplete }
}
