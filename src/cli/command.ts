/** What commands share: how they fail, and the files and variables that flags name. */
import { readFile } from 'node:fs/promises'
import { parseEnv } from 'node:util'
import type { Environment } from '../client/environment.js'
import { certificatesIn } from '../shared/certificates.js'
import { headerName, headerValue } from '../shared/headers.js'
import { messageOf } from '../shared/text.js'
import type { Terminal } from './terminal.js'

/** The flags of every command; `dotenv` only of those that read variables. */
export interface SharedFlags {
  readonly json?: true
  readonly dotenv?: string
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

/** The text of the file, if one is named. @throws `UsageError` if it cannot be read */
async function textOf(flag: string, file: string | undefined): Promise<string | undefined> {
  if (file === undefined) return undefined
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    throw new UsageError(`${flag} names a file that cannot be read: ${messageOf(error)}`)
  })
  // Editors of Windows begin a file with the mark of UTF-8, which would belong to the first name.
  return text.replace(/^\ufeff/, '')
}

/** The certificates in the file, if one is named. @throws `UsageError` if it cannot be read, or holds no certificate */
export async function certificatesOf(flag: string, file: string | undefined): Promise<string | undefined> {
  const text = await textOf(flag, file)
  if (text === undefined || certificatesIn(text).length > 0) return text
  throw new UsageError(`${flag} names a file that holds no PEM certificate (-----BEGIN CERTIFICATE-----)`)
}

/** Variables of the environment come first, then those of the file. @throws `UsageError` if it cannot be read */
export async function variablesOf(dotenv: string | undefined, env: Environment): Promise<Environment> {
  return { ...parseEnv((await textOf('--dotenv', dotenv)) ?? ''), ...env }
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
        `${flag} must be NAME=@FILE or NAME=env:VARIABLE, the name of a header and where its value is, because other users ` +
          'of this machine can see a command line',
      )
    }
    if (pairs.some(([other]) => other.toLowerCase() === name.toLowerCase())) {
      throw new UsageError(`${flag} names ${name} twice: leave one out`)
    }
    // Editors end a file with a line break.
    const value = file === undefined ? env[variable] : (await textOf(flag, file))?.replace(/\r?\n$/, '')
    // The name of the variable is not repeated: it may be the value, which a shell put there.
    if (value === undefined)
      throw new UsageError(
        `${flag} ${name}: its variable is not set: write its name, without $, or name the file that sets it with --dotenv`,
      )
    if (!headerValue.test(value) || value === '') {
      const source = file === undefined ? 'variable' : 'file'
      throw new UsageError(`${flag} ${name}: its ${source} must hold one line that can be sent in a header`)
    }
    pairs.push([name, value])
  }
  return Object.fromEntries(pairs)
}
