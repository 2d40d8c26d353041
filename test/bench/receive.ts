/** `toNodeHandler` against other servers that receive the same callbacks. */
import { type Cost, inTurns, oftener, type Settings } from './measure.js'
import type { CallbackLoadFunctions } from './processes/callback-load.js'
import type { ReceiveFunctions } from './processes/receive.js'
import { withEach, withProcess } from './processes.js'
import { comparisons, cpuPerCall, type Row, speed } from './report.js'

const connections = 64

const peers = ['bare node:http', 'Express + zod', 'Fastify + Ajv'] as const
const servers = ['ours', ...peers] as const

export function receiveRows(settings: Settings): Promise<Row[]> {
  return withProcess<CallbackLoadFunctions, Row[]>('callback-load', {}, (load) =>
    withEach<(typeof servers)[number], ReceiveFunctions, Row[]>('receive', servers, {}, async (remotes) => {
      const receive = async (name: (typeof servers)[number], runMs: number): Promise<Cost> => {
        const server = remotes[name]
        await load.call('open', { port: await server.call('port'), count: connections })
        await server.call('begin')
        const { answered } = await load.call('sendFor', runMs)
        const cost = await server.call('cost')
        await load.call('close')
        if (cost.calls !== answered) throw new Error(`${answered} were answered, and ${cost.calls} handled`)
        return cost
      }
      // Long enough that each server is compiled.
      for (const name of servers) await receive(name, 1_000)
      const measured = await inTurns(oftener(settings), servers, receive)
      return comparisons(`receive over ${connections} connections`, measured, peers, [speed, cpuPerCall])
    }),
  )
}
