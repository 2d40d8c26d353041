/** A program of its own process that can be killed, stopped and started again, and whose lines are read. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../..', import.meta.url))

export class Program implements AsyncDisposable {
  readonly name: string
  readonly #file: string
  readonly #env: Readonly<Record<string, string>>
  readonly #onLine: (line: string) => void
  #child: ChildProcess | undefined

  /** @param file from the root of the repository */
  constructor(
    name: string,
    file: string,
    env: Readonly<Record<string, string>>,
    onLine: (line: string) => void = () => {},
  ) {
    this.name = name
    this.#file = file
    this.#env = env
    this.#onLine = onLine
  }

  /** Resolves when the program has printed its first line. */
  async start(): Promise<void> {
    const child = spawn(process.execPath, ['--import', 'tsx', this.#file], {
      cwd: root,
      env: { ...process.env, ...this.#env },
      stdio: ['ignore', 'pipe', 'pipe'],
    })
    this.#child = child
    const endWithUs = () => void child.kill('SIGKILL')
    process.once('exit', endWithUs)
    child.once('exit', () => process.off('exit', endWithUs))
    const errors: string[] = []
    createInterface(child.stderr).on('line', (line) => {
      errors.push(line)
      this.#onLine(line)
    })
    const lines = createInterface(child.stdout)
    lines.on('line', (line) => this.#onLine(line))
    await Promise.race([
      once(lines, 'line'),
      once(child, 'exit').then(([code, signal]) => {
        // A process that is killed while it starts is no fault.
        if (signal !== 'SIGKILL') throw new Error(`${this.name} ended (${code}):\n${errors.join('\n')}`)
      }),
    ])
  }

  stop(): void {
    this.#child?.kill('SIGSTOP')
  }

  resume(): void {
    this.#child?.kill('SIGCONT')
  }

  /** Asks the process to end; resolves when everything that it printed is read. */
  end(): Promise<void> {
    return this.kill('SIGTERM')
  }

  /** Ends the process at once; resolves when everything that it printed is read. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
    const child = this.#child
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const closed = once(child, 'close')
    child.kill(signal)
    await closed
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }
}
