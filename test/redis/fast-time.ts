/** The time of processes whose clocks run faster than ours: see `programs/fast-clock.ts`. */

export const timesFaster = 50

/**
 * @param clockStartedAt - when those clocks showed the same time as ours, in milliseconds since 1970
 * @param at - by our clock
 * @returns what those clocks show then
 */
export function fastTime(clockStartedAt: number, at: number): number {
  return clockStartedAt + (at - clockStartedAt) * timesFaster
}
