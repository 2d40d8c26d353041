/** `toNodeHandler` against other servers that receive the same callbacks, and what it does with very many. */
import { type Cost, inTurns, oftener, type Settings } from './measure.js'
import type { CallbackLoadFunctions } from './processes/callback-load.js'
import type { ReceiveFunctions, ReceivingServer } from './processes/receive.js'
import { type Remote, withEach, withProcess } from './processes.js'
import { comparisons, cpuPerCall, fact, type Row, speed, units } from './report.js'

const connections = 64

const peers: readonly Exclude<ReceivingServer, 'ours'>[] = [
  'bare node:http',
  '@octokit/webhooks',
  'Express + zod',
  'Fastify + Ajv',
]
const servers = ['ours', ...peers] as const

type Load = Remote<CallbackLoadFunctions>
type Server = Remote<ReceiveFunctions>

export function receiveRows(settings: Settings): Promise<Row[]> {
  return withReceivers(servers, async (load, remotes) => {
    const measured = await inTurns(oftener(settings), servers, (name, runMs) =>
      costOfReceiving(load, remotes[name], connections, runMs),
    )
    return [
      ...comparisons(`receive over ${connections} connections`, measured, peers, [speed, cpuPerCall]),
      ...(await manyRows(settings, load, remotes.ours)),
    ]
  })
}

/** Starts servers and a sender, and lets each receive so much that it is compiled. */
export function withReceivers<Name extends ReceivingServer>(
  names: readonly Name[],
  work: (load: Load, remotes: Readonly<Record<Name, Server>>) => Promise<Row[]>,
): Promise<Row[]> {
  return withProcess<CallbackLoadFunctions, Row[]>('callback-load', {}, (load) =>
    withEach<Name, ReceiveFunctions, Row[]>('receive', names, {}, async (remotes) => {
      for (const name of names) {
        await load.call('open', { port: await remotes[name].call('port'), count: connections })
        await load.call('sendTimes', 10_000)
        await load.call('close')
      }
      return work(load, remotes)
    }),
  )
}

/** What a server makes of as many callbacks as it can take in some time. */
export async function costOfReceiving(
  load: Load,
  server: Server,
  count: number,
  runMs: number,
): Promise<Cost> {
  await load.call('open', { port: await server.call('port'), count })
  await server.call('begin', 0)
  const answered = await load.call('sendFor', runMs)
  const cost = await server.call('cost')
  await load.call('close')
  if (cost.calls !== answered) throw new Error(`${answered} were answered, and ${cost.calls} handled`)
  return cost
}

/** Whether each of very many deliveries is handled once, and what they leave behind. */
async function manyRows({ manyCalls }: Settings, load: Load, server: Server): Promise<Row[]> {
  const before = await server.call('heap')
  await load.call('open', { port: await server.call('port'), count: connections })
  await server.call('begin', manyCalls)
  await load.call('sendEach', manyCalls)
  const isDrained = await server.call('drain')
  await load.call('close')
  const after = await server.call('heap')
  const { lost, doubled } = await server.call('account')
  return [
    fact(
      `${manyCalls.toLocaleString('en')} deliveries received`,
      `${lost} lost, ${doubled} doubled; heap before and after: ${units.bytes(before)}, ${units.bytes(after)}; \`drain()\` ${isDrained ? 'resolves' : 'does not resolve'}`,
      'a route of your own on `node:http`',
    ),
  ]
}
