/** Runs commands: in this process, or as processes of their own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { type Command, CommandFailure } from '../../src/cli/command.js'
import type { EmulatorState } from '../../src/cli/state.js'
import { Terminal } from '../../src/cli/terminal.js'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { RunningProgram } from '../support/running-program.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const program = ['--import', 'tsx', fileURLToPath(new URL('../../src/cli/index.ts', import.meta.url))]

export interface Finished {
  code: number | null
  stdout: string
  stderr: string
}

export interface RunOptions {
  env?: Record<string, string>
}

export function recordingTerminal(json = false): { terminal: Terminal; lines: string[] } {
  const lines: string[] = []
  const output = { write: (text: string) => lines.push(text.replace(/\n$/, '')) } as never
  return { terminal: new Terminal({ json, output, env: {} }), lines }
}

/** Runs a command in this process, with the exit codes of the command line: much faster than a process of its own. */
export async function call(
  command: Command,
  args: readonly string[],
  env: Record<string, string> = {},
): Promise<Finished> {
  const { terminal, lines } = recordingTerminal(args.includes('--json'))
  try {
    const code = await command.run([...args], { terminal, env })
    return { code, stdout: lines.join('\n'), stderr: '' }
  } catch (error) {
    if (!(error instanceof CommandFailure)) throw error
    return { code: error.exitCode, stdout: lines.join('\n'), stderr: error.message }
  }
}

export async function run(args: readonly string[], options: RunOptions = {}): Promise<Finished> {
  return (await start(args, options)).finished
}

/** Runs a command to its end with what a shell makes of its standard output and standard error. */
export async function runInShell(args: readonly string[], redirection: string): Promise<Finished> {
  const command = `"$0" "$@" ${redirection}`
  const shell = spawn('/bin/sh', ['-c', command, process.execPath, ...program, ...args])
  const [stdout, stderr, [code]] = await Promise.all([
    text(shell.stdout),
    text(shell.stderr),
    once(shell, 'close'),
  ])
  return { code, stdout, stderr }
}

type Running = RunningProgram & { readonly finished: Promise<Finished> }

export async function start(args: readonly string[], { env = {} }: RunOptions = {}): Promise<Running> {
  const { PATH, TMPDIR } = process.env
  const options = { folder: process.cwd(), environment: { PATH, TMPDIR, ...env } }
  const running = new RunningProgram([...program, ...args], options)
  const finished = running.ended.then((end) => ({
    code: typeof end === 'number' ? end : null,
    stdout: running.lines.join('\n'),
    stderr: running.errors.map((line) => `${line}\n`).join(''),
  }))
  return Object.assign(running, { finished })
}

/** What the emulator announces in its first line of JSON. */
export interface Listening {
  baseUrl: string
  authUrl: string
  domain: string
  clientId: string
  clientSecret: string
  caFile: string
  callbackToken: string
  pageUrl: string
}

export type RunningEmulator = Running & {
  readonly listening: Listening
  /** The events so far, without the first. */
  events(): Record<string, unknown>[]
}

/** An emulator with `--json` and a folder of its own, which gets SIGINT where it goes out of scope. */
export async function startEmulatorCommand(folder: string, ...flags: string[]): Promise<RunningEmulator> {
  const running = await start(['emulator', '--json', '--state', folder, ...flags])
  const listening: Listening = JSON.parse(await running.line(/"event":"listening"/))
  return Object.assign(running, {
    listening,
    events: () => running.lines.slice(1).map((text) => JSON.parse(text)),
    async [Symbol.asyncDispose]() {
      running.child.kill('SIGINT')
      await running.finished
    },
  })
}

/** What an emulator keeps in its folder. */
export function newState(): EmulatorState {
  const pageUrl = 'http://127.0.0.1:1/x/'
  return {
    port: 1,
    clientSecret: 'a',
    password: 'b',
    callbackToken: 'c',
    pageUrl,
    ...createLoopbackCertificate(),
  }
}

/** A new folder, which is removed after the test. */
export async function folderOfTest(): Promise<string> {
  const folder = await temporaryFolder()
  onTestFinished(() => folder[Symbol.asyncDispose]())
  return folder.path
}
