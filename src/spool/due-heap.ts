/** A binary heap: what is due first is first. Adding to 100,000 and taking from them costs a microsecond. */
export class DueHeap<Item extends { readonly dueAt: number }> {
  readonly #items: Item[] = []

  get first(): Item | undefined {
    return this.#items[0]
  }

  add(item: Item): void {
    const items = this.#items
    let at = items.length
    for (let above = parentOf(at); at > 0 && isBefore(item, items[above]); above = parentOf(at)) {
      items[at] = items[above] as Item
      at = above
    }
    items[at] = item
  }

  /** Removes the first item if it is due. */
  takeDue(now: number): Item | undefined {
    const items = this.#items
    const [first] = items
    if (first === undefined || first.dueAt > now) return undefined
    const last = items.pop() as Item
    if (items.length > 0) this.#sink(last)
    return first
  }

  /** Puts an item in the place of the first, and then below all that are due before it. */
  #sink(item: Item): void {
    const items = this.#items
    let at = 0
    for (let below = 1; below < items.length; below = 2 * at + 1) {
      if (isBefore(items[below + 1], items[below])) below += 1
      if (!isBefore(items[below], item)) break
      items[at] = items[below] as Item
      at = below
    }
    items[at] = item
  }
}

function parentOf(at: number): number {
  return (at - 1) >> 1
}

function isBefore(
  one: { readonly dueAt: number } | undefined,
  other: { readonly dueAt: number } | undefined,
): boolean {
  return one !== undefined && other !== undefined && one.dueAt < other.dueAt
}
