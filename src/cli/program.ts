/** The commands: their flags, their help, and what runs them. */
import { createRequire } from 'node:module'
import { Argument, Command, CommanderError, InvalidArgumentError, Option } from 'commander'
import type { Environment } from '../client/environment.js'
import { notificationTypes } from '../notification-types.js'
import { numericIdPattern } from '../shared/validation.js'
import { type CommandContext, CommandFailure, type SharedFlags, variablesOf } from './command.js'
import { type Output, shownOnTerminal, Terminal } from './terminal.js'

export interface ProcessContext {
  readonly env: Environment
  readonly output: Output
  /** For mistakes in a call, and for failures. */
  readonly errors: Pick<NodeJS.WritableStream, 'write'>
}

/** A command: its context, then what commander reads, first the arguments and last the flags. Resolves with the exit code. */
type Action<Given extends unknown[]> = (context: CommandContext, ...given: Given) => Promise<number>

const exitCodes = 'Exit codes: 0 success, 1 something failed, 2 wrong flags or variables, 130 after Ctrl-C'

const json = new Option('--json', 'one JSON object a line, for programs')
const dotenv = new Option('--dotenv <file>', 'read variables from this file; the environment comes first')
const state = new Option('--state <dir>', 'folder of the emulator').default('.emulator')
const source = 'its name, and where its value is, @FILE or env:VARIABLE; repeatable'
const parameter = `comes back as a header on every callback: ${source}`
const secret = `header that proves a callback: ${source}`
const subscriptionId = 'the ID that subscribe printed, or the subscriptionId of its deliveries'

/**
 * Runs a command.
 *
 * @returns the exit code: 0, 1 if something failed, 2 if the call was wrong, 128 and more after a signal
 */
export async function run(args: readonly string[], { env, output, errors }: ProcessContext): Promise<number> {
  let exitCode = 0
  let context: CommandContext
  /** The action of a command. Its module is loaded when it runs, so that help and mistakes are quick. */
  const starting =
    <Given extends unknown[]>(load: () => Promise<Action<Given>>) =>
    async (...given: Given) => {
      const action = await load()
      exitCode = await action(context, ...given)
    }
  const writeErr = (text: string) => void errors.write(text.split('\n').map(shownOnTerminal).join('\n'))
  const program = new Command('notification-subscriber')
    .version(version(), '--version')
    .helpCommand(false)
    .exitOverride()
    .configureHelp({ helpWidth: 80, subcommandTerm: (each) => each.name() })
    .configureOutput({ writeOut: (text) => void output.write(text), writeErr })
    .addHelpText('after', `\n${exitCodes}`)
    .hook('preAction', async (_program, command) => {
      const { json, dotenv }: SharedFlags = command.opts()
      const terminal = new Terminal({ json: json === true, output, env })
      context = { terminal, env: await variablesOf(dotenv, env) }
    })
  const command = (name: string, description: string, example: string) =>
    program
      .command(name)
      .description(description)
      .addOption(json)
      .addHelpText('after', `\nExample:\n  npx --no notification-subscriber ${example}`)

  command('emulator', 'runs the notification service on this machine, with a page', 'emulator')
    .option('--state <dir>', 'folder for the file "env", and for what the next start needs', '.emulator')
    .option('--port <n>', 'port of the service (default: as last time, or any free one)', port)
    .option('--host <host>', 'address or name to listen on; 0.0.0.0: all', '127.0.0.1')
    .option('--page-port <n>', 'port of the page, on 127.0.0.1 (default: any free one)', port)
    .option('--callback-ca <file>', 'certificates in PEM to trust on callbacks')
    .action(starting(async () => (await import('./emulator.js')).emulate))

  command('notify', 'sends a notification through a running emulator', 'notify --user alice')
    .option('--type <type>', 'e.g. cxScoreUpdated (default: lowEnergyAgentOpened)')
    .option('--user <user>', 'user of the notification (default: the first subscribed one)')
    .addOption(new Option('--category <c>', 'needed if --type is not documented').choices(notificationTypes))
    .option('--payload <json>', 'its payload (default: the documented one, or an empty one)')
    .addOption(state)
    .action(starting(async () => (await import('./notify.js')).notify))

  command('receive', 'prints the callbacks that arrive', 'receive --dotenv .emulator/env')
    .option('--port <n>', 'port to listen on, on 127.0.0.1', port, 3000)
    .option('--secret <name=source>', `${secret} (default: token=env:CALLBACK_TOKEN)`, collect)
    .addOption(dotenv)
    .action(starting(async () => (await import('./receive.js')).receive))

  const checkExample = `check --dotenv .env --secret token=env:CALLBACK_TOKEN \\
    --callback-url https://app.example.com/notifications`
  command('check', 'tries the configuration, your receiver, and the service', checkExample)
    .option('--callback-url <url>', 'your receiver; https:, or http: beside a service on loopback')
    .option('--secret <name=source>', secret, collect)
    .option('--callback-ca <file>', 'certificates in PEM to trust at the callback URL')
    .option('--lifecycle', lifecycle)
    .option('--username <user>', 'for --lifecycle: a user of your own for tests')
    .addOption(dotenv)
    .action(starting(async () => (await import('./check.js')).check))

  command('token', 'requests an access token, and shows its claims', 'token --dotenv .env')
    .option('--print-token', 'print the token and nothing else, for $(…)')
    .addOption(dotenv)
    .action(starting(async () => (await import('./token.js')).token))

  const subscribeExample = `subscribe --dotenv .env --type behavioral --user alice,bob \\
    --callback-url https://app.example.com/n --parameter token=env:CALLBACK_TOKEN`
  command('subscribe', 'creates a subscription, and prints its ID', subscribeExample)
    .requiredOption(
      '--type <types>',
      `${notificationTypes.join(', ')}; with commas, or repeated`,
      collectNames,
    )
    .requiredOption('--user <users>', 'users (agents); with commas, or repeated', collectNames)
    .requiredOption('--callback-url <url>', 'your receiver; https:, or http: beside a service on loopback')
    .option('--parameter <name=source>', parameter, collect)
    .option('--recreate-if-exists', 'replace a subscription with the same types, users and URL')
    .addOption(dotenv)
    .action(starting(async () => (await import('./subscriptions.js')).subscribe))

  const updateExample = 'update 42 --dotenv .env --parameter token=env:NEXT_TOKEN'
  command('update', 'changes parameters: later callbacks carry the new values', updateExample)
    .argument('<id>', subscriptionId, numericId)
    .requiredOption('--parameter <name=source>', parameter, collect)
    .addOption(dotenv)
    .action(starting(async () => (await import('./subscriptions.js')).update))

  command('unsubscribe', 'ends a subscription', 'unsubscribe 42 --dotenv .env')
    .argument('<id>', subscriptionId, numericId)
    .addOption(dotenv)
    .action(starting(async () => (await import('./subscriptions.js')).unsubscribe))

  const actions = new Argument('[action]', 'list and show also work while a process has the spool open')
  command('spool', 'shows what waits in a spool, and its dead letters', 'spool ./spool list')
    .argument('<path>', 'the folder')
    .addArgument(actions.choices(['list', 'show', 'retry', 'discard']).default('list'))
    .argument('[id]', 'of a dead letter, for all actions but list', numericId)
    .action(starting(async () => (await import('./spool.js')).spool))

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
  'does the service behave as documented? Creates, recreates, updates and ends a subscription of --username, and names ' +
  'what it could not end. Touches no other subscription'

function collect(value: string, earlier: string[] = []): string[] {
  return [...earlier, value]
}

/** No user name or type has a comma. */
function collectNames(value: string, earlier: string[] = []): string[] {
  return [...earlier, ...value.split(',')]
}

function port(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) < 65_536) return Number(text)
  throw new InvalidArgumentError('It must be a number from 0 to 65535; 0 takes any free port.')
}

function numericId(text: string): number {
  const id = numericIdPattern.test(text) ? Number(text) : Number.NaN
  if (Number.isSafeInteger(id)) return id
  throw new InvalidArgumentError('It must be a number, such as 42.')
}

/** The manifest is found by the package's name, because the build moves this file. */
function version(): string {
  const manifest: { version: string } = createRequire(import.meta.url)('notification-subscriber/package.json')
  return manifest.version
}
