/** An example as a process that can be killed, stopped and started again. */
import { fileURLToPath } from 'node:url'
import { RunningProgram } from '../../../support/running-program.js'

const folder = fileURLToPath(new URL('../../../..', import.meta.url))

export class Program implements AsyncDisposable {
  readonly name: string
  readonly #start: () => RunningProgram
  #running: RunningProgram | undefined

  constructor(
    name: string,
    file: string,
    variables: Readonly<Record<string, string>>,
    onLine: (line: string) => void,
  ) {
    this.name = name
    this.#start = () =>
      new RunningProgram(['--import', 'tsx', `examples/${file}`], { folder, variables, onLine })
  }

  /** Resolves when the program has printed its first line. */
  async start(): Promise<void> {
    this.#running = this.#start()
    await this.#running.line(/^/)
  }

  stop(): void {
    this.#running?.kill('SIGSTOP')
  }

  resume(): void {
    this.#running?.kill('SIGCONT')
  }

  /** Ends the process at once; resolves when everything that it printed is read. */
  async kill(): Promise<void> {
    await this.#running?.[Symbol.asyncDispose]()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.kill()
  }
}
