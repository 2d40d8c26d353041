import { setImmediate } from 'node:timers/promises'

/** The largest write, in bytes. */
const maxGroupBytes = 2 ** 20

/** Writes items in groups, one group at a time: items of the same turn, or that arrive during a write, share the next write. */
export class GroupedWrites<Item> {
  readonly #write: (items: readonly Item[]) => Promise<void>
  /** The group that collects items, and its size. */
  #items: Item[] = []
  #bytes = 0
  #written: Promise<void> = Promise.resolve()

  constructor(write: (items: readonly Item[]) => Promise<void>) {
    this.#write = write
  }

  /** Settles as the write of the item's group does. */
  add(item: Item, bytes = 0): Promise<void> {
    if (this.#items.length === 0 || this.#bytes >= maxGroupBytes) {
      this.#items = []
      this.#bytes = 0
      this.#written = this.#writeAfter(this.#written, this.#items)
    }
    this.#items.push(item)
    this.#bytes += bytes
    return this.#written
  }

  async #writeAfter(earlier: Promise<void>, items: Item[]): Promise<void> {
    await Promise.allSettled([earlier, setImmediate()])
    if (this.#items === items) this.#items = []
    await this.#write(items)
  }
}
