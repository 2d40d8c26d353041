/** What it costs to have a delivery on the disk before it is answered. */
import { inTurns, type Settings } from './measure.js'
import type { AnswerTimes, CallbackLoadFunctions } from './processes/callback-load.js'
import type { ReceiveFunctions } from './processes/receive.js'
import type { SpoolEngineFunctions } from './processes/spool-engine.js'
import { withEach, withProcess } from './processes.js'
import { type Aspect, comparisons, type Row, units } from './report.js'

const connections = 64
const without = 'without the spool'
const servers = ['ours with a spool', 'ours'] as const

const throughput: Aspect<AnswerTimes> = {
  figureOf: ({ answered, elapsedMs }) => (answered / elapsedMs) * 1_000,
  unit: units.perSecond,
}
const p99: Aspect<AnswerTimes> = {
  figureOf: ({ p99Ms }) => p99Ms * 1e6,
  unit: units.duration,
  name: ' p99',
}

type Drained = Awaited<ReturnType<SpoolEngineFunctions['openAndDrain']>>
const drainTime: Aspect<Drained> = { figureOf: ({ drainMs }) => drainMs * 1e6, unit: units.duration }
const openTime: Aspect<Drained> = {
  figureOf: ({ openMs }) => openMs * 1e6,
  unit: units.duration,
  name: ' to open',
}

export function spoolRows(settings: Settings): Promise<Row[]> {
  return withProcess<CallbackLoadFunctions, Row[]>('callback-load', {}, (load) =>
    withEach<(typeof servers)[number], ReceiveFunctions, Row[]>('receive', servers, {}, async (remotes) => {
      const measured = await inTurns(settings, ['ours', without], async (name, runMs) => {
        const server = remotes[name === 'ours' ? 'ours with a spool' : 'ours']
        await load.call('open', { port: await server.call('port'), count: connections })
        const times = await load.call('sendFor', runMs)
        await load.call('close')
        // Deliveries in flight would slow down the next measurement.
        await server.call('settle')
        return times
      })
      const what = `receive: kept before the answer, over ${connections} connections`
      return [...comparisons(what, measured, [without], [throughput, p99]), ...(await engineRows(settings))]
    }),
  )
}

/** The spool alone, beside a queue on another engine, and beside the least that a synced write costs. */
async function engineRows(settings: Settings): Promise<Row[]> {
  const [queue, append] = ['a queue on lmdb', 'a synced append'] as const
  const engines = ['ours', queue, append] as const
  return withEach<(typeof engines)[number], SpoolEngineFunctions, Row[]>(
    'spool-engine',
    engines,
    {},
    async (remotes) => {
      const rows: Row[] = []
      for (const { what, peers, ...run } of [
        { what: '64 writers of 1 KB', peers: [queue, append], writers: 64, isDelivering: false },
        { what: 'one writer of 1 KB', peers: [queue, append], writers: 1, isDelivering: false },
        { what: '64 writers of 1 KB, delivered meanwhile', peers: [queue], writers: 64, isDelivering: true },
      ]) {
        const kept = await inTurns(settings, ['ours', ...peers], (name, runMs) =>
          remotes[name].call('keepFor', { ...run, runMs }),
        )
        rows.push(...comparisons(`spool: keep, ${what}`, kept, peers, [throughput, p99]))
      }
      const drained = await inTurns(settings, ['ours', queue], (name) =>
        remotes[name].call('openAndDrain', 10_000),
      )
      return [...rows, ...comparisons('spool: drain 10,000', drained, [queue], [drainTime, openTime])]
    },
  )
}
