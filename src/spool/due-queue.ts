import type { FileFields } from './format.js'
import { maxGroupBytes } from './grouped-writes.js'

/** How many files are read at a time: with 100,000 files of one delivery each, one at a time took three times as long. */
const maxFiles = 64

/** Files by due time, then by id. */
export class DueQueue<File extends { readonly fields: FileFields }> {
  /** The next file is last, because `shift` on 100,000 files takes 200 µs. */
  readonly #files: File[] = []

  get first(): File | undefined {
    return this.#files.at(-1)
  }

  get last(): File | undefined {
    return this.#files[0]
  }

  /** Finds the place of a file by bisection: 100,000 files may wait. */
  add(file: File): void {
    let from = 0
    let to = this.#files.length
    while (from < to) {
      const middle = (from + to) >> 1
      const other = this.#files[middle]
      if (other && isDueBefore(file.fields, other.fields)) from = middle + 1
      else to = middle
    }
    this.#files.splice(from, 0, file)
  }

  /** Removes the first due files, as many as are read at a time. */
  takeDue(now: number): File[] {
    const due: File[] = []
    for (let bytes = 0; bytes < maxGroupBytes && due.length < maxFiles; ) {
      const file = this.first
      if (file === undefined || file.fields.dueAt > now) break
      this.#files.pop()
      due.push(file)
      bytes += file.fields.bytes
    }
    return due
  }
}

function isDueBefore(a: FileFields, b: FileFields): boolean {
  return a.dueAt === b.dueAt ? a.id < b.id : a.dueAt < b.dueAt
}
