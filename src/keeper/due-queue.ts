/** Who is due next: a binary heap. A record whose time was put off meanwhile goes back in with its new time. */
import type { UserRecord } from './user-record.js'

interface Entry {
  readonly dueFrom: number
  readonly record: UserRecord
}

export class DueQueue {
  #heap: Entry[] = []

  /** When the first entry is due at the earliest; monotonic. */
  get nextDueFrom(): number {
    return this.#heap[0]?.dueFrom ?? Number.POSITIVE_INFINITY
  }

  clear(): void {
    for (const { record } of this.#heap) record.queuedFrom = Number.POSITIVE_INFINITY
    this.#heap = []
  }

  /** Takes note of `record.dueFrom`. An entry that is too early is kept: it is put off when its time has come. */
  add(record: UserRecord): void {
    if (record.queuedFrom <= record.dueFrom) return
    record.queuedFrom = record.dueFrom
    const heap = this.#heap
    const entry = { dueFrom: record.dueFrom, record }
    let index = heap.push(entry) - 1
    while (index > 0) {
      const parent = (index - 1) >> 1
      const above = heap[parent] as Entry
      if (above.dueFrom <= entry.dueFrom) break
      heap[index] = above
      index = parent
    }
    heap[index] = entry
  }

  /** Takes out the next record that is due, if one is. */
  take(now: number): UserRecord | undefined {
    while (this.nextDueFrom <= now) {
      const { dueFrom, record } = this.#pop()
      // An earlier entry has taken the place of this one.
      if (dueFrom !== record.queuedFrom) continue
      record.queuedFrom = Number.POSITIVE_INFINITY
      if (record.dueFrom <= now) return record
      this.add(record)
    }
    return undefined
  }

  #pop(): Entry {
    const heap = this.#heap
    const top = heap[0] as Entry
    const last = heap.pop() as Entry
    if (heap.length === 0) return top
    let index = 0
    for (;;) {
      let child = 2 * index + 1
      let below = heap[child]
      const right = heap[child + 1]
      if (below !== undefined && right !== undefined && right.dueFrom < below.dueFrom) {
        below = right
        child++
      }
      if (below === undefined || below.dueFrom >= last.dueFrom) break
      heap[index] = below
      index = child
    }
    heap[index] = last
    return top
  }
}
