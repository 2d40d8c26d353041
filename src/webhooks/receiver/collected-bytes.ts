/** The bytes of a body that arrives in pieces. */

const nothing = new Uint8Array()

/** Collects pieces up to a size. Most bodies are one piece, which is not copied. */
export class CollectedBytes {
  readonly #maxBytes: number
  #buffer: Uint8Array = nothing
  #size = 0

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes
  }

  /** Adds a piece, and returns whether it still fits. A piece that does not fit is left out. */
  add(piece: Uint8Array): boolean {
    const end = this.#size + piece.byteLength
    if (end > this.#maxBytes) return false
    if (this.#size === 0) {
      this.#buffer = piece
    } else {
      if (end > this.#buffer.byteLength) this.#growFor(end)
      this.#buffer.set(piece, this.#size)
    }
    this.#size = end
    return true
  }

  /** How many bytes were added. */
  get size(): number {
    return this.#size
  }

  /** What was added until now. */
  get bytes(): Uint8Array {
    return this.#size < this.#buffer.byteLength ? this.#buffer.subarray(0, this.#size) : this.#buffer
  }

  /** Makes room in one buffer that doubles, so that a sender of single bytes cannot make each of them cost a buffer. */
  #growFor(size: number): void {
    const grown = new Uint8Array(Math.min(size * 2, this.#maxBytes))
    grown.set(this.#buffer)
    this.#buffer = grown
  }
}
