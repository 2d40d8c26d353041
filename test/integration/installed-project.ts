/** A user's project: `npm init -y`, the packed package installed, and the examples copied into it. */
import { cp, mkdtemp, readdir, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { pack, run } from '../consumers/support/run.js'
import { RunningProgram } from '../support/running-program.js'

const root = fileURLToPath(new URL('../..', import.meta.url))

/** What the examples ask to install besides the package: links, because the installed versions are the tested ones. */
const linked = ['tsx', 'bullmq', 'ioredis', 'prom-client', '@opentelemetry']

export class InstalledProject implements AsyncDisposable {
  readonly folder: string
  /** What `npm init -y` wrote. */
  readonly manifest: { readonly type?: string }

  private constructor(folder: string, manifest: { readonly type?: string }) {
    this.folder = folder
    this.manifest = manifest
  }

  /** Needs `npm run build`. */
  static async make(): Promise<InstalledProject> {
    const folder = await mkdtemp(join(tmpdir(), 'installed-project-'))
    await run('npm', ['init', '-y'], folder)
    const manifest = JSON.parse(await readFile(join(folder, 'package.json'), 'utf8'))
    await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', await pack(folder)], folder)
    const modules = join(folder, 'node_modules')
    for (const name of linked) await symlink(join(root, 'node_modules', name), join(modules, name))
    // From the installed package, where its users find them.
    const examples = join(modules, 'notification-subscriber/examples')
    for (const file of await readdir(examples)) await cp(join(examples, file), join(folder, file))
    return new InstalledProject(folder, manifest)
  }

  read(file: string): Promise<string> {
    return readFile(join(this.folder, file), 'utf8')
  }

  /** As `npx tsx FILE` does. */
  start(file: string, variables: Readonly<Record<string, string>> = {}): RunningProgram {
    return new RunningProgram(['--import', 'tsx', file], { folder: this.folder, variables })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }
}
