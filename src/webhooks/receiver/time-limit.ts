/** A time limit that costs nothing where it is met at once. */

/**
 * How often other microtasks are let through before a timer is set. Most handlers wait for nothing: their promises
 * settle within these turns. With a timer for each delivery a receiver would take a tenth fewer of them per second.
 */
const turnsWithoutTimer = 10

/** Whether `work`, which must never reject, is over within `limitMs`. */
export async function isOverWithin(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  let isOver = false
  const over = work.then(() => {
    isOver = true
    return true
  })
  for (let turn = 0; turn < turnsWithoutTimer; turn += 1) {
    if (isOver) return true
    await undefined
  }
  return Promise.race([over, timeLimit(over, limitMs)])
}

/** Resolves with `false` when the time is over. No timer is left when `over` resolves first. */
function timeLimit(over: Promise<unknown>, limitMs: number): Promise<false> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, limitMs, false)
    void over.then(() => clearTimeout(timer))
  })
}
