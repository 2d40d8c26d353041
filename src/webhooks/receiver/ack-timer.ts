/** A time limit that costs nothing where it is met at once. */

const soon = Promise.resolve()

/**
 * Calls `onLate` after `limitMs`, unless the function that it returns is called before. There is no timer for
 * what is over with the microtasks of this turn, which most deliveries are: `onWait` is called for the others.
 */
export const startAckTimer = (limitMs: number, onLate: () => void, onWait?: () => void): (() => void) => {
  let isMet = false
  let timer: ReturnType<typeof setTimeout> | undefined
  void soon.then(() => {
    if (isMet) return
    timer = setTimeout(onLate, limitMs)
    onWait?.()
  })
  return () => {
    isMet = true
    clearTimeout(timer)
  }
}
