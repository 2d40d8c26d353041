/** `notification-subscriber check`: tries the configuration, the receiver and the service, step by step. */
import { missingFrom } from '../client/environment.js'
import { NotificationClient } from '../client/notification-client.js'
import { callbackUrlProblem, loopbackCallbackProblem } from '../shared/addresses.js'
import { checkCallback } from './check-callback.js'
import { checkLifecycle } from './check-lifecycle.js'
import { callOptions, checkService } from './check-service.js'
import {
  type CommandContext,
  certificatesOf,
  namedValuesOf,
  type SharedFlags,
  UsageError,
} from './command.js'
import { onInterruption } from './signals.js'
import { Finding, Steps, skipped } from './step-report.js'

interface CheckFlags extends SharedFlags {
  readonly callbackUrl?: string
  readonly secret?: readonly string[]
  readonly callbackCa?: string
  readonly lifecycle?: true
  readonly username?: string
}

export async function check({ terminal, env }: CommandContext, flags: CheckFlags): Promise<number> {
  const { callbackUrl, secret: sources = [], lifecycle, username = '' } = flags
  const own = await certificatesOf('--callback-ca', flags.callbackCa)
  const shared = await certificatesOf('NOTIFICATION_CA_FILE', env.NOTIFICATION_CA_FILE || undefined)
  const ca = [own, shared].filter(Boolean).join('\n') || undefined
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
    await checkCallback(steps, { url: new URL(callbackUrl), secrets, ca })
  }
  const abort = new AbortController()
  let exitCode: number | undefined
  if (wanted && isReady) {
    const stopListening = onInterruption((interruption) => {
      const { by } = interruption
      terminal.line(`${by}: ending the subscriptions of this check. A second ${by} leaves them behind.`)
      exitCode = interruption.exitCode
      abort.abort(new Finding('interrupted', 'See the clean-up'))
    })
    await using client = NotificationClient.fromEnv(callOptions, env)
    await checkLifecycle(steps, client, wanted, abort.signal)
    stopListening()
  } else if (wanted) {
    await steps.run('Lifecycle', () => Promise.reject(skipped('not tried without the steps before')))
  }

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
  return exitCode ?? (failures === 0 ? 0 : 1)
}
