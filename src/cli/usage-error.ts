/** A mistake in how a command was called, or in what it was called with: one sentence, and exit code 2. */

export class UsageError extends Error {}

/** Runs a reader of flags; what it refuses becomes a sentence that names the command's help. */
export function readFlags<Flags>(command: string, read: () => Flags): Flags {
  try {
    return read()
  } catch (error) {
    const { code = '', message = '' }: { code?: string; message?: string } = Object(error)
    if (!code.startsWith('ERR_PARSE_ARGS')) throw error
    throw new UsageError(`${problemOf(code, message)}. See: notification-subscriber ${command} --help`)
  }
}

/** What is wrong with the flags. Of Node.js' own message the first line only: its advice leads nowhere here. */
function problemOf(code: string, message: string): string {
  const [, given = ''] = /'([^']*)'/.exec(message) ?? []
  switch (code) {
    case 'ERR_PARSE_ARGS_UNKNOWN_OPTION':
      return `There is no flag ${given}`
    case 'ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL':
      return `"${given}" belongs to no flag`
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
