/** A program in a process of its own, whose lines are read. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import type { Readable } from 'node:stream'
import { vi } from 'vitest'
import { environmentWith } from '../consumers/support/run.js'

export interface ProgramOptions {
  readonly folder: string
  /** In place of Node.js. */
  readonly command?: string
  /** Added to the environment of the tests. */
  readonly variables?: Readonly<Record<string, string>>
  /** In place of the environment of the tests. */
  readonly environment?: NodeJS.ProcessEnv
  /** Gets every line that it prints, at once. */
  readonly onLine?: (line: string) => void
}

export class RunningProgram implements AsyncDisposable {
  readonly lines: string[] = []
  readonly errors: string[] = []
  /** Resolves with the exit code, or the name of the signal, when all that was printed is read. */
  readonly ended: Promise<number | string | null>
  readonly child: ChildProcessByStdio<null, Readable, Readable>
  #hasEnded = false

  /** @param args - of Node.js, or of the command. `--import tsx FILE` is what `tsx FILE` starts; that kills who does not end within 60 ms */
  constructor(args: readonly string[], { folder, onLine = () => {}, ...options }: ProgramOptions) {
    const child = spawn(options.command ?? process.execPath, args, {
      cwd: folder,
      env: options.environment ?? environmentWith(options.variables ?? {}),
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own, so that its children can be killed with it.
      detached: true,
    })
    const noteTo = (lines: string[]) => (line: string) => {
      lines.push(line)
      onLine(line)
    }
    createInterface(child.stdout).on('line', noteTo(this.lines))
    createInterface(child.stderr).on('line', noteTo(this.errors))
    this.child = child
    const endWithUs = () => this.kill('SIGKILL')
    process.once('exit', endWithUs)
    this.ended = new Promise((resolve, reject) => {
      child.on('error', reject).on('close', (code, signal) => {
        this.#hasEnded = true
        process.off('exit', endWithUs)
        resolve(code ?? signal)
      })
    })
  }

  /** Waits until a line of the output matches, and returns the line. */
  async line(pattern: RegExp): Promise<string> {
    return vi.waitUntil(
      () => {
        const line = this.lines.find((each) => pattern.test(each))
        if (line === undefined && this.#hasEnded) {
          throw new Error(`The program ended:\n${[...this.lines, ...this.errors].join('\n')}`)
        }
        return line
      },
      { timeout: 60_000 },
    )
  }

  kill(signal: NodeJS.Signals): void {
    const { pid } = this.child
    if (!this.#hasEnded && pid !== undefined) process.kill(-pid, signal)
  }

  /** As Ctrl-C does. Resolves when the program has ended. */
  interrupt(): Promise<number | string | null> {
    this.child.kill('SIGINT')
    return this.ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.kill('SIGKILL')
    await this.ended
  }
}
