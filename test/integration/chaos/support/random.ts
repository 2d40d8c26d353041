/** Random numbers that come again for the same seed. */

export interface Random {
  /** From `min` up to, but without, `max`. */
  between(min: number, max: number): number
  shuffled<T>(items: readonly T[]): T[]
}

/** mulberry32. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return {
    between: (min, max) => min + next() * (max - min),
    shuffled(items) {
      const left = [...items]
      return items.flatMap(() => left.splice(Math.floor(next() * left.length), 1))
    },
  }
}
