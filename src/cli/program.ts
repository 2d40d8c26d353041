/** The commands: their flags, their help, and what runs them. */
import { createRequire } from 'node:module'
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import type { Environment } from '../client/environment.js'
import { notificationTypes } from '../notification-types.js'
import { numericIdPattern } from '../shared/validation.js'
import type { CheckFlags } from './check.js'
import { type CommandContext, CommandFailure, type SharedFlags, variablesOf } from './command.js'
import type { EmulatorFlags } from './emulator.js'
import type { NotifyFlags } from './notify.js'
import type { ReceiveFlags } from './receive.js'
import type { SpoolAction } from './spool.js'
import type { SubscribeFlags, UpdateFlags } from './subscriptions.js'
import { type Output, shownOnTerminal, Terminal } from './terminal.js'
import type { TokenFlags } from './token.js'

export interface ProcessContext {
  readonly env: Environment
  readonly output: Output
  /** For mistakes in a call, and for failures. */
  readonly errors: Pick<NodeJS.WritableStream, 'write'>
}

const exitCodes = 'Exit codes: 0 success, 1 something failed, 2 the call was wrong, 130 after Ctrl-C'

const json = new Option('--json', 'one JSON object a line, for programs')
const dotenv = new Option('--dotenv <file>', 'read variables from this file; the environment comes first')
const state = new Option('--state <dir>', 'folder of the emulator').default('.emulator')
const source = 'its name, and where its value is, @FILE or env:VARIABLE; repeatable'
const parameter = `comes back as a header on every callback: ${source}`
const secret = `header that proves a callback: ${source}`

/**
 * Runs a command.
 *
 * @returns the exit code: 0, 1 if something failed, 2 if the call was wrong, 128 and more after a signal
 */
export async function run(args: readonly string[], { env, output, errors }: ProcessContext): Promise<number> {
  let exitCode = 0
  /** Modules are loaded by the command that needs them, so that help and mistakes are quick. */
  async function start(
    flags: SharedFlags,
    command: (context: CommandContext) => Promise<number>,
  ): Promise<void> {
    const terminal = new Terminal({ json: flags.json === true, output, env })
    exitCode = await command({ terminal, env: await variablesOf(flags.dotenv, env) })
  }
  const writeErr = (text: string) => void errors.write(text.split('\n').map(shownOnTerminal).join('\n'))
  const program = new Command('notification-subscriber')
    .version(version(), '--version')
    .helpCommand(false)
    .exitOverride()
    .configureHelp({ helpWidth: 80, subcommandTerm: (each) => each.name() })
    .configureOutput({ writeOut: (text) => void output.write(text), writeErr })
    .addHelpText('after', `\n${exitCodes}`)
  const command = (name: string, description: string, example: string) =>
    program
      .command(name)
      .description(description)
      .addOption(json)
      .addHelpText('after', `\nExample:\n  npx --no notification-subscriber ${example}`)

  command('emulator', 'runs the notification service on this machine, with a page', 'emulator')
    .option('--state <dir>', 'folder for the file "env", and for the next start', '.emulator')
    .option('--port <n>', 'port of the service (default: as last time, or any free one)', port)
    .option('--host <host>', 'address or name to listen on; 0.0.0.0: all', '127.0.0.1')
    .option('--page-port <n>', 'port of the page, on 127.0.0.1 (default: any free one)', port)
    .option('--callback-ca <file>', 'certificates in PEM to trust on callbacks')
    .action((flags: EmulatorFlags) =>
      start(flags, async (its) => (await import('./emulator.js')).emulate(flags, its)),
    )

  command('notify', 'sends a notification through a running emulator', 'notify --user alice')
    .option('--type <type>', 'e.g. cxScoreUpdated (default: lowEnergyAgentOpened)')
    .option('--user <user>', 'whom it is about (default: the first subscribed user)')
    .addOption(new Option('--category <c>', 'of a type that is not documented').choices(notificationTypes))
    .option('--payload <json>', 'default: the documented one, or an empty one')
    .addOption(state)
    .action((flags: NotifyFlags) =>
      start(flags, async (its) => (await import('./notify.js')).notify(flags, its)),
    )

  command('receive', 'prints the callbacks that arrive', 'receive --dotenv .emulator/env')
    .option('--port <n>', 'port to listen on, on 127.0.0.1', port, 3000)
    .option('--secret <name=source>', `${secret} (default: token=env:CALLBACK_TOKEN)`, collect)
    .addOption(dotenv)
    .action((flags: ReceiveFlags) =>
      start(flags, async (its) => (await import('./receive.js')).receive(flags, its)),
    )

  const checkExample = `check --dotenv .env --secret token=env:CALLBACK_TOKEN \\
    --callback-url https://app.example.com/notifications`
  command('check', 'tries the configuration, your receiver, and the service', checkExample)
    .option('--callback-url <url>', 'your receiver; https:, or http: beside a service on loopback')
    .option('--secret <name=source>', secret, collect)
    .option('--callback-ca <file>', 'certificates in PEM to trust at the callback URL')
    .option('--lifecycle', lifecycle)
    .option('--username <user>', 'the user for --lifecycle')
    .addOption(dotenv)
    .action((flags: CheckFlags) =>
      start(flags, async (its) => (await import('./check.js')).check(flags, its)),
    )

  command('token', 'requests an access token, and shows its claims', 'token --dotenv .env')
    .option('--print-token', 'print the token and nothing else, for $(…)')
    .addOption(dotenv)
    .action((flags: TokenFlags) =>
      start(flags, async (its) => (await import('./token.js')).token(flags, its)),
    )

  const subscribeExample = `subscribe --dotenv .env --type behavioral --user alice,bob \\
    --callback-url https://app.example.com/n --parameter token=env:CALLBACK_TOKEN`
  command('subscribe', 'creates a subscription, and prints its ID', subscribeExample)
    .requiredOption(
      '--type <types>',
      `${notificationTypes.join(', ')}; with commas, or repeated`,
      collectNames,
    )
    .requiredOption('--user <users>', 'users (agents); with commas, or repeated', collectNames)
    .requiredOption('--callback-url <url>', 'where the service sends notifications; https:')
    .option('--parameter <name=source>', parameter, collect)
    .option('--recreate-if-exists', 'replace a subscription with the same types, users and URL')
    .addOption(dotenv)
    .action((flags: SubscribeFlags) =>
      start(flags, async (its) => (await import('./subscriptions.js')).subscribe(flags, its)),
    )

  const updateExample = 'update 42 --dotenv .env --parameter token=env:NEXT_TOKEN'
  command('update', 'changes parameters: later callbacks carry the new values', updateExample)
    .argument('<id>', 'the ID that subscribe printed', numericId)
    .requiredOption('--parameter <name=source>', parameter, collect)
    .addOption(dotenv)
    .action((id: number, flags: UpdateFlags) =>
      start(flags, async (its) => (await import('./subscriptions.js')).update(id, flags, its)),
    )

  command('unsubscribe', 'ends a subscription', 'unsubscribe 42 --dotenv .env')
    .argument('<id>', 'the ID that subscribe printed', numericId)
    .addOption(dotenv)
    .action((id: number, flags: SharedFlags) =>
      start(flags, async (its) => (await import('./subscriptions.js')).unsubscribe(id, its)),
    )

  const actions = new Argument('[action]', 'list and show work beside a running process')
  command('spool', 'shows what waits in a spool, and its dead letters', 'spool ./spool list')
    .argument('<path>', 'the folder')
    .addArgument(actions.choices(['list', 'show', 'retry', 'discard']).default('list'))
    .argument('[id]', 'of a dead letter, for all actions but list', numericId)
    .action((path: string, action: SpoolAction, id: number | undefined, flags: SharedFlags) =>
      start(flags, async (its) => (await import('./spool.js')).spool(path, action, id, its)),
    )

  try {
    await program.parseAsync(args.length === 0 ? ['--help'] : args, { from: 'user' })
    return exitCode
  } catch (error) {
    if (error instanceof CommandFailure) {
      writeErr(`${error.message}\n`)
      return error.exitCode
    }
    // Commander has printed the help, or what is wrong.
    if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
    throw error
  }
}

const lifecycle =
  'subscribe, recreate, update and unsubscribe a user of your own for tests: does the service behave as documented? ' +
  'Touches no other subscription, and leaves nothing behind'

function collect(value: string, earlier: string[] = []): string[] {
  return [...earlier, value]
}

/** No user name or type has a comma. */
function collectNames(value: string, earlier: string[] = []): string[] {
  return [...earlier, ...value.split(',')]
}

function port(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) < 65_536) return Number(text)
  throw new InvalidArgumentError('It is a number from 0 to 65535, where 0 takes any free one.')
}

function numericId(text: string): number {
  const id = numericIdPattern.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(id)) return id
  throw new InvalidArgumentError('It is a number, such as 42.')
}

/** The manifest is found by the package's name, because the build moves this file. */
function version(): string {
  const manifest: { version: string } = createRequire(import.meta.url)('notification-subscriber/package.json')
  return manifest.version
}
