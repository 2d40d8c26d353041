/** Blocks that are whole programs, run in a folder that holds nothing but them and the installed package. */
import { execFile } from 'node:child_process'
import { cp, mkdir, rm, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { promisify } from 'node:util'
import manifest from '../../package.json' with { type: 'json' }
import { RunningProgram } from '../support/running-program.js'
import { strictest } from '../support/strictest.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { type CodeBlock, root } from './code-blocks.js'
import { moduleOf } from './modules.js'

const run = promisify(execFile)

export interface ProgramResult {
  readonly stdout: string
  readonly stderr: string
}

/** A folder of a user's, with the built package installed. */
export class ProgramFolder implements AsyncDisposable {
  readonly #path: string
  readonly #files: ReadonlyMap<string, string>

  private constructor(path: string, files: ReadonlyMap<string, string>) {
    this.#path = path
    this.#files = files
  }

  /** Compiles the blocks to JavaScript, each alone; throws what TypeScript says if one does not compile. */
  static async compile(blocks: readonly CodeBlock[]): Promise<ProgramFolder> {
    const { path } = await temporaryFolder()
    const files = new Map(blocks.map(({ name }, index) => [name, `program-${index}`]))
    await install(path)
    await writeFile(join(path, 'package.json'), JSON.stringify({ private: true, type: 'module' }))
    await writeFile(join(path, 'tsconfig.json'), JSON.stringify({ compilerOptions }))
    for (const block of blocks) await writeFile(join(path, `${files.get(block.name)}.ts`), moduleOf(block))
    const tsc = join(root, 'node_modules/.bin/tsc')
    await run(process.execPath, [tsc, '--project', path], { cwd: path }).catch(({ stdout }) => {
      throw new Error(`TypeScript says, in an empty folder:\n${stdout}`)
    })
    return new ProgramFolder(path, files)
  }

  /** Runs a program to its end; rejects if it fails. */
  run(block: string, env: Record<string, string> = {}): Promise<ProgramResult> {
    return run(process.execPath, [this.#fileOf(block)], {
      cwd: this.#path,
      env: { ...process.env, ...env },
      timeout: 100_000,
    })
  }

  /** Starts a program that is a server. Whatever it asks for, it listens on a free port of loopback. */
  async startServer(
    block: string,
    variables: Record<string, string>,
  ): Promise<{ readonly program: RunningProgram; readonly port: number }> {
    const preload = join(this.#path, 'listen-on-loopback.mjs')
    await writeFile(preload, listenOnLoopback)
    const args = ['--import', preload, this.#fileOf(block)]
    const program = new RunningProgram(args, { folder: this.#path, variables })
    const line = await program.line(/^listening on \d+$/)
    return { program, port: Number(line.split(' ').at(-1)) }
  }

  /** Writes a file that a program reads. */
  write(file: string, text: string): Promise<void> {
    return writeFile(join(this.#path, file), text)
  }

  #fileOf(block: string): string {
    return join(this.#path, `${this.#files.get(block)}.js`)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#path, { recursive: true })
  }
}

const compilerOptions = {
  target: 'es2022',
  module: 'nodenext',
  types: ['node'],
  ...strictest,
  verbatimModuleSyntax: true,
  // The declarations of other packages are their own concern.
  skipLibCheck: true,
}

const listenOnLoopback = `
  import { Server } from 'node:net'
  const { listen } = Server.prototype
  Server.prototype.listen = function (...given) {
    this.once('listening', () => console.log('listening on ' + this.address().port))
    return listen.call(this, 0, '127.0.0.1', ...given.filter((each) => typeof each === 'function'))
  }
`

/** As npm would have it: the files of the package, its dependencies, and what every TypeScript project has. */
async function install(folder: string): Promise<void> {
  const modules = join(folder, 'node_modules')
  const installed = join(modules, manifest.name)
  await mkdir(installed, { recursive: true })
  await cp(join(root, 'package.json'), join(installed, 'package.json'))
  await cp(join(root, 'dist'), join(installed, 'dist'), { recursive: true })
  const others = [...Object.keys(manifest.dependencies), 'ioredis', 'msw', '@types/node']
  for (const name of others) {
    await mkdir(dirname(join(modules, name)), { recursive: true })
    await symlink(join(root, 'node_modules', name), join(modules, name), 'junction')
  }
}
