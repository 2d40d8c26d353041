/** Calls a user's functions so that their errors break nothing here, shares calls, and counts work in flight. */

/**
 * Calls a function at once, and resolves when its result is settled. `onFailure` gets its error, and is awaited, too.
 * Never rejects, unless `onFailure` fails.
 */
export async function callSafely(call: () => unknown, onFailure: (error: unknown) => unknown): Promise<void> {
  try {
    await call()
  } catch (error) {
    await onFailure(error)
  }
}

/** Makes a function whose calls at the same time share one run of `work`. */
export function singleFlight(work: () => Promise<void>): () => Promise<void> {
  let running: Promise<void> | undefined
  return () => {
    running ??= work().finally(() => {
      running = undefined
    })
    return running
  }
}

/** Counts what is in flight: the calls of a client, the deliveries of a receiver. */
export interface InFlight {
  /** How many are in flight. */
  readonly count: number
  /** Counts one more. */
  begin(): void
  /** Counts one less. */
  end(): void
  /** Calls a function once, as soon as nothing is in flight, perhaps now. */
  whenIdle(onIdle: () => void): void
}

/** A count that starts at 0. Its functions do not use `this`, so they can be passed alone. */
export function inFlight(): InFlight {
  let count = 0
  const waiting: (() => void)[] = []

  function callIfIdle(): void {
    if (count === 0) for (const onIdle of waiting.splice(0)) onIdle()
  }

  return {
    get count() {
      return count
    },
    begin() {
      count += 1
    },
    end() {
      count -= 1
      callIfIdle()
    },
    whenIdle(onIdle) {
      waiting.push(onIdle)
      callIfIdle()
    },
  }
}
