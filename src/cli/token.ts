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
  const issued = await callService(context, (client, options) => client.getAccessToken(options))
  const { claims, description, hasExpired } = readToken(issued)
  const accessToken = flags.printToken && issued
  const fields = { type: 'Bearer', ...claims, accessToken }
  if (accessToken) {
    terminal.event('token', fields, accessToken)
  } else if (hasExpired) {
    terminal.event('token', fields)
    throw new CommandFailure(`✘ The token has expired already: ${description}\n  → ${compareClocks}`)
  } else {
    terminal.success('token', fields, `Bearer token: ${description}`)
  }
  return 0
}

export const compareClocks = "Compare this machine's clock with that of the authorization server"

/** The unverified claims (RFC 7519), with texts cut, and in words. */
export function readToken(token: string) {
  const payload = parseJson(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
  if (payload === undefined) {
    return { description: 'not a JWT: only the service can read it', hasExpired: false }
  }
  const claims: Record<string, unknown> = Object(payload)
  const text = (name: string) => (typeof claims[name] === 'string' ? excerpt(claims[name], 200) : undefined)
  const [iss, azp, scope] = [text('iss'), text('azp'), text('scope')]
  // In seconds since 1970.
  const exp = typeof claims.exp === 'number' ? claims.exp : undefined
  const remainingMs = exp === undefined ? Number.POSITIVE_INFINITY : exp * 1000 - Date.now()
  const inWords = durationInWords(Math.abs(remainingMs))
  const expiry =
    exp === undefined ? 'exp missing' : remainingMs > 0 ? `expires in ${inWords}` : `expired ${inWords} ago`
  return {
    claims: { iss, azp, exp, scope },
    description: `iss ${iss ?? 'missing'}, azp ${azp ?? 'missing'}, ${expiry}, scope ${scope ?? 'none'}`,
    hasExpired: remainingMs <= 0,
  }
}
