/** Who is wanted, and was when. */

import type { Random } from '../../support/random.js'
import type { Span } from './keeper-processes.js'

export class RosterHistory {
  readonly wanted = new Map<string, Span[]>()
  readonly names: Set<string>
  #newcomers = 0

  constructor(names: readonly string[]) {
    this.names = new Set(names)
    for (const name of names) this.#begin(name)
  }

  change(random: Random): void {
    const gone = [...this.wanted.keys()].filter((name) => !this.names.has(name))
    // As a rule the one who came last: a create for them may be in flight just now.
    const leaver = [...this.names].at(random.chance(0.7) ? -1 : 0) as string
    this.remove(leaver)
    const [first, ...others] = gone
    const isReturn = first !== undefined && random.chance(0.4)
    const comer = isReturn ? random.oneOf([first, ...others]) : `newcomer-${++this.#newcomers}`
    this.names.add(comer)
    this.#begin(comer)
  }

  remove(name: string): void {
    this.names.delete(name)
    const span = this.wanted.get(name)?.at(-1)
    if (span !== undefined) span.to = Math.min(span.to, Date.now())
  }

  #begin(name: string): void {
    const spans = this.wanted.get(name) ?? []
    spans.push({ from: Date.now(), to: Number.POSITIVE_INFINITY })
    this.wanted.set(name, spans)
  }
}
