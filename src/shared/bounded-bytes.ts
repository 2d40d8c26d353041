const nothing = new Uint8Array()

/** Collects a body that arrives in pieces, up to a size. Most bodies are one piece, which is not copied. */
export class BoundedBytes {
  #buffer: Uint8Array = nothing
  #size = 0

  constructor(private readonly maxBytes: number) {}

  /** Adds a piece, and returns whether all of it fits; otherwise its beginning is kept. */
  add(piece: Uint8Array): boolean {
    const free = this.maxBytes - this.#size
    if (piece.byteLength > free) {
      this.add(piece.subarray(0, free))
      return false
    }
    const end = this.#size + piece.byteLength
    if (this.#size === 0) {
      this.#buffer = piece
    } else {
      if (end > this.#buffer.byteLength) {
        // Twice as large: otherwise each byte of a slow sender could cost a new buffer.
        const grown = new Uint8Array(Math.min(end * 2, this.maxBytes))
        grown.set(this.#buffer)
        this.#buffer = grown
      }
      this.#buffer.set(piece, this.#size)
    }
    this.#size = end
    return true
  }

  /** Adds all pieces, or as many as fit, and returns whether all of them fit. */
  async addAll(pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<boolean> {
    for await (const piece of pieces) if (!this.add(piece)) return false
    return true
  }

  get bytes(): Uint8Array {
    return this.#size < this.#buffer.byteLength ? this.#buffer.subarray(0, this.#size) : this.#buffer
  }

  /** The bytes as text in UTF-8. */
  get text(): string {
    return new TextDecoder().decode(this.bytes)
  }
}
