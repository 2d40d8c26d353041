/** When to go on with a user, and how they are doing, once a chain of calls has ended: a pure function. */
import type { Chain, ChainEnd } from './caller.js'
import { retryWaitMs } from './timing.js'
import type { UserRecord } from './user-record.js'

/** What changes in the record. */
export type FollowUp = Partial<
  Pick<UserRecord, 'dueFrom' | 'isQuiet' | 'hasConflict' | 'failures' | 'error' | 'probes'>
>

/** A store that fails is asked again after this time. */
const storePauseMs = 10_000

/** A visit that was given up, because this process may not work at the moment, is tried again after this time. */
const abortedPauseMs = 1_000

export function followUp(
  chain: Pick<Chain, 'record' | 'startedSince' | 'suspectsEnd' | 'learnt'>,
  end: ChainEnd,
  { now, sweepIntervalMs }: { now: number; sweepIntervalMs: number },
): FollowUp {
  const { learnt, record, suspectsEnd } = chain
  const inTurn = now + sweepIntervalMs
  const failures = record.failures + 1
  const isWell = { isQuiet: false, hasConflict: false, failures: 0, error: undefined }
  switch (end.end) {
    case 'aborted':
      // The record may stay in use: a new configuration is not in force yet. Whoever waits for it must not try at once.
      return { isQuiet: false, dueFrom: now + abortedPauseMs }
    case 'held':
      return { isQuiet: false, dueFrom: now }
    case 'broken':
      return { isQuiet: false, dueFrom: inTurn, failures, error: end.error }
    case 'failed': {
      const { kind, retryAfterMs } = end.trouble
      const dueFrom = kind === 'INVALID' ? inTurn : now + retryWaitMs(failures, retryAfterMs)
      return { isQuiet: false, dueFrom, failures, error: end.error }
    }
    case 'waiting':
      return { ...isWell, dueFrom: end.until === 'store' ? now + storePauseMs : end.until }
    case 'conflict':
      return { ...isWell, hasConflict: true, dueFrom: inTurn }
    case 'settled': {
      if (!learnt.isProven) return isWell
      const isQuiet = record.slots.length === 1 && record.slots[0]?.doubt !== 'unanswered'
      const probes = suspectsEnd ? record.probes : record.probes + 1
      return { ...isWell, isQuiet, probes, dueFrom: Math.min(inTurn, nextCheckFrom(chain, now)) }
    }
  }
}

/** When something that is not over yet is to be looked at again, sooner than in turn. */
function nextCheckFrom(
  { record, startedSince }: Pick<Chain, 'record' | 'startedSince'>,
  now: number,
): number {
  // A doubt that could be settled since this chain began is looked at again at once.
  const open = record.slots.filter(
    ({ doubt, settledFrom }) => doubt === 'unanswered' && settledFrom > startedSince,
  )
  const times = open.map(({ settledFrom }) => settledFrom)
  if (record.restorableFrom > now) times.push(record.restorableFrom)
  return Math.min(...times)
}
