/**
 * How many random sequences are played, and of which seed: `npm test` always plays the same, the long run others each
 * time. Every test file is preceded by this one (`setupFiles`), so that each property has this seed.
 */
import fc from 'fast-check'

const { RANDOM_SEED, RANDOM_SEQUENCES } = process.env

const isLongRun = RANDOM_SEQUENCES !== undefined
export const sequences = Number(RANDOM_SEQUENCES ?? 60)

/** How often a property is tried whose long run tries it that often: `npm test` makes a fifth of the tries. */
export const tries = (ofLongRun: number) => (isLongRun ? ofLongRun : ofLongRun / 5)

export const seed = Number(RANDOM_SEED ?? (isLongRun ? Date.now() % 2 ** 31 : 1))

fc.configureGlobal({ seed })
