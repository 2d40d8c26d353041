/** The file of `--write-env`: it belongs to the emulator, which writes the file anew at each start. */
import { access, constants, realpath } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { messageOf } from '../shared/text.js'
import { UsageError } from './command.js'
import { readPrivateFile, writePrivateFile } from './private-file.js'

const firstLine = '# Written by notification-subscriber emulator, anew at each start.'

export type Variables = Readonly<Record<string, string>>

/** The path, if the emulator can write there. @throws `UsageError` also for a file with lines that no emulator wrote */
export async function envFileAt(file: string): Promise<string> {
  // The file is replaced, and a symbolic link must stay one. Usually there is no such file yet.
  const path = await realpath(file).catch(() => resolve(file))
  const text = await readPrivateFile(path)
  if (text && !text.startsWith(firstLine)) {
    throw new UsageError(
      `--write-env names ${path}, which has lines that no emulator wrote: name a file of its own, such as ` +
        'emulator.env, and give node both files: --env-file=.env --env-file=emulator.env',
    )
  }
  await access(dirname(path), constants.W_OK).catch((error: unknown) => {
    throw new UsageError(`--write-env names ${path}, which cannot be written: ${messageOf(error)}`)
  })
  return path
}

/** @throws `UsageError` if the file cannot be written */
export async function writeEnvFile(path: string, variables: Variables): Promise<void> {
  await writePrivateFile(path, [firstLine, ...envLines(variables), ''].join('\n'))
}

/** A line for each variable, as `node --env-file`, dotenv and shells read it. */
export function envLines(variables: Variables): string[] {
  return Object.entries(variables).map(([name, value]) => `${name}=${quoted(value)}`)
}

function quoted(value: string): string {
  if (/^[\w./:@%+=,-]*$/.test(value)) return value
  return value.includes("'") ? `"${value}"` : `'${value}'`
}
