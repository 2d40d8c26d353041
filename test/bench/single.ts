/** What one call costs in a process of its own, against the same call of other libraries. */
import { type Cost, inTurns, type Settings, shorter } from './measure.js'
import type { TokenHolder } from './processes/access-token.js'
import type { Parser } from './processes/parse.js'
import { withEach } from './processes.js'
import { comparisons, type Row, timePerCall } from './report.js'

type Run = { readonly run: (runMs: number) => Promise<Cost> }

function singleRows<Peer extends string>(
  file: string,
  what: string,
  peers: readonly Peer[],
  settings: Settings,
): Promise<Row[]> {
  const names = ['ours', ...peers] as const
  return withEach<Peer | 'ours', Run, Row[]>(file, names, {}, async (remotes) => {
    const measured = await inTurns(shorter(settings), names, (name, runMs) =>
      remotes[name].call('run', runMs),
    )
    return comparisons(what, measured, peers, [timePerCall])
  })
}

/** `getAccessToken` while a token is held, against other clients that hold one. */
export function accessTokenRows(settings: Settings): Promise<Row[]> {
  const peers: readonly Exclude<TokenHolder, 'ours'>[] = ['google-auth-library']
  return singleRows('access-token', 'get a held access token', peers, settings)
}

/** `parseDelivery` of a text, against what else reads and checks one. */
export function parseRows(settings: Settings): Promise<Row[]> {
  const peers: readonly Exclude<Parser, 'ours'>[] = ['JSON.parse', 'JSON.parse + Ajv', 'JSON.parse + zod']
  return singleRows('parse', 'parse a lowEnergyAgentOpened', peers, settings)
}
