/** What a keeper of many users costs its process and its store. */
import { cpuNanosecondsPerCall } from './measure.js'
import type { KeeperFunctions } from './processes/keeper.js'
import { withProcess } from './processes.js'
import { fact, type Row, units } from './report.js'

export function keeperRows(): Promise<Row[]> {
  return withProcess<KeeperFunctions, Row[]>('keeper', { args: ['100000'] }, async (remote) => {
    const heapPerUser = await remote.call('heapPerUser')
    const firstSweep = await remote.call('firstSweep')
    const quiet = await remote.call('quietInterval')
    const { reads, writes, writtenBytes } = quiet.store
    return [
      fact(
        'keeper: heap per user, of 100,000',
        `${Math.round(heapPerUser)} B`,
        'a `Map` of user and subscription ID, which knows of no end',
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
    ]
  })
}
