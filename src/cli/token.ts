/** `notification-subscriber token`: requests an access token, and shows what it says. */
import { isBasic } from '../client/environment.js'
import { durationInWords } from '../emulator/words.js'
import { excerpt } from '../shared/text.js'
import { parseJson } from '../shared/validation.js'
import { callService } from './call.js'
import { CommandFailure, commandOf, UsageError } from './command.js'

export const tokenCommand = commandOf({
  name: 'token',
  help: `Usage: notification-subscriber token [flags]

Requests an access token with the variables NOTIFICATION_*, and shows its claims. The token itself is a
secret, and terminals and the logs of builds keep what they show: it is printed only with --print-token.

  --print-token  prints the token and nothing else, for a request of your own:
                 curl -H "Authorization: Bearer $(npx notification-subscriber token --print-token)" URL
  --dotenv FILE  read the variables from this file; those of the environment come first
  --json         one JSON object with the event "token"; with --print-token it has the field "accessToken"`,
  flags: { texts: ['dotenv'], switches: ['print-token'] },
  async run({ flags: { 'print-token': isPrinted }, terminal, env }) {
    if (isBasic(env)) {
      throw new UsageError(
        'There is no token for a user name and a password: set NOTIFICATION_CLIENT_ID and NOTIFICATION_CLIENT_SECRET instead',
      )
    }
    const token = await callService('token', { env, terminal }, (client, options) =>
      client.getAccessToken(options),
    )
    const claims = claimsOf(token)
    const accessToken = isPrinted ? token : undefined
    terminal.event('token', { type: 'Bearer', ...claims, accessToken })
    if (isPrinted) {
      terminal.line(token)
      return 0
    }
    if (claims !== undefined && hasExpired(claims)) {
      throw new CommandFailure(
        `✘ The token has expired already: ${describeClaims(claims)}\n  → ${compareClocks}`,
      )
    }
    const content = claims === undefined ? 'not a JWT: only the service can read it' : describeClaims(claims)
    terminal.success(`Bearer token: ${content}`)
    return 0
  },
})

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
