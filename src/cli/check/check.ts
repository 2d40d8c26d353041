/** `notification-subscriber check`: tests step by step what a subscriber needs. */
import { readFile } from 'node:fs/promises'
import { type Environment, missingFrom, routeVariable } from '../../client/environment.js'
import { NotificationClient } from '../../client/notification-client.js'
import type { Issue } from '../../errors.js'
import { callbackUrlProblem } from '../../shared/addresses.js'
import { partsOfRoute, routeSchema, routeSpelling } from '../../shared/routes.js'
import { formatIssues, validate } from '../../shared/validation.js'
import { certificatesOf, commandOf, type Flags, namedValuesOf, required, UsageError } from '../command.js'
import { readPrivateFile, writePrivateFile } from '../private-file.js'
import { type Interruption, onInterruption } from '../signals.js'
import type { Terminal } from '../terminal.js'
import { type CallbackCheck, checkCallback } from './callback.js'
import { Lifecycle, type LifecycleOptions } from './lifecycle.js'
import { callOptions, checkService, routesStep } from './service.js'
import { type CheckStep, skipped, unknown } from './step.js'

const endedSubscriptions = unknown(
  'whether a subscription of yours has ended, and which secret it sends: the service ends it after three failed callbacks in a row, and no call lists it',
  'Run subscribe without --recreate-if-exists: 409 means still active, 201 means that it had ended and is active again. Its secret is set by update ID --parameter',
)

const defaultCallbackTimeoutMs = 5_000

const flagNames = {
  texts: [
    'dotenv',
    'unsubscribe-route',
    'update-route',
    'callback-url',
    'callback-ca',
    'callback-timeout-ms',
    'username',
    'report',
  ],
  lists: ['secret'],
  switches: ['lifecycle'],
} as const

export const checkCommand = commandOf({
  name: 'check',
  help: `Usage: notification-subscriber check [flags]

Checks what a subscriber needs: the variables NOTIFICATION_*, DNS and TLS, the token, and whether the service accepts
it. Sends nothing that could end or change a subscription. With --callback-url and --secret also whether your receiver
refuses a delivery without its secret and accepts one with it. Exit code 1 if a step failed.

  --dotenv FILE              read the variables from this file; those of the environment come first
  --unsubscribe-route ROUTE  in place of NOTIFICATION_UNSUBSCRIBE_ROUTE: METHOD PATH [ID_FIELD] [form|json], such as
                             "POST /api/subscriptions/unsubscribe subscription_id"
  --update-route ROUTE       in place of NOTIFICATION_UPDATE_ROUTE
  --callback-url URL         your receiver; https:, or http: on loopback
  --secret NAME=SOURCE       a header that proves a callback: its name, and where its value is, @FILE or
                             env:VARIABLE. May be given several times
  --callback-ca FILE         certificates in PEM to trust at the callback URL
  --callback-timeout-ms N    how long the receiver may take to answer; default ${defaultCallbackTimeoutMs}
  --json                     one JSON object a line, with the event "step"; the last has the event "result"

With --lifecycle also whether the service behaves as documented, and has the routes of unsubscribe and update: creates
subscriptions of one user, a duplicate and an overlap among them, recreates, updates and unsubscribes. Ends all of
them, also after Ctrl-C. Adds a random check=... to the callback URL, so that no other subscription is touched.

  --lifecycle                subscribe and unsubscribe for real; needs --username and --callback-url
  --username U               the user: take one of your own for tests
  --report FILE              write the findings into this file, as JSON: no secret, no name, no address but the
                             service's`,
  flags: flagNames,
  async run({ flags, terminal, env: environment }) {
    const env: Record<string, string | undefined> = { ...environment }
    for (const operation of ['unsubscribe', 'update'] as const) {
      const route = flags[`${operation}-route`]
      if (route === undefined) continue
      const mustBe = `--${operation}-route must be written ${routeSpelling}`
      const refuse = (issues: readonly Issue[]) => new UsageError(`${mustBe}: ${formatIssues(issues)}`)
      validate(routeSchema(operation), partsOfRoute(route), refuse)
      env[routeVariable(operation)] = route
    }
    // A file that cannot be read is reported by the first step.
    const ca = await readFile(env.NOTIFICATION_CA_FILE ?? '', 'utf8').catch(() => undefined)
    const callback = await callbackOf(flags, ca, env)
    const plan = lifecycleOf(flags, callback)
    const steps: CheckStep[] = []
    const show = (step: CheckStep) => {
      steps.push(step)
      print(terminal, step)
    }
    for await (const step of checkService(env, ca)) show(step)
    const missing = missingFrom(env)
    const isServiceReached = missing.length === 0 && steps.every(({ outcome }) => outcome !== 'failed')
    if (plan === undefined && isServiceReached) show(routesStep(env))
    if (callback !== undefined && flags.secret !== undefined) {
      for await (const step of checkCallback(callback)) show(step)
    } else {
      const next = 'Name your receiver, and the header that proves a callback: --callback-url and --secret'
      show({ name: 'Callback', ...unknown('whether your receiver gets deliveries', next) })
    }
    if (isServiceReached) show({ name: 'Subscriptions', ...endedSubscriptions })
    let interruption: Interruption | undefined
    if (plan !== undefined && !isServiceReached) {
      show({ name: 'Lifecycle', ...skipped('not tried without the steps before') })
    } else if (plan !== undefined) {
      interruption = await runLifecycle(plan, env, terminal, show)
    }
    const countOf = (outcome: CheckStep['outcome']) => steps.filter((step) => step.outcome === outcome).length
    const failures = countOf('failed')
    const unknowns = countOf('unknown')
    const ok = failures + missing.length === 0
    const interrupted = interruption !== undefined
    terminal.event('result', { ok, failed: failures, unknown: unknowns, interrupted })
    if (failures === 0 && missing.length > 0) {
      throw new UsageError(
        'Variables NOTIFICATION_* are missing, see the step Configuration: set them, or name a file that does: --dotenv .env',
      )
    }
    if (isServiceReached) {
      terminal.line("† documented on the service's public developer pages, not in its interface document")
    }
    const unshown = unknowns === 0 ? '' : `; ${unknowns} cannot be proven here`
    const outcome =
      failures > 0 ? `${failures} of ${steps.length} steps failed.` : `No step failed${unshown}.`
    terminal.line()
    terminal.line(interruption === undefined ? outcome : `Interrupted by ${interruption.by}.`)
    return interruption?.exitCode ?? (failures === 0 ? 0 : 1)
  },
})

async function callbackOf(
  flags: Flags<typeof flagNames>,
  ca: string | undefined,
  env: Environment,
): Promise<CallbackCheck | undefined> {
  const { 'callback-url': callbackUrl, secret = [], lifecycle } = flags
  const callbackCa = await certificatesOf('--callback-ca', flags['callback-ca'])
  if (callbackUrl === undefined) {
    if (secret.length === 0) return undefined
    throw new UsageError('--secret is for --callback-url, which is missing')
  }
  const problem = callbackUrlProblem(callbackUrl, true)
  if (problem !== undefined) throw new UsageError(`--callback-url ${problem}`)
  if (secret.length === 0 && !lifecycle) {
    throw new UsageError(
      '--secret is missing: name the header that proves a callback, and where its value is: NAME=@FILE or NAME=env:VARIABLE',
    )
  }
  return {
    callbackUrl: new URL(callbackUrl),
    secrets: await namedValuesOf('--secret', secret, env),
    sources: secret,
    timeoutMs: timeoutOf(flags['callback-timeout-ms']),
    ca: [ca, callbackCa].filter(Boolean).join('\n') || undefined,
  }
}

function timeoutOf(text: string | undefined): number {
  if (text === undefined) return defaultCallbackTimeoutMs
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text)
  throw new UsageError('--callback-timeout-ms must be a number of milliseconds, at least 1')
}

type LifecyclePlan = Omit<LifecycleOptions, 'client' | 'isInterrupted'> & { report: string | undefined }

function lifecycleOf(
  flags: Flags<typeof flagNames>,
  callback: CallbackCheck | undefined,
): LifecyclePlan | undefined {
  const { lifecycle, username, report } = flags
  if (!lifecycle) {
    const stray = (['username', 'report'] as const).find((flag) => flags[flag] !== undefined)
    if (stray === undefined) return undefined
    throw new UsageError(`--${stray} is for --lifecycle, which is missing`)
  }
  const user = required('--username', username, 'name a user of your own for tests')
  const { callbackUrl, secrets } = required('--callback-url', callback, 'name the address of your receiver')
  return { username: user, callbackUrl: callbackUrl.href, parameters: secrets, report }
}

/** Runs the lifecycle, and always cleans up. Resolves with the interruption, if there was one. */
async function runLifecycle(
  { report, ...plan }: LifecyclePlan,
  env: Environment,
  terminal: Terminal,
  show: (step: CheckStep) => void,
): Promise<Interruption | undefined> {
  let interruption: Interruption | undefined
  await using client = NotificationClient.fromEnv({ ...callOptions, allowInsecureLoopback: true }, env)
  const lifecycle = new Lifecycle({ ...plan, client, isInterrupted: () => interruption !== undefined })
  const steps: CheckStep[] = []
  // The report names the service, but no user, callback URL, client or text of an answer.
  const writeReport = async () => {
    if (report === undefined) return
    const content = {
      writtenAt: new Date().toISOString(),
      service: new URL(env.NOTIFICATION_BASE_URL ?? '').origin,
      isInterrupted: interruption !== undefined,
      steps: steps.map(({ name, outcome, details }) => ({ name, outcome, ...details })),
      subscriptionsLeft: lifecycle.leftBehind,
    }
    // Refuses everything except a regular file.
    await readPrivateFile(report)
    await writePrivateFile(report, `${JSON.stringify(content, null, 2)}\n`)
  }
  const record = async (step: CheckStep) => {
    show(step)
    steps.push(step)
    await writeReport()
  }
  // Written before the first request, so that an unwritable file fails early.
  await writeReport()
  const stopListening = onInterruption((interrupted) => {
    interruption = interrupted
    const { by } = interrupted
    terminal.line(`${by}: ending the subscriptions of this check. A second ${by} leaves them behind.`)
  })
  try {
    for await (const step of lifecycle.run()) await record(step)
  } finally {
    await record({ name: 'Clean-up', ...(await lifecycle.cleanUp()) })
    stopListening()
  }
  return interruption
}

const marks = {
  passed: ['green', '✔'],
  failed: ['red', '✘'],
  skipped: ['dim', '-'],
  unknown: ['yellow', '?'],
} as const

function print(terminal: Terminal, { name, outcome, message, next, details }: CheckStep): void {
  terminal.event('step', { name, outcome, message, next, ...details })
  const [colour, mark] = marks[outcome]
  terminal.line(`${terminal.paint(colour, mark)} ${terminal.paint('bold', name)}: ${message}`)
  if (next !== undefined) terminal.line(`  → ${next}`)
}
