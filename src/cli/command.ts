/** The interface of a command, and the helpers that read its flags, and the files and variables that they name. */
import { createReadStream } from 'node:fs'
import { type ParseArgsConfig, parseArgs, parseEnv } from 'node:util'
import type { Environment } from '../client/environment.js'
import { readUpTo } from '../shared/bounded-bytes.js'
import { headerName, headerValue } from '../shared/headers.js'
import { certificatesIn, didYouMean, messageOf } from '../shared/text.js'
import type { Terminal } from './terminal.js'

export interface Command {
  /** Printed for `--help`. */
  readonly help: string
  /**
   * Resolves with the exit code: 0, or 1 if a step failed.
   *
   * @throws `CommandFailure` with another exit code
   */
  run(args: string[], context: CommandContext): Promise<number>
}

export interface CommandContext {
  readonly terminal: Terminal
  readonly env: Environment
}

/** A device such as /dev/zero never ends. */
const maxBytes = 1024 * 1024

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

type FlagTypes = NonNullable<ParseArgsConfig['options']>
type Arguments<Types extends FlagTypes> = ReturnType<
  typeof parseArgs<{ args: string[]; options: Types; allowPositionals: true }>
>

/**
 * The flags that a command was called with.
 *
 * @param flagTypes - the flags that the command knows
 * @throws `UsageError` for an unknown flag, a wrong value, or a value without a flag; the message names the command's help
 */
export function readFlags<const Types extends FlagTypes>(
  command: string,
  args: string[],
  flagTypes: Types,
): Arguments<Types>['values'] {
  const { values, positionals } = readArguments(command, args, flagTypes)
  const [stray] = positionals
  if (stray === undefined) return values
  throw new UsageError(`"${stray}" is not the value of a flag. ${seeHelp(command)}`)
}

/**
 * The flags that a command was called with, and the values without a flag, such as an ID.
 *
 * @throws as {@link readFlags}, except for a value without a flag
 */
export function readArguments<const Types extends FlagTypes>(
  command: string,
  args: string[],
  flagTypes: Types,
): Pick<Arguments<Types>, 'values' | 'positionals'> {
  // An ID may be negative, and no flag takes a negative number.
  const isNegative = (arg: string) => /^-\d+$/.test(arg)
  try {
    const { values, positionals } = parseArgs({
      args: [...args.filter((arg) => !isNegative(arg)), '--', ...args.filter(isNegative)],
      options: flagTypes,
      allowPositionals: true,
    })
    // Usually an unset shell variable: as a path it would be the current folder.
    const empty = Object.entries(values).find(([, value]) => [value].flat().includes(''))
    if (empty === undefined) return { values, positionals }
    throw new UsageError(`--${empty[0]} is empty: give it a value, or leave it out`)
  } catch (error) {
    const { code = '', message = '' }: { code?: string; message?: string } = Object(error)
    if (!code.startsWith('ERR_PARSE_ARGS')) throw error
    const problem = flagProblem(code, message, Object.keys(flagTypes))
    throw new UsageError(`${problem}. ${seeHelp(command)}`)
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

/** The problem of the flags, from Node.js' own message without its advice, which does not fit here. */
function flagProblem(code: string, message: string, known: readonly string[]): string {
  const [, given = ''] = /'([^']*)'/.exec(message) ?? []
  switch (code) {
    case 'ERR_PARSE_ARGS_UNKNOWN_OPTION':
      return `There is no flag ${given}${didYouMean(given.replace(/^-+/, ''), known, (flag) => `--${flag}`)}`
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
    if (isComplete) return new TextDecoder(encodingOf(bytes)).decode(bytes)
  } catch (error) {
    throw new UsageError(`${flag} names a file that cannot be read: ${messageOf(error)}`)
  }
  throw new UsageError(`${flag} names a file larger than 1 MiB: name another file`)
}

/** By the byte order mark, which editors and shells of Windows write. */
function encodingOf([first, second]: Uint8Array): string {
  if (first === 0xff && second === 0xfe) return 'utf-16le'
  return first === 0xfe && second === 0xff ? 'utf-16be' : 'utf-8'
}

/**
 * The certificates in the file that a flag names, or nothing if the flag is not given.
 *
 * @throws `UsageError` for a file that cannot be read, or holds no certificate
 */
export async function certificatesOf(flag: string, file: string | undefined): Promise<string | undefined> {
  const text = await contentOf(flag, file)
  if (text === undefined || certificatesIn(text).length > 0) return text
  throw new UsageError(`${flag} names a file that holds no PEM certificate (-----BEGIN CERTIFICATE-----)`)
}

/**
 * The variables of a command: those of the environment come first, then those of the file that `--dotenv` names.
 *
 * @throws `UsageError` for a file that cannot be read
 */
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
