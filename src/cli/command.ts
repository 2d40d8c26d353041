/** What every command is. */
import type { Terminal } from './terminal.js'

/** The world around a command, which tests of a command as a process set. */
export interface Surroundings {
  readonly terminal: Terminal
  readonly env: Readonly<Record<string, string | undefined>>
}

export interface Command {
  /** Printed for `--help`. */
  readonly help: string
  /** Resolves with the exit code: 0, or 1 if something is not as it should be. Rejects with `UsageError`: 2. */
  run(args: string[], surroundings: Surroundings): Promise<number>
}
