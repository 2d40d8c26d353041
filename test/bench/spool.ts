/** What it costs to have a delivery on the disk before it is answered. */
import { inTurns, type Settings } from './measure.js'
import type { AnswerTimes, CallbackLoadFunctions } from './processes/callback-load.js'
import type { SpoolFunctions } from './processes/spool.js'
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

const maxHeapBytes = 20 * 2 ** 20

export function spoolRows(settings: Settings): Promise<Row[]> {
  return withProcess<CallbackLoadFunctions, Row[]>('callback-load', {}, (load) =>
    withEach<Name, SpoolFunctions, Row[]>('spool', names, {}, async (remotes) => {
      const measured = await inTurns(settings, names, async (name, runMs): Promise<Run> => {
        await load.call('open', { port: await remotes[name].call('port'), count: connections })
        const startedAt = performance.now()
        const times = await load.call('timeFor', runMs)
        const elapsedMs = performance.now() - startedAt
        await load.call('close')
        // What is still being delivered would slow down whoever comes next.
        await remotes[name].call('settle')
        return { ...times, elapsedMs }
      })
      const what = `kept before the answer, over ${connections} connections`
      return [
        ...comparisons(`receive: ${what}`, measured, { [without]: { atLeast: 0.3 } }, [throughput]),
        ...comparisons(`time to answer: ${what}`, measured, { [without]: { atMost: 4 } }, [answerTime]),
        ...(await waitingRows(settings, remotes.ours)),
      ]
    }),
  )
}

async function waitingRows({ manyCalls }: Settings, server: Remote<SpoolFunctions>): Promise<Row[]> {
  const what = `${manyCalls.toLocaleString('en')} deliveries wait in the spool`
  const heap = await server.call('heapOfWaiting', manyCalls)
  const { closeMs, openMs, left } = await server.call('reopen')
  const isWhole = left === manyCalls
  return [
    fact(`${what}: heap`, units.bytes(heap), `≤ ${units.bytes(maxHeapBytes)}`, heap <= maxHeapBytes),
    fact(
      `${what}: close, open`,
      [closeMs, openMs].map((ms) => units.duration(ms * 1e6)).join(', '),
      'all left',
      isWhole,
    ),
  ]
}
