#!/usr/bin/env node
/** The command line: finds the command, runs it, and sets the exit code. */
import { createRequire } from 'node:module'
import { didYouMean } from '../shared/given.js'
import { messageOf } from '../shared/text.js'
import { type Command, CommandFailure } from './command.js'
import { shownOnTerminal, Terminal } from './terminal.js'

/** Loaded one at a time: help and version need none of them. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  emulator: async () => (await import('./emulator.js')).emulatorCommand,
  notify: async () => (await import('./notify.js')).notifyCommand,
  check: async () => (await import('./check.js')).checkCommand,
  token: async () => (await import('./token.js')).tokenCommand,
  subscribe: async () => (await import('./subscriptions.js')).subscribeCommand,
  update: async () => (await import('./subscriptions.js')).updateCommand,
  unsubscribe: async () => (await import('./subscriptions.js')).unsubscribeCommand,
  spool: async () => (await import('./spool.js')).spoolCommand,
}

const help = `Usage: notification-subscriber <command> [flags]

  emulator     runs the notification service on this machine, with a page in the browser
  notify       sends a notification through a running emulator
  check        checks the configuration in NOTIFICATION_*, your callback URL, and how the service behaves
  token        requests an access token, and shows its claims
  subscribe    creates a subscription, and prints its ID
  update       changes the parameters of a subscription
  unsubscribe  ends a subscription
  spool        shows the dead letters of a spool, puts them back or removes them

  --help       of a command: its flags
  --version    the version of this package

Exit codes: 0 success, 1 a check, a callback or a call failed, 2 the command cannot run as it was called,
130 interrupted by Ctrl-C.`

// If the output fails, a command still ends in order. A reader such as `head -1` may have ended, and a
// terminal may be closed: nothing is lost then.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code === 'EPIPE' || error.code === 'EIO') return
  process.exitCode ||= refuse(`The output cannot be written: ${messageOf(error)}`)
})
process.stderr.on('error', () => {})

// A rejection ends the process, and shows its stack.
void main(process.argv.slice(2)).then((code) => {
  process.exitCode ||= code
})

async function main([name = '', ...args]: string[]): Promise<number> {
  if (name === '--version') return print(version())
  if (name === '' || name === '--help' || name === '-h' || name === 'help') return print(help)
  const load = Object.hasOwn(commands, name) ? commands[name] : undefined
  if (load === undefined) {
    const advice = didYouMean(name, Object.keys(commands), (each) => `"${each}"`)
    return refuse(`There is no command "${name}"${advice}. See: notification-subscriber --help`)
  }
  const command = await load()
  if (args.includes('--help') || args.includes('-h')) return print(command.help)
  const terminal = new Terminal({ json: args.includes('--json'), output: process.stdout, env: process.env })
  try {
    return await command.run(args, { terminal, env: process.env })
  } catch (error) {
    if (error instanceof CommandFailure) return refuse(error.message, error.exitCode)
    throw error
  }
}

function print(text: string): number {
  process.stdout.write(`${text}\n`)
  return 0
}

function refuse(text: string, exitCode = 2): number {
  const lines = text.split('\n').map(shownOnTerminal)
  process.stderr.write(`${lines.join('\n')}\n`)
  return exitCode
}

/** The manifest is found by the package's name, because the build moves this file. */
function version(): string {
  const manifest: { version: string } = createRequire(import.meta.url)('notification-subscriber/package.json')
  return manifest.version
}
