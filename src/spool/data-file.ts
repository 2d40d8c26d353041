/**
 * The file that LMDB writes, as the disk sees it. It is made longer before LMDB needs the room, so that LMDB never
 * writes to a disk that is full: even removing needs a few new pages, and the process may crash when lmdb 3.5
 * reports a write that failed (it prints more into a buffer than that holds).
 */
import { type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'

/** How much longer the file becomes at a time, in bytes. */
const growthBytes = 2 ** 20

/** How long a disk that was full is left alone, in milliseconds. */
const retryMs = 1_000

export class DataFile {
  readonly #handle: FileHandle
  #size: number
  #growing: Promise<void> | undefined
  #failedAt = Number.NEGATIVE_INFINITY
  /** What the last attempt to make the file longer failed with, if one did. */
  failure: unknown

  private constructor(handle: FileHandle, size: number) {
    this.#handle = handle
    this.#size = size
  }

  static async open(folder: string): Promise<DataFile> {
    // Appends only: whatever LMDB writes meanwhile, nothing of it is overwritten.
    const handle = await open(join(folder, 'data.mdb'), 'a', 0o600)
    return new DataFile(handle, (await handle.stat()).size)
  }

  get size(): number {
    return this.#size
  }

  /** Makes the file at least `size` bytes long, and resolves with whether it is. */
  async growTo(size: number): Promise<boolean> {
    while (this.#size < size && performance.now() - this.#failedAt >= retryMs) {
      this.#growing ??= this.#grow(size).finally(() => (this.#growing = undefined))
      await this.#growing
    }
    return this.#size >= size
  }

  async #grow(size: number): Promise<void> {
    try {
      const missing = Math.ceil((size - this.#size) / growthBytes) * growthBytes
      await this.#handle.appendFile(Buffer.alloc(missing))
    } catch (error) {
      this.failure = error
      this.#failedAt = performance.now()
    }
    // Also after a failure: what the disk did take is room.
    this.#size = (await this.#handle.stat()).size
  }

  close(): Promise<void> {
    return this.#handle.close()
  }
}
