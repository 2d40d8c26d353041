/** A mistake in how a command was called, or in what it was called with: one sentence, and exit code 2. */
import { type ParseArgsConfig, parseArgs } from 'node:util'
import { didYouMean } from '../shared/nearest-name.js'

export class UsageError extends Error {}

/**
 * The flags that a command was called with.
 *
 * @param flagTypes - those that it knows
 * @throws `UsageError` for what it does not know, in a sentence that names the command's help
 */
export function readFlags<const FlagTypes extends NonNullable<ParseArgsConfig['options']>>(
  command: string,
  args: string[],
  flagTypes: FlagTypes,
): ReturnType<typeof parseArgs<{ args: string[]; options: FlagTypes }>>['values'] {
  try {
    return parseArgs({ args, options: flagTypes }).values
  } catch (error) {
    const { code = '', message = '' }: { code?: string; message?: string } = Object(error)
    if (!code.startsWith('ERR_PARSE_ARGS')) throw error
    const problem = problemOf(code, message, Object.keys(flagTypes))
    throw new UsageError(`${problem}. See: notification-subscriber ${command} --help`)
  }
}

/** What is wrong with the flags, read from Node.js' own message: the advice in that leads nowhere here. */
function problemOf(code: string, message: string, known: readonly string[]): string {
  const [, given = ''] = /'([^']*)'/.exec(message) ?? []
  switch (code) {
    case 'ERR_PARSE_ARGS_UNKNOWN_OPTION':
      return `There is no flag ${given}${didYouMean(given.replace(/^-+/, ''), known, (flag) => `--${flag}`)}`
    case 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL':
      return `"${given}" belongs to no flag`
    case 'ERR_PARSE_ARGS_INVALID_OPTION_VALUE':
      return `${given.split(' ')[0]} ${message.includes('does not take') ? 'takes no value' : 'needs a value'}`
    default:
      return message.split('\n')[0]?.replace(/\.$/, '') ?? message
  }
}

/**
 * The port that a flag names, or nothing where the flag was not given.
 *
 * @throws `UsageError` for a text that is no port
 */
export function portOf(flag: string, text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw new UsageError(`${flag} must be a port number, 0 to 65535: 0 for any free one`)
}
