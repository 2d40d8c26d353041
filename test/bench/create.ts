/** `createSubscription` against other ways to send the same request to the same server, and its use of memory. */
import { callsPerSecond, cpuNanosecondsPerCall, inTurns, type Settings } from './measure.js'
import type { CreateFunctions, Creator } from './processes/create.js'
import type { SubscriptionServerFunctions } from './processes/subscription-server.js'
import { type Remote, start, withEach } from './processes.js'
import { comparisons, fact, type Limit, type Row, units } from './report.js'

/** Connections of the client by default, and so of every peer. */
const connections = 32

const throughputLimits: Readonly<Record<Exclude<Creator, 'ours'>, Limit>> = {
  'undici pool.request': { atLeast: 0.85 },
  'ours on fetch': { atLeast: 4 },
  got: {},
  axios: {},
  ky: {},
}
const noLimits: typeof throughputLimits = {
  ...throughputLimits,
  'undici pool.request': {},
  'ours on fetch': {},
}
const creators = ['ours', ...Object.keys(throughputLimits)] as Creator[]

export async function createRows(settings: Settings): Promise<Row[]> {
  return [
    ...(await withServer((server) =>
      withCreators(server, creators, async (remotes) => [
        ...(await speedRows(settings, remotes, 64)),
        ...(await speedRows(settings, remotes, 256)),
      ]),
    )),
    // A server of its own, whose sockets are all of this client.
    ...(await withServer((server) =>
      withCreators(server, ['ours'], (remotes) => memoryRows(settings, remotes.ours, server)),
    )),
  ]
}

type Server = Remote<SubscriptionServerFunctions>

async function withServer(work: (server: Server) => Promise<Row[]>): Promise<Row[]> {
  const server = await start<SubscriptionServerFunctions>('subscription-server')
  try {
    return await work(server)
  } finally {
    await server.stop()
  }
}

async function withCreators<Name extends Creator>(
  server: Server,
  names: readonly Name[],
  work: (remotes: Readonly<Record<Name, Remote<CreateFunctions>>>) => Promise<Row[]>,
): Promise<Row[]> {
  const origin = await server.call('origin')
  return withEach<Name, CreateFunctions, Row[]>('create', names, [origin, String(connections)], work)
}

async function speedRows(
  settings: Settings,
  remotes: Readonly<Record<Creator, Remote<CreateFunctions>>>,
  concurrency: number,
): Promise<Row[]> {
  const what = `create, ${concurrency} at once over ${connections} connections`
  const measured = await inTurns(settings, creators, (name, runMs) =>
    remotes[name].call('run', { runMs, concurrency }),
  )
  return [
    ...comparisons(what, measured, throughputLimits, callsPerSecond, units.perSecond),
    ...comparisons(`${what}: CPU of the client`, measured, noLimits, cpuNanosecondsPerCall, units.duration),
  ]
}

/** What many creates over one client leave behind, and whether each was answered with 201. */
async function memoryRows(
  { manyCalls }: Settings,
  client: Remote<CreateFunctions>,
  server: Server,
): Promise<Row[]> {
  const concurrency = 256
  const half = { count: manyCalls / 2, concurrency }
  await server.call('counts')
  const start = await client.call('heap')
  const first = await client.call('runTimes', half)
  const middle = await client.call('heap')
  const second = await client.call('runTimes', half)
  const end = await client.call('heap')
  const { subscriptions, maxSockets } = await server.call('counts')
  const what = `${manyCalls.toLocaleString('en')} creates by one client`
  return [
    fact(
      `${what}: heap at the start, half way, at the end`,
      [start, middle, end].map(units.bytes).join(', '),
      'end ≤ half way + 1 MB',
      end - middle <= 2 ** 20,
    ),
    fact(
      `${what}: answered with 201`,
      subscriptions.toLocaleString('en'),
      'all',
      subscriptions === manyCalls && first.calls + second.calls === manyCalls,
    ),
    fact(
      `${what}: sockets that the server saw at once`,
      `${maxSockets}`,
      `≤ ${connections}`,
      maxSockets <= connections,
    ),
  ]
}
