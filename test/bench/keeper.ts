/** What a keeper of many users costs its process and its store. */
import { cpuNanosecondsPerCall, inTurns, median, type Settings } from './measure.js'
import type { KeeperFunctions } from './processes/keeper.js'
import { withEach } from './processes.js'
import { comparisons, cpuPerCall, fact, factsOf, type Row, timePerCall, units } from './report.js'

const counts = ['10000', '100000'] as const
type Count = (typeof counts)[number]

export function keeperRows(settings: Settings): Promise<Row[]> {
  return withEach<Count, KeeperFunctions, Row[]>('keeper', counts, {}, async (remotes) => {
    // As many users in each measurement: what slows a machine down for a moment is as likely to meet the one as the other.
    const sweeps = await inTurns(settings, counts, (count) =>
      remotes[count].call('sweeps', 100_000 / Number(count)),
    )
    const observed = await inTurns(settings, counts, (count, runMs) => remotes[count].call('observe', runMs))
    const observeNanoseconds = median(observed['10000'].map(cpuNanosecondsPerCall))
    const heapPerUser = await remotes['100000'].call('heapPerUser')
    const firstSweep = await remotes['100000'].call('firstSweep')
    const quiet = await remotes['100000'].call('quietInterval')
    const { reads, writes, writtenBytes } = quiet.store
    return [
      fact(
        'keeper: heap per user, of 100,000',
        `${Math.round(heapPerUser)} B`,
        'a `Map` of user and subscription ID, which knows of no end',
      ),
      fact(
        'keeper: `observe` of a delivery',
        units.duration(observeNanoseconds),
        'no `observe`: a request per user and interval',
      ),
      fact(
        'keeper: first sweep over 100,000 users',
        `${units.duration(cpuNanosecondsPerCall(firstSweep))} CPU`,
        'a script that creates each subscription once',
      ),
      fact(
        'keeper: quiet interval of 100,000 users',
        `${units.duration(cpuNanosecondsPerCall(quiet.cost))} CPU`,
        'a cron job that creates all subscriptions anew, each with a gap',
      ),
      fact(
        'keeper: store use per user and quiet interval',
        `${reads.toFixed(2)} reads, ${writes.toFixed(2)} writes, ${Math.round(writtenBytes)} B`,
        'one process without a store',
      ),
      ...factsOf(
        comparisons(
          'keeper: a sweep over 100,000 users',
          { ours: sweeps['100000'], 'over 10,000': sweeps['10000'] },
          ['over 10,000'],
          [cpuPerCall, timePerCall],
        ),
        'the same cron job',
      ),
    ]
  })
}
