/**
 * `npm run test:api`: schemathesis, from PyPI, asks an emulator whatever its OpenAPI document allows and forbids. Fails at
 * a server error, and at an answer that contradicts the document.
 */
import { type SpawnOptions, spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startEmulator } from 'notification-subscriber/emulator'
import manifest from '../../package.json' with { type: 'json' }
import { openApiDocument } from '../../scripts/api-descriptions/openapi.js'

const here = fileURLToPath(new URL('.', import.meta.url))
const version = '4.32.5'
/** Kept, so that only the first run installs. */
const venv = fileURLToPath(new URL(`../../node_modules/.cache/schemathesis-${version}`, import.meta.url))

process.exitCode = await main()

async function main(): Promise<number> {
  const schemathesis = await installed()
  const folder = await mkdtemp(join(tmpdir(), 'api-conformance-'))
  const emulator = await startEmulator()
  try {
    const document = join(folder, 'openapi.json')
    await writeFile(document, JSON.stringify(openApiDocument(manifest.version)))
    await writeFile(join(folder, 'ca.pem'), emulator.ca)
    await writeFile(join(folder, 'tokens.toml'), `[parameters]\n"path.domain" = "${emulator.domain}"\n`)
    const test = (tag: string, user: string, password: string, config: string[] = []) =>
      run(
        schemathesis,
        [
          ...config,
          ...['run', document, '--url', emulator.baseUrl, '--tls-verify', join(folder, 'ca.pem')],
          ...['--include-tag', tag, '--auth', `${user}:${password}`],
          ...[
            '--max-examples',
            process.env.API_EXAMPLES ?? '100',
            '--continue-on-failure',
            '--seed',
            process.env.RANDOM_SEED ?? '1',
          ],
          // A create with recreateIfExists ends the subscription that an earlier create made.
          ...['--exclude-checks', 'ensure_resource_availability'],
          ...process.argv.slice(2),
        ],
        { cwd: folder, env: { ...process.env, PYTHONPATH: here, SCHEMATHESIS_HOOKS: 'hooks' } },
      )
    const config = ['--config-file', join(folder, 'tokens.toml')]
    const codes = [
      await test('subscriptions', emulator.username, emulator.password),
      await test('tokens', emulator.clientId, emulator.clientSecret, config),
    ]
    console.log(`The emulator answered ${JSON.stringify(emulator.requestCounts)}`)
    return Math.max(...codes)
  } finally {
    await emulator.close()
    await rm(folder, { recursive: true })
  }
}

async function installed(): Promise<string> {
  const program = join(venv, 'bin/schemathesis')
  if (existsSync(program)) return program
  await mkdir(venv, { recursive: true })
  const made = await run('python3', ['-m', 'venv', venv])
  if (made !== 0) throw new Error('This test needs Python 3 with venv: apt-get install python3-venv')
  const code = await run(join(venv, 'bin/pip'), ['install', '--quiet', `schemathesis==${version}`])
  if (code !== 0) throw new Error(`pip could not install schemathesis ${version}`)
  return program
}

function run(command: string, args: string[], options: SpawnOptions = {}): Promise<number> {
  return new Promise((resolve, reject) => {
    const child = spawn(command, args, { ...options, stdio: 'inherit' })
    child.once('error', reject)
    child.once('exit', (code) => resolve(code ?? 1))
  })
}
