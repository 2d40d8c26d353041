/** How many random sequences are played, and which: `npm test` always plays the same, the long run others each time. */
const { RANDOM_SEED, RANDOM_SEQUENCES } = process.env

export const isLongRun = RANDOM_SEQUENCES !== undefined
export const sequences = Number(RANDOM_SEQUENCES ?? 60)

const seed = RANDOM_SEED ?? (isLongRun ? undefined : 1)

/**
 * A parameter of `fc.assert`.
 *
 * @param lane - of several runs of one property, each of which plays other sequences
 */
export function seededRun(lane = 0): { seed?: number } {
  return seed === undefined ? {} : { seed: Number(seed) + lane }
}
