/** Commands: their flags, and the files and variables that these name. */
import { readFile } from 'node:fs/promises'
import { type ParseArgsConfig, parseArgs, parseEnv } from 'node:util'
import type { Environment } from '../client/environment.js'
import { certificatesIn } from '../shared/certificates.js'
import { headerName, headerValue } from '../shared/headers.js'
import { messageOf } from '../shared/text.js'
import type { Terminal } from './terminal.js'

export interface Command {
  /** Printed for `--help`. */
  readonly help: string
  /** Resolves with the exit code: 0, or 1 if a step failed. @throws `CommandFailure` with another exit code */
  run(args: string[], context: CommandContext): Promise<number>
}

export interface CommandContext {
  readonly terminal: Terminal
  readonly env: Environment
}

/** A command ends without success. The message is printed on standard error. */
export class CommandFailure extends Error {
  readonly exitCode: number

  constructor(message: string, exitCode = 1) {
    super(message)
    this.exitCode = exitCode
  }
}

/** A command cannot run with these flags. The message is one sentence. */
export class UsageError extends CommandFailure {
  constructor(message: string) {
    super(message, 2)
  }
}

/** The names of a command's flags, by their values. Every command has the switch `json`. */
interface FlagNames {
  readonly texts?: readonly string[]
  /** May be given several times. */
  readonly lists?: readonly string[]
  /** Have no value. */
  readonly switches?: readonly string[]
}

type NamesOf<Names, Kind extends string> =
  Names extends Readonly<Record<Kind, readonly (infer Name extends string)[]>> ? Name : never

/** The flags that a command was called with. */
export type Flags<Names extends FlagNames> = Partial<
  Record<NamesOf<Names, 'texts'>, string> &
    Record<NamesOf<Names, 'lists'>, string[]> &
    Record<NamesOf<Names, 'switches'>, boolean>
>

/** Makes a command. With a flag `dotenv`, `env` has the variables of that file, too, except those of the environment. */
export function commandOf<const Names extends FlagNames>(definition: {
  readonly name: string
  readonly help: string
  readonly flags: Names
  /** Whether there may be values without a flag. */
  readonly takesWords?: boolean
  readonly run: (
    given: CommandContext & { readonly flags: Flags<Names>; readonly words: readonly string[] },
  ) => Promise<number>
}): Command {
  const { name, help, takesWords } = definition
  return {
    help,
    async run(args, { terminal, env }) {
      const { flags, words } = readArguments(name, args, definition.flags)
      const [stray] = takesWords ? [] : words
      if (stray !== undefined) throw new UsageError(`"${stray}" is not the value of a flag. ${seeHelp(name)}`)
      const { dotenv }: { dotenv?: string } = flags
      return definition.run({ flags, words, terminal, env: await variablesOf(dotenv, env) })
    },
  }
}

/** @throws `UsageError` for an unknown flag or a wrong value; the message names the command's help */
export function readArguments<Names extends FlagNames>(
  command: string,
  args: string[],
  { texts = [], lists = [], switches = [] }: Names,
): { flags: Flags<Names>; words: readonly string[] } {
  const options: NonNullable<ParseArgsConfig['options']> = { json: { type: 'boolean' } }
  for (const name of texts) options[name] = { type: 'string' }
  for (const name of lists) options[name] = { type: 'string', multiple: true }
  for (const name of switches) options[name] = { type: 'boolean' }
  try {
    const { values, positionals: words } = parseArgs({ args, options, allowPositionals: true })
    // Usually an unset shell variable: as a path it would be the current folder.
    const empty = Object.entries(values).find(([, value]) => [value].flat().includes(''))
    if (empty === undefined) return { flags: values as Flags<Names>, words }
    throw new UsageError(`--${empty[0]} is empty: give it a value, or leave it out`)
  } catch (error) {
    const { code = '', message = '' }: { code?: string; message?: string } = Object(error)
    if (!code.startsWith('ERR_PARSE_ARGS')) throw error
    // Without Node.js' advice, which does not fit here.
    throw new UsageError(`${message.split(/[.\n]/)[0]}. ${seeHelp(command)}`)
  }
}

/** @throws `UsageError` if the flag is not given; `advice` is the rest of its sentence */
export function required<Value>(flag: string, value: Value | undefined, advice: string): Value {
  if (value !== undefined) return value
  throw new UsageError(`${flag} is missing: ${advice}`)
}

function seeHelp(command: string): string {
  return `See: notification-subscriber ${command} --help`
}

/** The text of the file, if one is named. @throws `UsageError` if it cannot be read */
async function contentOf(flag: string, file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined
  return readFile(file, 'utf8').catch((error: unknown) => {
    throw new UsageError(`${flag} names a file that cannot be read: ${messageOf(error)}`)
  })
}

/** The certificates in the file, if one is named. @throws `UsageError` if it cannot be read, or holds no certificate */
export async function certificatesOf(flag: string, file: string | undefined): Promise<string | undefined> {
  const text = await contentOf(flag, file)
  if (text === undefined || certificatesIn(text).length > 0) return text
  throw new UsageError(`${flag} names a file that holds no PEM certificate (-----BEGIN CERTIFICATE-----)`)
}

/** Variables of the environment come first, then those of the file. @throws `UsageError` if it cannot be read */
export async function variablesOf(dotenv: string | undefined, env: Environment): Promise<Environment> {
  return { ...parseEnv((await contentOf('--dotenv', dotenv)) ?? ''), ...env }
}

/**
 * Names with values that other users of this machine cannot see, as they see a command line: each text is `NAME=@FILE` or
 * `NAME=env:VARIABLE`.
 *
 * @throws `UsageError` for another text, and for a name or value that cannot be sent in a header
 */
export async function namedValuesOf(
  flag: string,
  texts: readonly string[] = [],
  env: Environment,
): Promise<Record<string, string>> {
  const pairs: [name: string, value: string][] = []
  for (const text of texts) {
    const [, name = '', file, variable = ''] = /^([^=]*)=(?:@(.*)|env:(.*))$/s.exec(text) ?? []
    if (!headerName.test(name)) {
      throw new UsageError(
        `${flag} must be NAME=@FILE or NAME=env:VARIABLE, the name of a header and where its value is: other users of ` +
          'this machine can see a command line',
      )
    }
    if (pairs.some(([other]) => other.toLowerCase() === name.toLowerCase())) {
      throw new UsageError(`${flag} names ${name} twice: leave one out`)
    }
    // Editors end a file with a line break.
    const value = file === undefined ? env[variable] : (await contentOf(flag, file))?.replace(/\r?\n$/, '')
    // The name of the variable is not repeated: it may be the value, which a shell put there.
    if (value === undefined)
      throw new UsageError(`${flag} ${name}: its variable is not set: write its name, without $`)
    if (!headerValue.test(value) || value === '') {
      const source = file === undefined ? 'variable' : 'file'
      throw new UsageError(`${flag} ${name}: its ${source} must hold one line that can be sent in a header`)
    }
    pairs.push([name, value])
  }
  return Object.fromEntries(pairs)
}
