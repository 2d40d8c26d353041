/** `notification-subscriber token`: requests an access token, and shows what it says. */
import { isBasic } from '../client/environment.js'
import { durationInWords } from '../emulator/words.js'
import type { Logger } from '../logger.js'
import { callService } from './call.js'
import { claimsOf, describeClaims, hasExpired } from './claims.js'
import {
  type Command,
  type CommandContext,
  CommandFailure,
  readFlags,
  UsageError,
  variablesOf,
} from './command.js'
import { compareClocks } from './next-step.js'

const help = `Usage: notification-subscriber token [flags]

Requests an access token with the variables NOTIFICATION_*, and shows its lifetime and claims. The token itself is a
secret, and terminals and the logs of builds keep what they show: it is printed only with --print-token.

  --print-token  prints the token and nothing else, for a request of your own:
                 curl -H "Authorization: Bearer $(npx notification-subscriber token --print-token)" URL
  --dotenv FILE  read the variables from this file; those of the environment come first
  --json         one JSON object with the event "token"; with --print-token it has the field "accessToken"`

export const tokenCommand: Command = { help, run }

const flagTypes = {
  'print-token': { type: 'boolean' },
  dotenv: { type: 'string' },
  json: { type: 'boolean' },
} as const

async function run(args: string[], { terminal, env: environment }: CommandContext): Promise<number> {
  const { dotenv, 'print-token': isPrinted } = readFlags('token', args, flagTypes)
  const env = await variablesOf(dotenv, environment)
  if (isBasic(env)) {
    throw new UsageError(
      'There is no token for a user name and a password: set NOTIFICATION_CLIENT_ID and NOTIFICATION_CLIENT_SECRET instead',
    )
  }
  let expiresInMs: number | undefined
  const token = await callService({
    operation: 'token',
    call: (client, options) => client.getAccessToken(options),
    // The lifetime that the authorization server gives is only logged.
    logger: {
      ...silent,
      info(fields: { expiresInMs?: number }) {
        expiresInMs ??= fields.expiresInMs
      },
    },
    ...{ env, terminal },
  })
  const claims = claimsOf(token, env)
  const accessToken = isPrinted ? token : undefined
  terminal.event('token', { type: 'Bearer', expiresInMs, ...claims, accessToken })
  if (isPrinted) {
    terminal.line(token)
    return 0
  }
  if (claims !== undefined && hasExpired(claims)) {
    throw new CommandFailure(
      `✘ The token has expired already: ${describeClaims(claims)}\n  → ${compareClocks}`,
    )
  }
  const valid = expiresInMs === undefined ? '' : `, valid for ${durationInWords(expiresInMs)}`
  const content = claims === undefined ? 'not a JWT: only the service can read it' : describeClaims(claims)
  terminal.success(`Bearer token${valid}: ${content}`)
  return 0
}

const silent = { debug() {}, info() {}, warn() {}, error() {} } satisfies Logger
