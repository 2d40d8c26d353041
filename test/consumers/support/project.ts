/** Throw-away projects that consume the installed package. */
import { cp, mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { inject } from 'vitest'
import { run } from './run.js'

const programs = fileURLToPath(new URL('../programs', import.meta.url))

/** What each program prints at its end. */
export const end = 'The story is over'

/** A new folder with the named programs in it, below one that has the package installed. */
export async function project(files: readonly string[], parent: string = inject('bare')): Promise<string> {
  const folder = await mkdtemp(join(parent, 'project-'))
  for (const file of files) await cp(join(programs, file), join(folder, file))
  return folder
}

export async function writeJson(folder: string, file: string, value: unknown): Promise<void> {
  await writeFile(join(folder, file), JSON.stringify(value, null, 2))
}

/** Path of something inside the tools' `node_modules`. */
export function tool(path: string): string {
  return join(inject('workspace'), 'node_modules', path)
}

/** Runs a program with the Node.js that runs the tests. */
export function node(folder: string, ...args: string[]): Promise<string> {
  return run(process.execPath, args, folder)
}
