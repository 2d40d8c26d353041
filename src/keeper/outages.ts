/** Outages as problems: told at once, and told to be over when the service has worked for a while. */
import type { Outage, OutageKind } from './circuit.js'
import type { Problems } from './problems.js'

/** A service of which every other answer is an error is one trouble, not a hundred. */
const calmMs = 60_000

const codes = { CREDENTIALS: 'CREDENTIALS', SERVICE: 'SERVICE', REFUSED: 'SERVICE' } as const

const messages: Readonly<Record<OutageKind, string>> = {
  CREDENTIALS:
    'The credentials are refused: check the client ID and the secret, and that access was not ended. ' +
    'One call at a time tests whether they are accepted again.',
  SERVICE:
    'The service fails or cannot be reached. One call at a time, from every 5 s to every 5 min, tests whether it is back.',
  REFUSED:
    'The service refused the last requests of all users that were tried: look at the error for what it says about it. ' +
    'One call at a time goes on testing.',
}

export class Outages {
  readonly #problems: Problems
  /** What is told, and not yet told to be over. */
  #told: OutageKind | undefined
  /** Since when the service works again; monotonic. */
  #recoveredSince = Number.POSITIVE_INFINITY

  constructor(problems: Problems) {
    this.#problems = problems
  }

  began({ kind, error }: Outage): void {
    this.#recoveredSince = Number.POSITIVE_INFINITY
    if (this.#told !== kind) this.end()
    this.#told = kind
    this.#problems.begin(codes[kind], messages[kind], { error })
  }

  recovered(): void {
    this.#recoveredSince = performance.now()
  }

  /** @param isWatching - whether anybody will look again before long */
  review(now: number, isWatching: boolean): void {
    if (now - this.#recoveredSince >= (isWatching ? calmMs : 0)) this.end()
  }

  /** Tells that it is over, or another process's matter. */
  end(): void {
    if (this.#told !== undefined) this.#problems.end(codes[this.#told])
    this.#told = undefined
    this.#recoveredSince = Number.POSITIVE_INFINITY
  }
}
