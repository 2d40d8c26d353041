/** `getAccessToken` while a token is held, against other clients that hold one. */
import { inTurns, type Settings, shorter } from './measure.js'
import type { AccessTokenFunctions, TokenHolder } from './processes/access-token.js'
import { withEach } from './processes.js'
import { comparisons, type Row, timePerCall } from './report.js'

const peers: readonly Exclude<TokenHolder, 'ours'>[] = ['google-auth-library', 'openai', '@twurple/auth']
const holders = ['ours', ...peers] as const

export function accessTokenRows(settings: Settings): Promise<Row[]> {
  return withEach<TokenHolder, AccessTokenFunctions, Row[]>('access-token', holders, {}, async (remotes) => {
    const measured = await inTurns(shorter(settings), holders, (name, runMs) =>
      remotes[name].call('run', runMs),
    )
    return comparisons('get a held access token', measured, peers, [timePerCall])
  })
}
