/** The time of processes whose clocks run faster than ours: see `programs/fast-clock.ts`. */

/** More would turn the 40 ms that a busy machine does not let a process run into a store that hangs for a second. */
export const timesFaster = 25

/**
 * @param clockStartedAt - when those clocks showed the same time as ours, in milliseconds since 1970
 * @param at - by our clock
 * @returns what those clocks show then
 */
export function fastTime(clockStartedAt: number, at: number): number {
  return clockStartedAt + (at - clockStartedAt) * timesFaster
}

/** How long something takes by our clock that takes `ms` by those clocks. */
export function fastMs(ms: number): number {
  return ms / timesFaster
}
