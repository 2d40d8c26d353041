interface Due {
  readonly dueAt: number
}

/** A binary heap: what is due first is first. Adding to 100,000 and taking from them costs a microsecond. */
export class DueHeap<Item extends Due> {
  readonly #items: Item[] = []

  get first(): Item | undefined {
    return this.#items[0]
  }

  add(item: Item): void {
    let at = this.#items.length
    for (let above = (at - 1) >> 1; isBefore(item, this.#items[above]); above = (at - 1) >> 1) {
      this.#items[at] = this.#items[above] as Item
      at = above
    }
    this.#items[at] = item
  }

  /** Removes the first item if it is due. */
  takeDue(now: number): Item | undefined {
    const { first } = this
    if (first === undefined || first.dueAt > now) return undefined
    const item = this.#items.pop() as Item
    let at = 0
    for (let below = 1; ; below = 2 * at + 1) {
      if (isBefore(this.#items[below + 1], this.#items[below])) below += 1
      if (!isBefore(this.#items[below], item)) break
      this.#items[at] = this.#items[below] as Item
      at = below
    }
    if (this.#items.length > 0) this.#items[at] = item
    return first
  }
}

function isBefore(one: Due | undefined, other: Due | undefined): boolean {
  return one !== undefined && other !== undefined && one.dueAt < other.dueAt
}
