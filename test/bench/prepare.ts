/** Makes what the benchmarks need, where it is missing or older than what it is made from. */
import { execFileSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const benchFolder = dirname(fileURLToPath(import.meta.url))
export const packageFolder = join(benchFolder, '../..')

export function buildPackage(): void {
  const sources = readdirSync(join(packageFolder, 'src'), { recursive: true, encoding: 'utf8' })
  const newest = Math.max(...sources.map((path) => changedAt(join(packageFolder, 'src', path))))
  // The declarations are written last.
  if (changedAt(join(packageFolder, 'dist/emulator/index.d.ts')) > newest) return
  npm(['run', '--silent', 'build'], packageFolder)
}

export function installPeers(): void {
  const installed = changedAt(join(benchFolder, 'node_modules/.package-lock.json'))
  if (installed > changedAt(join(benchFolder, 'package-lock.json'))) return
  npm(['ci', '--ignore-scripts', '--no-audit', '--no-fund'], benchFolder)
}

/** When a file changed last, in milliseconds since 1970; 0 when there is none. */
function changedAt(path: string): number {
  return statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? 0
}

function npm(args: readonly string[], cwd: string): void {
  console.error(`npm ${args.join(' ')}`)
  // The table alone goes to standard output.
  execFileSync('npm', args, { cwd, stdio: ['ignore', 2, 2] })
}
