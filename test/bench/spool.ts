/** What it costs to have a delivery on the disk before it is answered. */
import { inTurns, type Settings } from './measure.js'
import type { AnswerTimes, CallbackLoadFunctions } from './processes/callback-load.js'
import type { SpoolFunctions } from './processes/spool.js'
import type { SpoolEngineFunctions } from './processes/spool-engine.js'
import { withEach, withProcess } from './processes.js'
import { type Aspect, comparisons, type Row, units } from './report.js'

const connections = 64
const without = 'without the spool'
const names = ['ours', without] as const
type Name = (typeof names)[number]
type Run = AnswerTimes & { readonly elapsedMs: number }

const throughput: Aspect<Run> = {
  figureOf: ({ answered, elapsedMs }) => (answered / elapsedMs) * 1_000,
  unit: units.perSecond,
}
const answerTime: Aspect<Run> = { figureOf: ({ p99Ms }) => p99Ms * 1e6, unit: units.duration, name: ' p99' }

type Kept = Awaited<ReturnType<SpoolEngineFunctions['keepFor']>>
const keptPerSecond: Aspect<Kept> = {
  figureOf: ({ kept, elapsedMs }) => (kept / elapsedMs) * 1_000,
  unit: units.perSecond,
}
const p99: Aspect<Kept> = { figureOf: ({ p99Ms }) => p99Ms * 1e6, unit: units.duration, name: ' p99' }

type Drained = Awaited<ReturnType<SpoolEngineFunctions['openAndDrain']>>
const drainTime: Aspect<Drained> = { figureOf: ({ drainMs }) => drainMs * 1e6, unit: units.duration }
const openTime: Aspect<Drained> = {
  figureOf: ({ openMs }) => openMs * 1e6,
  unit: units.duration,
  name: ' to open',
}
const diskLeft: Aspect<Drained> = { figureOf: ({ diskBytes }) => diskBytes, unit: units.bytes, name: ' left' }

export function spoolRows(settings: Settings): Promise<Row[]> {
  return withProcess<CallbackLoadFunctions, Row[]>('callback-load', {}, (load) =>
    withEach<Name, SpoolFunctions, Row[]>('spool', names, {}, async (remotes) => {
      const measured = await inTurns(settings, names, async (name, runMs): Promise<Run> => {
        await load.call('open', { port: await remotes[name].call('port'), count: connections })
        const startedAt = performance.now()
        const times = await load.call('timeFor', runMs)
        const elapsedMs = performance.now() - startedAt
        await load.call('close')
        // Deliveries in flight would slow down the next measurement.
        await remotes[name].call('settle')
        return { ...times, elapsedMs }
      })
      const what = `kept before the answer, over ${connections} connections`
      return [
        ...comparisons(`receive: ${what}`, measured, [without], [throughput]),
        ...comparisons(`time to answer: ${what}`, measured, [without], [answerTime]),
        ...(await engineRows(settings)),
      ]
    }),
  )
}

/** The spool alone, beside queues on other engines, and beside the least that a synced write costs. */
async function engineRows(settings: Settings): Promise<Row[]> {
  const queues = ['a queue on lmdb', 'a queue on classic-level'] as const
  const engines = ['ours', ...queues, 'a synced append'] as const
  return withEach<(typeof engines)[number], SpoolEngineFunctions, Row[]>(
    'spool-engine',
    engines,
    {},
    async (remotes) => {
      const rows: Row[] = []
      for (const { what, ...run } of [
        { what: '64 writers of 1 KB', writers: 64, isDelivering: false },
        { what: 'one writer of 1 KB', writers: 1, isDelivering: false },
        { what: '64 writers of 1 KB, delivered meanwhile', writers: 64, isDelivering: true },
      ]) {
        const others = run.isDelivering ? queues : engines.filter((name) => name !== 'ours')
        const measured = await inTurns(settings, ['ours', ...others], (name, runMs) =>
          remotes[name].call('keepFor', { ...run, runMs }),
        )
        rows.push(...comparisons(`spool: keep, ${what}`, measured, others, [keptPerSecond, p99]))
      }
      const count = settings.manyCalls
      for (const together of [100, 1]) {
        // Keeping one at a time takes its time: three rounds.
        const measured = await inTurns({ rounds: 3, runMs: 0 }, ['ours', ...queues], (name) =>
          remotes[name].call('openAndDrain', { count, together }),
        )
        const groups = together === 1 ? 'one at a time' : `${together} at a time`
        const what = `spool: drain ${count.toLocaleString('en')} kept ${groups}`
        rows.push(...comparisons(what, measured, queues, [drainTime, openTime, diskLeft]))
      }
      return rows
    },
  )
}
