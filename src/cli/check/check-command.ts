/** `notification-subscriber check`: tries step by step what a subscriber needs. */
import { readFile } from 'node:fs/promises'
import { parseEnv } from 'node:util'
import { headerName, headerValue } from '../../shared/header-syntax.js'
import { urlProblem } from '../../shared/url-problem.js'
import type { Command, Surroundings } from '../command.js'
import { contentOf } from '../files.js'
import type { Terminal } from '../terminal.js'
import { readFlags, UsageError } from '../usage-error.js'
import { type CallbackCheck, checkCallback } from './callback-steps.js'
import { checkService, type Environment } from './service-steps.js'
import type { Step, StepOutcome } from './step.js'

const defaultCallbackTimeoutMs = 5_000

const help = `Usage: notification-subscriber check [flags]

Tries what a subscriber needs: the variables NOTIFICATION_*, DNS and TLS, the token, and whether the service accepts it.
With --callback-url also whether your receiver refuses a delivery without its secret and accepts one with it. Nothing
is subscribed. Exit code 1 if a step failed.

  --dotenv FILE              read the variables from this file, before those of the environment
  --callback-url URL         post a delivery of subscription 0 there, of a type that does not exist; https:, or loopback
  --secret NAME=@FILE        an associated value that comes back as a header: its name, and the file that holds it.
                             May be given several times
  --callback-ca FILE         certificates in PEM to trust at the callback URL
  --callback-timeout-ms N    how long it may take to answer; default ${defaultCallbackTimeoutMs}
  --json                     one JSON object a line, with the event "step"; the last has the event "result"`

export const checkCommand: Command = { help, run }

async function run(args: string[], surroundings: Surroundings): Promise<number> {
  const flags = readFlags('check', args, flagTypes)
  const env = { ...(await variablesIn(flags.dotenv)), ...surroundings.env }
  const ca = await readableFile(env.NOTIFICATION_CA_FILE)
  const callback = await callbackOf(flags, ca)
  const { terminal } = surroundings
  const outcomes: StepOutcome[] = []
  for await (const step of allSteps(env, ca, callback)) {
    outcomes.push(step.outcome)
    print(terminal, step)
  }
  const failures = outcomes.filter((outcome) => outcome === 'failed').length
  terminal.event('result', { ok: failures === 0, failed: failures })
  terminal.line()
  terminal.line(failures === 0 ? 'All is well.' : `${failures} of ${outcomes.length} steps failed.`)
  return failures === 0 ? 0 : 1
}

const flagTypes = {
  dotenv: { type: 'string' },
  'callback-url': { type: 'string' },
  secret: { type: 'string', multiple: true },
  'callback-ca': { type: 'string' },
  'callback-timeout-ms': { type: 'string' },
  json: { type: 'boolean' },
} as const

interface Flags {
  readonly 'callback-url'?: string
  readonly secret?: readonly string[]
  readonly 'callback-ca'?: string
  readonly 'callback-timeout-ms'?: string
}

async function* allSteps(
  env: Environment,
  ca: string | undefined,
  callback: CallbackCheck | undefined,
): AsyncGenerator<Step> {
  yield* checkService(env, ca)
  if (callback !== undefined) yield* checkCallback(callback)
}

async function variablesIn(file: string | undefined): Promise<Environment> {
  const text = await contentOf('--dotenv', file)
  return text === undefined ? {} : parseEnv(text)
}

/** Nothing for a file that cannot be read: the first step reports that. */
async function readableFile(file: string | undefined): Promise<string | undefined> {
  if (!file) return undefined
  try {
    return await readFile(file, 'utf8')
  } catch {
    return undefined
  }
}

async function callbackOf(flags: Flags, ca: string | undefined): Promise<CallbackCheck | undefined> {
  const { 'callback-url': callbackUrl, secret = [] } = flags
  const callbackCa = await contentOf('--callback-ca', flags['callback-ca'])
  if (callbackUrl === undefined) {
    if (secret.length === 0) return undefined
    throw new UsageError('--secret is for --callback-url, which is missing')
  }
  const problem = urlProblem(callbackUrl, true)
  if (problem !== undefined) throw new UsageError(`--callback-url ${problem}`)
  if (secret.length === 0) {
    throw new UsageError(
      '--secret is missing: which header does the receiver know its callbacks by? NAME=@FILE',
    )
  }
  const secrets = Object.fromEntries(await Promise.all(secret.map(secretOf)))
  const authorities = [ca, callbackCa].filter((each) => each !== undefined)
  return {
    callbackUrl: new URL(callbackUrl),
    secrets,
    timeoutMs: timeoutOf(flags['callback-timeout-ms']),
    ca: authorities.length === 0 ? undefined : authorities.join('\n'),
  }
}

async function secretOf(text: string): Promise<[name: string, value: string]> {
  const equals = text.indexOf('=')
  const name = text.slice(0, equals)
  if (equals === -1 || !headerName.test(name)) {
    throw new UsageError(
      '--secret must be NAME=@FILE: the name of a header, and the file that holds its value',
    )
  }
  if (text[equals + 1] !== '@') {
    throw new UsageError(
      `--secret ${name} must come from a file, ${name}=@FILE: other users of this machine can see a command line`,
    )
  }
  const content = await contentOf('--secret', text.slice(equals + 2))
  // Editors end a file with a line break.
  const value = content?.replace(/\r?\n$/, '') ?? ''
  if (value !== '' && headerValue.test(value)) return [name, value]
  throw new UsageError(`--secret ${name}: its file does not hold one line that can be sent in a header`)
}

function timeoutOf(text: string | undefined): number {
  if (text === undefined) return defaultCallbackTimeoutMs
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text)
  throw new UsageError('--callback-timeout-ms must be a number of milliseconds')
}

const marks = { passed: ['green', '✔'], failed: ['red', '✘'], skipped: ['dim', '-'] } as const

function print(terminal: Terminal, { name, outcome, message, next, details }: Step): void {
  terminal.event('step', { name, outcome, message, next, ...details })
  const [colour, mark] = marks[outcome]
  terminal.line(`${terminal.paint(colour, mark)} ${terminal.paint('bold', name)}: ${message}`)
  if (next !== undefined) terminal.line(`  → ${next}`)
}
