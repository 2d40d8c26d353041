/** `notification-subscriber check`: tests step by step what a subscriber needs. */
import type { Auth } from '../auth/authorizer.js'
import { type Environment, fromEnvironment, isBasic, missingFrom } from '../client/environment.js'
import { NotificationClient } from '../client/notification-client.js'
import { ApiError, ConfigurationError, OutcomeUnknownError } from '../errors.js'
import { callbackUrlProblem, loopbackCallbackProblem } from '../shared/addresses.js'
import {
  isAboutCredentials,
  isBusy,
  isForbidden,
  isInvalidInput,
  isOutcomeOpen,
  isUnauthorized,
} from '../shared/statuses.js'
import { formatIssues } from '../shared/validation.js'
import { checkCallback } from './check-callback.js'
import { checkLifecycle } from './check-lifecycle.js'
import { Finding, Steps } from './check-steps.js'
import {
  type CommandContext,
  certificatesOf,
  namedValuesOf,
  type SharedFlags,
  UsageError,
} from './command.js'
import { type Interruption, onInterruption } from './signals.js'
import { claimsOf, compareClocks, describeClaims, hasExpired } from './token.js'

export interface CheckFlags extends SharedFlags {
  readonly callbackUrl?: string
  readonly secret?: readonly string[]
  readonly callbackCa?: string
  readonly lifecycle?: true
  readonly username?: string
}

export async function check(flags: CheckFlags, { terminal, env }: CommandContext): Promise<number> {
  const { callbackUrl, secret: sources = [], lifecycle, username = '' } = flags
  const ca = await Promise.all([
    certificatesOf('--callback-ca', flags.callbackCa),
    certificatesOf('NOTIFICATION_CA_FILE', env.NOTIFICATION_CA_FILE || undefined),
  ])
  const secrets = await namedValuesOf('--secret', sources, env)
  if (callbackUrl === undefined && (lifecycle || sources.length > 0))
    throw new UsageError('--callback-url is missing: name the address of your receiver')
  if (lifecycle && username === '')
    throw new UsageError('--username is missing: name a user of your own for tests')
  if (callbackUrl !== undefined && !lifecycle && sources.length === 0)
    throw new UsageError(
      '--secret is missing: name the header that proves a callback, NAME=@FILE or NAME=env:VARIABLE',
    )
  const problem =
    callbackUrl &&
    (callbackUrlProblem(callbackUrl) ?? loopbackCallbackProblem(callbackUrl, env.NOTIFICATION_BASE_URL))
  if (problem) throw new UsageError(`--callback-url ${problem}`)
  const wanted = lifecycle && callbackUrl && { username, callbackUrl, parameters: secrets }
  const steps = new Steps(terminal)
  const isReady = await checkService(steps, env)
  if (callbackUrl !== undefined && sources.length > 0) {
    await checkCallback(steps, { url: new URL(callbackUrl), secrets, sources, ca })
  }
  const abort = new AbortController()
  if (wanted && isReady) {
    const stopListening = onInterruption((each) => {
      const { by } = each
      terminal.line(`${by}: ending the subscriptions of this check. A second ${by} leaves them behind.`)
      abort.abort(each)
    })
    await using client = NotificationClient.fromEnv(callOptions, env)
    await checkLifecycle(steps, client, wanted, abort.signal)
    stopListening()
  } else if (wanted) steps.skip('Lifecycle', 'not tried without the steps before')

  const countOf = (outcome: string) => steps.outcomes.filter((each) => each === outcome).length
  const failures = countOf('failed')
  const isConfigured = missingFrom(env).length === 0
  const isOk = failures === 0 && isConfigured
  terminal.event('result', { ok: isOk, failed: failures, unknown: countOf('unknown') })
  if (failures === 0 && !isConfigured) {
    throw new UsageError(
      'Variables NOTIFICATION_* are missing, see the step Configuration: set them, or name a file that does: --dotenv .env',
    )
  }
  terminal.line()
  terminal.line(failures > 0 ? `${failures} of ${steps.outcomes.length} steps failed.` : 'No step failed.')
  const interruption: Interruption | undefined = abort.signal.reason
  return interruption?.exitCode ?? (failures === 0 ? 0 : 1)
}

/** Each step shows the first answer. */
const callOptions = { timeoutMs: 15_000, retry: false, logger: false } as const

/** Resolves with whether the service accepts the credentials. */
async function checkService(steps: Steps, env: Environment): Promise<boolean> {
  if (missingFrom(env).length > 0) {
    steps.skip('Configuration', formatIssues(missingFrom(env)))
    return false
  }
  let client: NotificationClient | undefined
  await steps.run('Configuration', async () => {
    try {
      client = NotificationClient.fromEnv(callOptions, env)
      return `${env.NOTIFICATION_BASE_URL} ${env.NOTIFICATION_DOMAIN ?? ''}`.trimEnd()
    } catch (error) {
      if (!(error instanceof ConfigurationError)) throw error
      throw new Finding(formatIssues(error.issues), 'Correct these variables')
    }
  })
  if (client === undefined) return false
  await using open = client
  const hasToken = isBasic(env) || (await steps.run('Token', () => checkToken(open)))
  return hasToken && steps.run('Authorization', () => checkAuthorization(env))
}

async function checkToken(client: NotificationClient): Promise<string> {
  const claims = claimsOf(await client.getAccessToken())
  if (claims === undefined) return 'issued, but not a JWT: only the service can read it'
  if (!hasExpired(claims)) return describeClaims(claims)
  throw new Finding(`it has expired already: ${describeClaims(claims)}`, compareClocks)
}

/** Only a service that checks the token answers an empty create differently to the credentials and to a made-up token. */
async function checkAuthorization(env: Environment): Promise<string> {
  const { status, error } = await emptyCreate(env)
  const isFromElsewhere = error instanceof ApiError && error.intermediary !== undefined
  if (status === undefined || isFromElsewhere) throw error
  const refused = `the service answered ${status}`
  if (isUnauthorized(status))
    throw new Finding(
      refused,
      'Are the credentials for the environment of NOTIFICATION_BASE_URL, lab or production?',
    )
  if (isForbidden(status))
    throw new Finding(refused, 'Ask your account contact to activate notifications for these credentials')
  if (isBusy(status) || isOutcomeOpen(status)) throw new Finding(refused, 'Try again later')
  const sent = 'POST /api/subscriptions without any field is answered'
  if (!isInvalidInput(status)) {
    const next = 'Check host and path of NOTIFICATION_BASE_URL'
    throw new Finding(`${sent} ${status}, and not 400: this is not the service`, next)
  }
  const forged = await emptyCreate(env, { getAccessToken: () => 'made-up-token' })
  if (forged.status !== undefined && isAboutCredentials(forged.status)) {
    return `the service accepts the credentials: ${sent} ${status}, and ${forged.status} with a made-up token`
  }
  const next = 'Try it for real, with a user of your own for tests: --lifecycle'
  throw new Finding(`${sent} ${status}, and ${forged.status} with a made-up token`, next, 'unknown')
}

/** The client refuses such a create, so it is sent as an unsubscribe on the route of create. */
async function emptyCreate(env: Environment, auth?: Auth): Promise<{ status?: number; error?: unknown }> {
  const routes = { unsubscribe: { method: 'POST', path: '/api/subscriptions', idField: 'check' } } as const
  const options = fromEnvironment((options) => options, callOptions, env)
  await using client = new NotificationClient({ ...options, routes, ...(auth && { auth }) })
  const answer: { status?: number; error?: unknown } = {}
  try {
    await client.unsubscribe(0, { onResponse: ({ status }) => void Object.assign(answer, { status }) })
  } catch (error) {
    answer.error = error instanceof OutcomeUnknownError ? error.cause : error
  }
  return answer
}
