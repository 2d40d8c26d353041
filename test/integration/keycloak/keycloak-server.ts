/** A real Keycloak on loopback: the authorization server that the service itself uses. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { vi } from 'vitest'
import { createLoopbackCertificate } from '../../../src/emulator/https/certificate.js'
import { freePort } from '../../support/listen.js'
import { RunningProgram } from '../../support/running-program.js'
import { temporaryFolder } from '../../support/temporary-folder.js'

const run = promisify(execFile)

/** The newest that Maven Central had when these tests were written; it runs on Java 17 and later. */
const keycloakVersion = '26.7.3'

const cache = fileURLToPath(new URL('../../../node_modules/.cache/keycloak', import.meta.url))

/** A confidential client with the client credentials grant alone. */
export interface RealmClient {
  readonly clientId: string
  readonly secret: string
  readonly enabled?: boolean
}

/** As Keycloak imports it. Each client gets the scope `notifications` if it asks for it. */
function realmOf(realm: string, clients: readonly RealmClient[]): object {
  const scope = { name: 'notifications', protocol: 'openid-connect' }
  return {
    realm,
    enabled: true,
    clientScopes: [{ ...scope, attributes: { 'include.in.token.scope': 'true' } }],
    clients: clients.map(({ clientId, secret, enabled = true }) => ({
      clientId,
      secret,
      enabled,
      protocol: scope.protocol,
      serviceAccountsEnabled: true,
      standardFlowEnabled: false,
      publicClient: false,
      defaultClientScopes: [],
      optionalClientScopes: [scope.name],
    })),
  }
}

/** Installs it at the first time, and starts it with one realm; resolves when it listens. */
export async function startKeycloak(realm: string, clients: readonly RealmClient[]) {
  const distribution = await install()
  const folder = await temporaryFolder()
  const { path } = folder
  await cp(distribution, path, { recursive: true })
  const { ca, tls } = createLoopbackCertificate()
  await writeFile(join(path, 'cert.pem'), tls.cert)
  await writeFile(join(path, 'key.pem'), tls.key)
  await mkdir(join(path, 'data/import'), { recursive: true })
  await writeFile(join(path, 'data/import/realm.json'), JSON.stringify(realmOf(realm, clients)))
  const [https, http, management] = await Promise.all([freePort(), freePort(), freePort()])
  const args = [
    'start-dev',
    '--import-realm',
    '--http-relative-path=/auth',
    '--http-host=127.0.0.1',
    `--http-port=${http}`,
    `--https-port=${https}`,
    `--http-management-port=${management}`,
    `--https-certificate-file=${join(path, 'cert.pem')}`,
    `--https-certificate-key-file=${join(path, 'key.pem')}`,
  ]
  // In a run of a minute, the second compiler costs more than it saves.
  const variables = { JAVA_OPTS_APPEND: '-XX:TieredStopAtLevel=1' }
  const program = new RunningProgram(args, { folder: path, command: join(path, 'bin/kc.sh'), variables })
  const server = {
    /** Base address, what `authUrl` is to be. */
    authUrl: `https://127.0.0.1:${https}`,
    /** The authority that signed its certificate. */
    ca,
    async [Symbol.asyncDispose]() {
      await program[Symbol.asyncDispose]()
      await folder[Symbol.asyncDispose]()
    },
  }
  const isListening = () => program.lines.some((line) => line.includes('Listening on: '))
  const listening = vi.waitUntil(isListening, { timeout: 180_000 })
  if (!(await Promise.race([listening, program.ended.then(() => false)]).catch(() => false))) {
    await server[Symbol.asyncDispose]()
    throw new Error(`Keycloak did not start:\n${[...program.lines, ...program.errors].slice(-30).join('\n')}`)
  }
  return server
}

/** The unpacked distribution, fetched by Maven at the first time. */
async function install(): Promise<string> {
  const home = join(cache, `keycloak-${keycloakVersion}`)
  if (existsSync(join(home, 'bin/kc.sh'))) return home
  await mkdir(cache, { recursive: true })
  // Unpacked next to its place and moved there whole: a broken installation would look like a complete one.
  const unpacked = await mkdtemp(join(cache, 'unpacking-'))
  await run('mvn', [
    '--batch-mode',
    '--quiet',
    'org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy',
    `-Dartifact=org.keycloak:keycloak-quarkus-dist:${keycloakVersion}:zip`,
    `-DoutputDirectory=${unpacked}`,
  ])
  await run('jar', ['--extract', '--file', `keycloak-quarkus-dist-${keycloakVersion}.zip`], { cwd: unpacked })
  await run('chmod', ['+x', join(unpacked, `keycloak-${keycloakVersion}/bin/kc.sh`)])
  await run('mv', [join(unpacked, `keycloak-${keycloakVersion}`), home])
  await rm(unpacked, { recursive: true })
  return home
}
