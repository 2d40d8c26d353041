/** Runs the command line: in this process, or as a process of its own. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'
import { run as runProgram } from '../../src/cli/program.js'
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

export function recordingTerminal(json = false): { terminal: Terminal; lines: string[] } {
  const lines: string[] = []
  const output = { write: (text: string) => lines.push(text.replace(/\n$/, '')) } as never
  return { terminal: new Terminal({ json, output, env: {} }), lines }
}

/** Runs a command in this process: much faster than a process of its own. */
export async function call(args: readonly string[], env: Record<string, string> = {}): Promise<Finished> {
  const printed = { output: '', errors: '' }
  const to = (stream: 'output' | 'errors') => ({
    write: (text: string) => {
      printed[stream] += text
      return true
    },
  })
  const code = await runProgram(args, { env, output: to('output'), errors: to('errors') })
  return { code, stdout: printed.output.trimEnd(), stderr: printed.errors.trimEnd() }
}

export async function run(args: readonly string[], env?: Record<string, string>): Promise<Finished> {
  return (await start(args, env)).finished
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

export async function start(args: readonly string[], env: Record<string, string> = {}): Promise<Running> {
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

/** What an emulator keeps in its folder. Nothing listens at its port. */
export function newState(): EmulatorState {
  return {
    baseUrl: 'https://127.0.0.1:1',
    clientSecret: 'a',
    callbackToken: 'b',
    pageUrl: 'http://127.0.0.1:1/x/',
    ...createLoopbackCertificate(),
  }
}

/** A new folder, which is removed after the test. */
export async function folderOfTest(): Promise<string> {
  const folder = await temporaryFolder()
  onTestFinished(() => folder[Symbol.asyncDispose]())
  return folder.path
}
