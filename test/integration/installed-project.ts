/** A user's project: `npm init -y`, the packed package installed, and the examples copied into it. */
import { type ChildProcess, spawn } from 'node:child_process'
import { cp, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { vi } from 'vitest'
import { environmentWith, run } from '../consumers/support/run.js'

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
    const packed = await run('npm', ['pack', '--silent', '--pack-destination', folder], root)
    const tarball = join(folder, packed.trim().split('\n').at(-1) ?? '')
    await run('npm', ['install', '--ignore-scripts', '--no-audit', '--no-fund', tarball], folder)
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

  write(file: string, text: string): Promise<void> {
    return writeFile(join(this.folder, file), text)
  }

  /** As `npx tsx FILE` does. */
  start(file: string, variables: Readonly<Record<string, string>> = {}): RunningExample {
    return new RunningExample(this.folder, file, variables)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.folder, { recursive: true, force: true })
  }
}

export class RunningExample implements AsyncDisposable {
  readonly lines: string[] = []
  readonly errors: string[] = []
  /** Resolves with the exit code, or the name of the signal, when all that was printed is read. */
  readonly ended: Promise<number | string | null>
  readonly #file: string
  readonly #child: ChildProcess
  #hasEnded = false

  constructor(folder: string, file: string, variables: Readonly<Record<string, string>>) {
    // What `tsx FILE` starts. That command kills a program that does not answer Ctrl-C within 60 ms.
    const child = spawn(process.execPath, ['--import', 'tsx', file], {
      cwd: folder,
      env: environmentWith(variables),
      stdio: ['ignore', 'pipe', 'pipe'],
      // A group of its own, so that its children can be killed with it.
      detached: true,
    })
    createInterface(child.stdout).on('line', (line) => this.lines.push(line))
    createInterface(child.stderr).on('line', (line) => this.errors.push(line))
    this.#file = file
    this.#child = child
    this.ended = new Promise((resolve, reject) => {
      child.on('error', reject).on('close', (code, signal) => {
        this.#hasEnded = true
        resolve(code ?? signal)
      })
    })
  }

  /** Waits until a line of the output matches, and returns the line. */
  async line(pattern: RegExp): Promise<string> {
    return vi.waitUntil(
      () => {
        const line = this.lines.find((each) => pattern.test(each))
        if (line === undefined && this.#hasEnded) throw new Error(`${this.#file} ended:\n${this.#printed()}`)
        return line
      },
      { timeout: 60_000 },
    )
  }

  /** As Ctrl-C does; resolves when the program has ended. */
  interrupt(): Promise<number | string | null> {
    this.#child.kill('SIGINT')
    return this.ended
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const { pid } = this.#child
    if (!this.#hasEnded && pid !== undefined) process.kill(-pid, 'SIGKILL')
    await this.ended
  }

  #printed(): string {
    return [...this.lines, ...this.errors].join('\n')
  }
}
