/** Counts what is under way: calls, deliveries, or the handlers of one. */
export interface InFlight {
  /** One more. */
  begin(): void
  /** One is over. */
  end(): void
  /** Calls a function when none is left, at once if none is. */
  whenOver(onOver: () => void): void
}

export const inFlight = (): InFlight => {
  let count = 0
  const waiting: (() => void)[] = []
  const tell = () => {
    if (count === 0) for (const onOver of waiting.splice(0)) onOver()
  }
  return {
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
