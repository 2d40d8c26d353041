/** What it costs to have a delivery on the disk before it is answered. */
import { inTurns, median, type Settings } from './measure.js'
import type { AnswerTimes, CallbackLoadFunctions } from './processes/callback-load.js'
import type { SpoolFunctions } from './processes/spool.js'
import type { SpoolEngineFunctions } from './processes/spool-engine.js'
import { type Remote, withEach, withProcess } from './processes.js'
import { type Aspect, comparisons, fact, type Row, units } from './report.js'

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
        ...(await waitingRows(settings, remotes.ours)),
        ...(await engineRows(settings)),
      ]
    }),
  )
}

/**
 * The spool alone. Beside it stands another build of the spool, if `SPOOL_PEER` names the file of its entry point: that
 * of 0.2 kept its deliveries in lmdb.
 */
async function engineRows(settings: Settings): Promise<Row[]> {
  const engines = process.env.SPOOL_PEER === undefined ? ['ours'] : ['ours', 'peer']
  return withEach<string, SpoolEngineFunctions, Row[]>('spool-engine', engines, {}, async (remotes) => {
    const shown: { what: string; figures: Record<string, string> }[] = []
    const runs = [
      { what: '64 writers of 1 KB', writers: 64, isDelivering: false },
      { what: 'one writer of 1 KB', writers: 1, isDelivering: false },
      { what: '64 writers of 1 KB, delivered meanwhile', writers: 64, isDelivering: true },
    ]
    for (const { what, ...run } of runs) {
      const measured = await inTurns(settings, engines, async (name, runMs) => {
        if (remotes[name] === undefined) throw new Error(`no process for ${name}`)
        return remotes[name].call('keepFor', { ...run, runMs })
      })
      const figures = Object.entries(measured).map(([name, rounds]) => {
        const of = (figure: (round: (typeof rounds)[number]) => number) => median(rounds.map(figure))
        const perSecond = units.perSecond(of(({ kept, elapsedMs }) => (kept / elapsedMs) * 1_000))
        const [p50, p99, delay] = [of((r) => r.p50Ms), of((r) => r.p99Ms), of((r) => r.loopDelayMs)].map(
          (ms) => units.duration(ms * 1e6),
        )
        return [name, `${perSecond}, p50 ${p50}, p99 ${p99}, event loop p99 ${delay}`]
      })
      shown.push({ what: `spool: keep, ${what}`, figures: Object.fromEntries(figures) })
    }
    for (const together of [100, 1]) {
      const figures: Record<string, string> = {}
      for (const [name, remote] of Object.entries(remotes)) {
        const drained = await remote.call('openAndDrain', { count: settings.manyCalls, together })
        const [openMs, drainMs] = [drained.openMs, drained.drainMs].map((ms) => units.duration(ms * 1e6))
        const memory = `heap ${units.bytes(drained.heapBytes)}, disk left ${units.bytes(drained.diskBytes)}`
        figures[name] = `open ${openMs}, drain ${drainMs}, ${memory}`
      }
      const count = settings.manyCalls.toLocaleString('en')
      const files = together === 1 ? 'one at a time' : `${together} at a time`
      shown.push({ what: `spool: ${count} kept ${files}`, figures })
    }
    return shown.map(({ what, figures }) => ({
      ...fact(what, figures.ours ?? ''),
      peer: figures.peer ?? '',
    }))
  })
}

async function waitingRows({ manyCalls }: Settings, server: Remote<SpoolFunctions>): Promise<Row[]> {
  const what = `${manyCalls.toLocaleString('en')} deliveries wait in the spool`
  const heap = await server.call('heapOfWaiting', manyCalls)
  const { closeMs, openMs, left } = await server.call('reopen')
  if (left !== manyCalls) throw new Error(`${left} of ${manyCalls} are left after a restart`)
  return [
    fact(`${what}: heap`, units.bytes(heap)),
    fact(`${what}: close, open`, [closeMs, openMs].map((ms) => units.duration(ms * 1e6)).join(', ')),
  ]
}
