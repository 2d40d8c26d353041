/** Counts what is in flight: the calls of a client, the deliveries of a receiver. */
export interface InFlight {
  /** How many are in flight. */
  readonly count: number
  /** Counts one more. */
  begin(): void
  /** Counts one less. */
  end(): void
  /** Calls a function when none is left, at once if none is. */
  whenOver(onOver: () => void): void
}

/** A count that starts at 0. Its functions do not use `this`, so they can be handed out alone. */
export function inFlight(): InFlight {
  let count = 0
  const waiting: (() => void)[] = []

  function tell(): void {
    if (count === 0) for (const onOver of waiting.splice(0)) onOver()
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
      tell()
    },
    whenOver(onOver) {
      waiting.push(onOver)
      tell()
    },
  }
}
