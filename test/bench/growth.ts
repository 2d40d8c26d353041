/** Whether what one operation costs depends on how many subscriptions or connections there are. */
import { withCreators } from './create.js'
import { type Cost, inTurns, type Settings, shorter } from './measure.js'
import type { GrowthFunctions } from './processes/growth.js'
import { withEach, withProcess } from './processes.js'
import { costOfReceiving, withReceivers } from './receive.js'
import { comparisons, cpuPerCall, factsOf, type Row, speed, timePerCall } from './report.js'

const [one, many] = ['1', '100000'] as const
const counts = [one, many] as const
type Count = (typeof counts)[number]

const connectionCounts = [1, 1_000] as const

export async function growthRows(settings: Settings): Promise<Row[]> {
  return [
    ...(await createRows(settings)),
    ...(await receiverRows(settings)),
    ...(await emulatorRows(settings)),
    ...(await clientConnectionRows(settings)),
    ...(await serverConnectionRows(settings)),
  ]
}

/** One client that has created many, and one that has not. */
function createRows({ manyCalls, ...settings }: Settings): Promise<Row[]> {
  const concurrency = 64
  return withCreators('http', ['ours'], 32, ({ ours }) =>
    withCreators('http', ['ours'], 32, async ({ ours: newcomer }) => {
      await ours.call('runTimes', { count: manyCalls, concurrency })
      const clients = { ours, 'a new client': newcomer } as const
      const names = ['ours', 'a new client'] as const
      const measured = await inTurns(settings, names, (name, runMs) =>
        clients[name].call('run', { runMs, concurrency }),
      )
      const what = `create after ${shown(manyCalls)} creates`
      return factsOf(
        comparisons(what, measured, ['a new client'], [cpuPerCall]),
        'a new client for each call',
      )
    }),
  )
}

function receiverRows(settings: Settings): Promise<Row[]> {
  return withProcess<GrowthFunctions, Row[]>('growth', {}, async (remote) => {
    const measured = await inTurns(shorter(settings), counts, (count, runMs) =>
      remote.call('receive', { ids: Number(count), runMs }),
    )
    const what = `\`receiver.handle\` for ${shown(Number(many))} subscription ids`
    return againstOne(what, measured, 'a route of your own on `node:http`')
  })
}

/** One emulator for each number, because ending 100,000 subscriptions each time would take longest. */
function emulatorRows(settings: Settings): Promise<Row[]> {
  return withEach<Count, GrowthFunctions, Row[]>('growth', counts, {}, async (remotes) => {
    for (const count of counts) await remotes[count].call('hold', Number(count))
    const measured = await inTurns(shorter(settings), counts, (count, runMs) =>
      remotes[count].call('subscribeAndEnd', runMs),
    )
    const what = `emulator: create and unsubscribe while it holds ${shown(Number(many))}`
    return againstOne(what, measured, 'a mock server of your own')
  })
}

function againstOne(
  what: string,
  measured: Readonly<Record<Count, readonly Cost[]>>,
  instead: string,
): Row[] {
  const figures = { ours: measured[many], 'with one': measured[one] }
  return factsOf(comparisons(what, figures, ['with one'], [timePerCall]), instead)
}

async function clientConnectionRows(settings: Settings): Promise<Row[]> {
  const names = ['ours on an Agent', 'undici pool.request'] as const
  const rows: Row[] = []
  for (const connections of connectionCounts) {
    const part = await withCreators('http', names, connections, async (remotes) => {
      const measured = await inTurns(settings, names, (name, runMs) =>
        remotes[name].call('run', { runMs, concurrency: connections }),
      )
      return comparisons(
        `create over ${connectionsShown(connections)}`,
        { ...measured, ours: measured['ours on an Agent'] },
        ['undici pool.request'],
        [cpuPerCall, speed],
      )
    })
    rows.push(...part)
  }
  return rows
}

function serverConnectionRows(settings: Settings): Promise<Row[]> {
  const names = ['ours', 'bare node:http'] as const
  return withReceivers(names, async (load, remotes) => {
    const rows: Row[] = []
    for (const connections of connectionCounts) {
      const measured = await inTurns(settings, names, (name, runMs) =>
        costOfReceiving(load, remotes[name], connections, runMs),
      )
      const what = `receive over ${connectionsShown(connections)}`
      rows.push(...comparisons(what, measured, ['bare node:http'], [cpuPerCall, speed]))
    }
    return rows
  })
}

function connectionsShown(count: number): string {
  return `${shown(count)} ${count === 1 ? 'connection' : 'connections'}`
}

function shown(count: number): string {
  return count.toLocaleString('en')
}
