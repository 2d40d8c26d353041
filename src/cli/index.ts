#!/usr/bin/env node
/** The command line: finds the command, and turns what becomes of it into an exit code. */
import { createRequire } from 'node:module'
import { didYouMean } from '../shared/nearest-name.js'
import type { Command } from './command.js'
import { Terminal } from './terminal.js'
import { UsageError } from './usage-error.js'

/** Loaded one at a time: help and version need none of them. */
const commands: Readonly<Record<string, () => Promise<Command>>> = {
  emulator: async () => (await import('./emulator/emulator-command.js')).emulatorCommand,
  notify: async () => (await import('./notify/notify-command.js')).notifyCommand,
  check: async () => (await import('./check/check-command.js')).checkCommand,
}

const help = `Usage: notification-subscriber <command> [flags]

  emulator   runs the notification service on this machine, with a page in the browser
  notify     sends a notification through a running emulator
  check      tries the configuration in NOTIFICATION_*, and the callback URL

  --help     of a command: its flags
  --version  the version of this package

Exit codes: 0 all is well, 1 something is not, 2 the command was called in a way that cannot work.`

// Whoever reads the output, such as `head -1`, may have had enough: the exit code is what it would have been.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error
})

// No top-level `await`, which the build's minifier does not read. A rejection ends the process and shows its stack.
void main(process.argv.slice(2)).then((code) => {
  process.exitCode = code
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
    if (error instanceof UsageError) return refuse(error.message)
    throw error
  }
}

function print(text: string): number {
  process.stdout.write(`${text}\n`)
  return 0
}

function refuse(sentence: string): number {
  process.stderr.write(`${sentence}\n`)
  return 2
}

/** The package asks itself by its name, because this file moves in the build. */
function version(): string {
  const manifest: { version: string } = createRequire(import.meta.url)('notification-subscriber/package.json')
  return manifest.version
}
