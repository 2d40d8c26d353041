/** `notification-subscriber token`: requests an access token, and shows what it says. */
import { isBasic } from '../client/environment.js'
import { durationInWords } from '../emulator/words.js'
import { excerpt } from '../shared/text.js'
import { parseJson } from '../shared/validation.js'
import { callService } from './call.js'
import { type CommandContext, CommandFailure, type SharedFlags, UsageError } from './command.js'

interface TokenFlags extends SharedFlags {
  readonly printToken?: true
}

export async function token(context: CommandContext, flags: TokenFlags): Promise<number> {
  const { terminal, env } = context
  if (isBasic(env)) {
    throw new UsageError(
      'There is no token for a user name and a password: set NOTIFICATION_CLIENT_ID and NOTIFICATION_CLIENT_SECRET instead',
    )
  }
  const issued = await callService('token', context, (client, options) => client.getAccessToken(options))
  const claims = claimsOf(issued)
  const accessToken = flags.printToken && issued
  const fields = { type: 'Bearer', ...claims, accessToken }
  if (accessToken) {
    terminal.event('token', fields, accessToken)
    return 0
  }
  const description =
    claims === undefined ? 'not a JWT: only the service can read it' : describeClaims(claims)
  if (claims !== undefined && hasExpired(claims)) {
    terminal.event('token', fields)
    throw new CommandFailure(`✘ The token has expired already: ${description}\n  → ${compareClocks}`)
  }
  terminal.success('token', fields, `Bearer token: ${description}`)
  return 0
}

export const compareClocks = "Compare this machine's clock with that of the authorization server"

/** `exp` is in seconds since 1970. */
export type TokenClaims = NonNullable<ReturnType<typeof claimsOf>>

/** The unverified claims (RFC 7519), with texts cut; `undefined` if the token is no JWT. */
export function claimsOf(token: string) {
  const payload = parseJson(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
  if (payload === undefined) return undefined
  const { iss, azp, exp, scope }: Record<string, unknown> = Object(payload)
  const text = (claim: unknown) => (typeof claim === 'string' ? excerpt(claim, 200) : undefined)
  return {
    iss: text(iss),
    azp: text(azp),
    exp: typeof exp === 'number' ? exp : undefined,
    scope: text(scope),
  }
}

export function hasExpired({ exp }: TokenClaims): boolean {
  return exp !== undefined && exp * 1000 <= Date.now()
}

export function describeClaims(claims: TokenClaims): string {
  const { iss = 'missing', azp = 'missing', exp, scope = 'none' } = claims
  const remainingMs = exp === undefined ? 0 : exp * 1000 - Date.now()
  const inWords = durationInWords(Math.abs(remainingMs))
  const expiry = remainingMs > 0 ? `expires in ${inWords}` : `expired ${inWords} ago`
  return `iss ${iss}, azp ${azp}, ${exp === undefined ? 'exp missing' : expiry}, scope ${scope}`
}
