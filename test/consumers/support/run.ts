/** Runs a command to its end. */
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'

/** What the tests' own runner sets would change what the programs under test do. */
const ofTheRunner = /^(VITEST|NODE_ENV|NODE_OPTIONS|TEST$|DEV$|PROD$|MODE$|SSR$|BASE_URL$)/

export function start(
  command: string,
  args: readonly string[],
  folder: string,
  variables: Record<string, string> = {},
): ChildProcessByStdio<null, Readable, Readable> {
  return spawn(command, args, {
    cwd: folder,
    env: environmentWith(variables),
    stdio: ['ignore', 'pipe', 'pipe'],
  })
}

/** The environment of the tests without their runner, with these variables. */
export function environmentWith(variables: Readonly<Record<string, string>>): NodeJS.ProcessEnv {
  const inherited = Object.entries(process.env).filter(([name]) => !ofTheRunner.test(name))
  return { ...Object.fromEntries(inherited), ...variables } as NodeJS.ProcessEnv
}

/** Resolves with what the command printed; rejects with it if the command failed. */
export async function run(
  command: string,
  args: readonly string[],
  folder: string,
  variables: Record<string, string> = {},
): Promise<string> {
  const child = start(command, args, folder, variables)
  let printed = ''
  for (const output of [child.stdout, child.stderr]) {
    output.setEncoding('utf8').on('data', (text) => {
      printed += text
    })
  }
  const [code] = await new Promise<[number | null]>((resolve, reject) => {
    child.on('error', reject).on('close', (...how: [number | null]) => resolve(how))
  })
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} failed:\n${printed}`)
  return printed
}

/** Packs the package as it would be published, after `npm run build`. Resolves with the path of the tarball. */
export async function pack(folder: string): Promise<string> {
  const root = fileURLToPath(new URL('../../..', import.meta.url))
  const printed = await run('npm', ['pack', '--silent', '--pack-destination', folder], root)
  return join(folder, printed.trim().split('\n').at(-1) ?? '')
}
