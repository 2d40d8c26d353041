/** `parseDelivery` of a text, against what else reads and checks one. */
import { inTurns, type Settings, shorter } from './measure.js'
import type { ParseFunctions, Parser } from './processes/parse.js'
import { withEach } from './processes.js'
import { comparisons, type Row, timePerCall } from './report.js'

const peers: readonly Exclude<Parser, 'ours'>[] = [
  'JSON.parse',
  'JSON.parse + Ajv',
  'JSON.parse + Valibot',
  'JSON.parse + ArkType',
  'JSON.parse + zod',
]
const parsers = ['ours', ...peers] as const

export function parseRows(settings: Settings): Promise<Row[]> {
  return withEach<Parser, ParseFunctions, Row[]>('parse', parsers, {}, async (remotes) => {
    const measured = await inTurns(shorter(settings), parsers, (name, runMs) =>
      remotes[name].call('run', runMs),
    )
    return comparisons('parse a lowEnergyAgentOpened', measured, peers, [timePerCall])
  })
}
