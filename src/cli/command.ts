/** The interface of a command, and the helpers that read its flags and the files that they name. */
import { createReadStream } from 'node:fs'
import { type ParseArgsConfig, parseArgs } from 'node:util'
import type { Environment } from '../client/environment.js'
import { readUpTo } from '../shared/bounded-bytes.js'
import { didYouMean, messageOf } from '../shared/text.js'
import type { Terminal } from './terminal.js'

export interface Command {
  /** Printed for `--help`. */
  readonly help: string
  /**
   * Resolves with the exit code: 0, or 1 if a step failed.
   *
   * @throws `UsageError` if the command cannot run: exit code 2
   */
  run(args: string[], context: CommandContext): Promise<number>
}

export interface CommandContext {
  readonly terminal: Terminal
  readonly env: Environment
}

/** A device such as /dev/zero never ends. */
const maxBytes = 1024 * 1024

/** A command cannot run with these flags. The message is one sentence, which is printed. */
export class UsageError extends Error {}

/**
 * The flags that a command was called with.
 *
 * @param flagTypes - the flags that the command knows
 * @throws `UsageError` for an unknown flag or a wrong value; the message names the command's help
 */
export function readFlags<const FlagTypes extends NonNullable<ParseArgsConfig['options']>>(
  command: string,
  args: string[],
  flagTypes: FlagTypes,
): ReturnType<typeof parseArgs<{ args: string[]; options: FlagTypes }>>['values'] {
  try {
    const { values } = parseArgs({ args, options: flagTypes })
    // Usually an unset shell variable: as a path it would be the current folder.
    const empty = Object.entries(values).find(([, value]) => [value].flat().includes(''))
    if (empty === undefined) return values
    throw new UsageError(`--${empty[0]} is empty: give it a value, or leave it out`)
  } catch (error) {
    const { code = '', message = '' }: { code?: string; message?: string } = Object(error)
    if (!code.startsWith('ERR_PARSE_ARGS')) throw error
    const problem = flagProblem(code, message, Object.keys(flagTypes))
    throw new UsageError(`${problem}. See: notification-subscriber ${command} --help`)
  }
}

/** The problem of the flags, from Node.js' own message without its advice, which does not fit here. */
function flagProblem(code: string, message: string, known: readonly string[]): string {
  const [, given = ''] = /'([^']*)'/.exec(message) ?? []
  switch (code) {
    case 'ERR_PARSE_ARGS_UNKNOWN_OPTION':
      return `There is no flag ${given}${didYouMean(given.replace(/^-+/, ''), known, (flag) => `--${flag}`)}`
    case 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL':
      return `"${given}" is not the value of a flag`
    case 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE':
      return `${given.split(' ')[0]} ${message.includes('does not take') ? 'takes no value' : 'needs a value'}`
    default:
      return message.split('\n')[0]?.replace(/\.$/, '') ?? message
  }
}

/**
 * The text of the file that a flag names, or nothing if the flag is not given.
 *
 * @throws `UsageError` for a file that cannot be read, or is larger than 1 MiB
 */
export async function contentOf(flag: string, file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined
  try {
    const { bytes, isComplete } = await readUpTo(maxBytes, createReadStream(file))
    if (isComplete) return Buffer.from(bytes).toString('utf8')
  } catch (error) {
    throw new UsageError(`${flag} names a file that cannot be read: ${messageOf(error)}`)
  }
  throw new UsageError(`${flag} names a file larger than 1 MiB: name another file`)
}
