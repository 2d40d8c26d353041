/** The file of `--write-env`: the emulator's variables are a block in the file, and all other lines stay as they are. */
import { access, constants, realpath, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { messageOf } from '../shared/text.js'
import { UsageError } from './command.js'
import { readPrivateFile, writePrivateFile } from './private-file.js'

const firstLine = '# Written by notification-subscriber emulator, anew at each start:'
const lastLine = '# End of what notification-subscriber emulator wrote.'

export type Variables = Readonly<Record<string, string>>

export class EnvFile {
  readonly path: string

  private constructor(path: string) {
    this.path = path
  }

  /**
   * Checks that the emulator can write there, before it starts.
   *
   * @throws `UsageError` for what is no regular file, belongs to another user, or sets `NOTIFICATION_*` itself
   */
  static async open(file: string): Promise<EnvFile> {
    const envFile = new EnvFile(await targetOf(resolve(file)))
    await envFile.#read()
    try {
      // The file is replaced, so its folder must be writable.
      await access(dirname(envFile.path), constants.W_OK)
    } catch (error) {
      throw new UsageError(`--write-env names ${envFile.path}, which cannot be written: ${messageOf(error)}`)
    }
    return envFile
  }

  /**
   * Replaces the block, or adds it at the end. A variable that the file sets itself, such as `CALLBACK_TOKEN`, is left out.
   *
   * @throws `UsageError` if the file cannot be written, or another program has set `NOTIFICATION_*` in it meanwhile
   */
  async write(variables: Variables): Promise<void> {
    const { before, after, names } = await this.#read()
    const missing = Object.entries(variables).filter(([name]) => !names.includes(name))
    const block = [firstLine, ...envLines(Object.fromEntries(missing)), lastLine]
    await writePrivateFile(this.path, [...before, ...block, ...after].join('\n'))
  }

  /** The lines of others before and after the block, and the names of the variables that those lines set. */
  async #read(): Promise<{ before: string[]; after: string[]; names: string[] }> {
    const text = await readPrivateFile(this.path)
    if (!text) return { before: [], after: [''], names: [] }
    const lines = text.split('\n')
    const start = lines.findIndex((line) => line.trimEnd() === firstLine)
    const end = lines.findIndex((line) => line.trimEnd() === lastLine)
    if (start === -1 ? end !== -1 : end < start) {
      throw new UsageError(
        `${this.path} has only one of the two comments around the lines of an emulator: ` +
          'delete those lines and the comment',
      )
    }
    const names: string[] = []
    for (const [index, line] of lines.entries()) {
      if (start !== -1 && index >= start && index <= end) continue
      const [, name] = /^\s*(?:export\s+)?(\w+)\s*=/.exec(line) ?? []
      if (name?.startsWith('NOTIFICATION_')) {
        throw new UsageError(
          `${this.path} sets ${name} in line ${index + 1}, which no emulator wrote: ` +
            'delete the line, or name another file in --write-env',
        )
      }
      if (name !== undefined) names.push(name)
    }
    if (start !== -1) return { before: lines.slice(0, start), after: lines.slice(end + 1), names }
    // An empty line separates the other lines from the block.
    return { before: lines.at(-1) === '' ? lines : [...lines, ''], after: [''], names }
  }
}

/** A line for each variable, as `node --env-file`, dotenv and shells read it. */
export function envLines(variables: Variables): string[] {
  return Object.entries(variables).map(([name, value]) => `${name}=${quoted(value)}`)
}

function quoted(value: string): string {
  if (/^[\w./:@%+=,-]*$/.test(value)) return value
  return value.includes("'") ? `"${value}"` : `'${value}'`
}

/** The file behind a symbolic link: the file is replaced, and the link must stay. */
async function targetOf(path: string): Promise<string> {
  let target: string
  let uid: number
  try {
    target = await realpath(path)
    uid = (await stat(target)).uid
  } catch {
    // Usually there is no such file yet. Anything else is reported when the file is read.
    return path
  }
  if (process.platform === 'win32' || uid === process.getuid?.()) return target
  throw new UsageError(`--write-env names ${path}, which belongs to another user: name another file`)
}
