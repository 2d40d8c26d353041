/** `getAccessToken` while a token is held, against other clients that hold one. */
import { inTurns, type Settings, shorter } from './measure.js'
import type { AccessTokenFunctions, TokenHolder } from './processes/access-token.js'
import { withEach } from './processes.js'
import { comparisons, type Limit, type Row, timePerCall } from './report.js'

const limits: Readonly<Record<Exclude<TokenHolder, 'ours'>, Limit>> = {
  'google-auth-library': { atMost: 1 },
  openai: { atMost: 1 },
  '@twurple/auth': { atMost: 1 },
  'p-memoize': { atMost: 1 },
}
const holders = ['ours', ...Object.keys(limits)] as TokenHolder[]

export function accessTokenRows(settings: Settings): Promise<Row[]> {
  return withEach<TokenHolder, AccessTokenFunctions, Row[]>('access-token', holders, {}, async (remotes) => {
    const measured = await inTurns(shorter(settings), holders, (name, runMs) =>
      remotes[name].call('run', runMs),
    )
    return comparisons('get a held access token', measured, limits, [timePerCall])
  })
}
