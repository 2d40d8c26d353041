/**
 * How many random sequences are played, and of which seed: `npm test` always plays the same, the long run others each
 * time. Every test file is preceded by this one (`setupFiles`), so that each property has this seed.
 */
import fc from 'fast-check'

const { RANDOM_SEED, RANDOM_SEQUENCES } = process.env

export const isLongRun = RANDOM_SEQUENCES !== undefined
export const sequences = Number(RANDOM_SEQUENCES ?? 60)

/** Undefined if each run is to have a seed of its own. */
export const seed = RANDOM_SEED === undefined && isLongRun ? undefined : Number(RANDOM_SEED ?? 1)

if (seed !== undefined) fc.configureGlobal({ seed })
