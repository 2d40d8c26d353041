/** `createSubscription` against other ways to send the same request to the same server, and its use of memory. */
import { inTurns, oftener, type Settings } from './measure.js'
import type { CreateFunctions, Creator } from './processes/create.js'
import type { SubscriptionServerFunctions } from './processes/subscription-server.js'
import { type Remote, withEach, withProcess } from './processes.js'
import { comparisons, cpuPerCall, fact, type Row, speed, units } from './report.js'

/** Connections of the client by default, and so of every peer. */
const connections = 32

/** By HTTPS, as the service has it (docs/service.md, Authentication). */
const peers = ['undici pool.request', 'ours on fetch', 'got', 'axios', 'ky'] as const

export async function createRows(settings: Settings): Promise<Row[]> {
  return [
    ...(await speedRows(settings)),
    // A server of its own, whose sockets are all of this client.
    ...(await withCreators('https', ['ours'], connections, ({ ours }, server) =>
      memoryRows(settings, ours, server),
    )),
  ]
}

function speedRows(settings: Settings): Promise<Row[]> {
  const concurrency = 64
  const names = ['ours', ...peers] as const
  return withCreators('https', names, connections, async (remotes) => {
    const measured = await inTurns(oftener(settings), names, (name, runMs) =>
      remotes[name].call('run', { runMs, concurrency }),
    )
    return comparisons(`create by https, ${concurrency} at once`, measured, peers, [speed, cpuPerCall])
  })
}

type Server = Remote<SubscriptionServerFunctions>

/** Starts a server, and a process for each way to create subscriptions on it. */
export function withCreators<Name extends Creator>(
  scheme: 'http' | 'https',
  names: readonly Name[],
  connections: number,
  work: (remotes: Readonly<Record<Name, Remote<CreateFunctions>>>, server: Server) => Promise<Row[]>,
): Promise<Row[]> {
  return withProcess<SubscriptionServerFunctions, Row[]>(
    'subscription-server',
    { args: [scheme] },
    async (server) => {
      const { origin, caFile } = await server.call('address')
      const args = [origin, String(connections)]
      const env = { NODE_EXTRA_CA_CERTS: caFile }
      return withEach<Name, CreateFunctions, Row[]>('create', names, { args, env }, (remotes) =>
        work(remotes, server),
      )
    },
  )
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
  await client.call('runTimes', half)
  const middle = await client.call('heap')
  await client.call('runTimes', half)
  const end = await client.call('heap')
  const { subscriptions, maxSockets } = await server.call('counts')
  const heap = [start, middle, end].map(units.bytes).join(', ')
  return [
    fact(
      `${manyCalls.toLocaleString('en')} creates by one client, ${concurrency} at once`,
      `${subscriptions.toLocaleString('en')} answered with 201; ${maxSockets} sockets; heap at the start, half way, at the end: ${heap}`,
      'the `fetch` of Node.js: a socket for each request in flight',
    ),
  ]
}
