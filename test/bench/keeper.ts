/** What a keeper of many users costs its process and its store. */
import { cpuNanosecondsPerCall, inTurns, median, type Settings } from './measure.js'
import type { KeeperFunctions } from './processes/keeper.js'
import { withEach } from './processes.js'
import { comparisons, cpuPerCall, fact, type Row, timePerCall, units } from './report.js'

const counts = ['10000', '100000'] as const
type Count = (typeof counts)[number]

const maxHeapPerUser = 1_024
const maxObserveNanoseconds = 200

export function keeperRows(settings: Settings): Promise<Row[]> {
  return withEach<Count, KeeperFunctions, Row[]>('keeper', counts, {}, async (remotes) => {
    // As many users in each measurement: what slows a machine down for a moment is as likely to meet the one as the other.
    const passes = await inTurns(settings, counts, (count) =>
      remotes[count].call('passes', 100_000 / Number(count)),
    )
    const observed = await inTurns(settings, counts, (count, runMs) => remotes[count].call('observe', runMs))
    const observeNanoseconds = median(observed['10000'].map(cpuNanosecondsPerCall))
    const heapPerUser = await remotes['100000'].call('heapPerUser')
    const { reads, writes } = await remotes['10000'].call('storeCalls')
    return [
      fact(
        'heap per kept user, of 100,000',
        `${Math.round(heapPerUser)} B`,
        `≤ ${maxHeapPerUser} B`,
        heapPerUser <= maxHeapPerUser,
      ),
      fact(
        'keeper.observe',
        units.duration(observeNanoseconds),
        `≤ ${maxObserveNanoseconds} ns`,
        observeNanoseconds <= maxObserveNanoseconds,
      ),
      fact('store calls of a pass over 10,000', `${reads} reads, ${writes} writes`, '', true),
      ...comparisons(
        'a pass over 100,000 users',
        { ours: passes['100000'], 'over 10,000': passes['10000'] },
        { 'over 10,000': { atMost: 12 } },
        [cpuPerCall, timePerCall],
      ),
    ]
  })
}
