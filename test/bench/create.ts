/** `createSubscription` against other ways to send the same request to the same server. */
import { inTurns, oftener, type Settings } from './measure.js'
import type { CreateFunctions } from './processes/create.js'
import type { SubscriptionServerFunctions } from './processes/subscription-server.js'
import { withEach, withProcess } from './processes.js'
import { comparisons, cpuPerCall, type Row, speed } from './report.js'

/** Connections of the client by default, and so of every peer. */
const connections = 32

/** By HTTPS, as the service has it (docs/service.md, Authentication). */
const peers = ['undici pool.request', 'ours on fetch', 'got', 'axios'] as const
const names = ['ours', ...peers] as const

export function createRows(settings: Settings): Promise<Row[]> {
  const concurrency = 64
  return withProcess<SubscriptionServerFunctions, Row[]>('subscription-server', {}, async (server) => {
    const { origin, caFile } = await server.call('address')
    const options = { args: [origin, String(connections)], env: { NODE_EXTRA_CA_CERTS: caFile } }
    return withEach<(typeof names)[number], CreateFunctions, Row[]>(
      'create',
      names,
      options,
      async (remotes) => {
        const measured = await inTurns(oftener(settings), names, (name, runMs) =>
          remotes[name].call('run', { runMs, concurrency }),
        )
        return comparisons(`create by https, ${concurrency} at once`, measured, peers, [speed, cpuPerCall])
      },
    )
  })
}
