import { seed } from './random-runs.js'

/** Random numbers (mulberry32) that come again for the same seed. */
export class Random {
  #state: number
  readonly seed: number

  constructor(seed: number) {
    this.seed = seed
    this.#state = seed
  }

  static seeded(): Random {
    return new Random(seed)
  }

  /** From 0 to 1. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }

  upTo(limit: number): number {
    return this.next() * limit
  }

  /** From `min` up to, but without, `max`. */
  between(min: number, max: number): number {
    return min + this.upTo(max - min)
  }

  chance(share: number): boolean {
    return this.next() < share
  }

  oneOf<Item>(items: readonly [Item, ...Item[]]): Item {
    return items[Math.floor(this.next() * items.length)] as Item
  }

  shuffled<Item>(items: readonly Item[]): Item[] {
    return items
      .map((item) => ({ item, order: this.next() }))
      .sort((one, other) => one.order - other.order)
      .map(({ item }) => item)
  }
}
