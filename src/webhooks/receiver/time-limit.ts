/** Waits that end: a few turns, or a time. */

/**
 * How many turns {@link isOverSoon} waits. Most handlers wait for nothing, and are done within these. With a timer for
 * each delivery a receiver would take a tenth fewer of them per second.
 */
const turns = 10

/** Work that says by itself whether it is over: of a promise nobody can ask that. */
export interface Progress {
  isOver: boolean
}

/** Whether the work is over before ten other microtasks have had their turn: no timer is set. */
export async function isOverSoon(progress: Progress): Promise<boolean> {
  for (let turn = 0; turn < turns && !progress.isOver; turn += 1) await undefined
  return progress.isOver
}

/** Whether `work`, which must never reject, is over within `limitMs`. No timer is left when it is. */
export function isOverWithin(work: Promise<unknown>, limitMs: number): Promise<boolean> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, limitMs, false)
    void work.then(() => {
      clearTimeout(timer)
      resolve(true)
    })
  })
}
