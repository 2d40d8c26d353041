/** A user's project: `npm init -y`, the packed package installed, and the examples copied into it. */
import { cp, readFile, symlink } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pack, run } from '../consumers/support/run.js'
import { RunningProgram } from '../support/running-program.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** What the examples ask to install besides the package: links, because the installed versions are the tested ones. */
const linked = ['tsx', 'bullmq', 'ioredis', 'prom-client', '@opentelemetry']

/** Needs `npm run build`. */
export async function installedProject() {
  const temporary = await temporaryFolder()
  const folder = temporary.path
  await run('npm', ['init', '-y'], folder)
  const manifest: { readonly type?: string } = JSON.parse(
    await readFile(join(folder, 'package.json'), 'utf8'),
  )
  await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', await pack(folder)], folder)
  const modules = join(folder, 'node_modules')
  for (const name of linked) await symlink(join(root, 'node_modules', name), join(modules, name))
  // From the installed package, where its users find them.
  await cp(join(modules, 'notification-subscriber/examples'), folder, { recursive: true })
  return {
    folder,
    /** What `npm init -y` wrote. */
    manifest,
    read: (file: string) => readFile(join(folder, file), 'utf8'),
    /** As `npx tsx FILE` does. */
    start: (file: string, variables: Readonly<Record<string, string>> = {}) =>
      new RunningProgram(['--import', 'tsx', file], { folder, variables }),
    [Symbol.asyncDispose]: () => temporary[Symbol.asyncDispose](),
  }
}
