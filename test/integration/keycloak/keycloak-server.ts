/** A real Keycloak on loopback: the authorization server that the service itself uses. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { Agent, request } from 'undici'
import { createLoopbackCertificate } from '../../../src/emulator/https/certificate.js'
import { freePort } from '../../support/listen.js'

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

interface Ports {
  readonly https: number
  readonly http: number
  readonly management: number
}

export class KeycloakServer implements AsyncDisposable {
  /** Base address, what `authUrl` is to be. */
  readonly authUrl: string
  /** The authority that signed its certificate. */
  readonly ca: string
  readonly #folder: string
  readonly #ports: Ports
  readonly #agent: Agent
  #process: ChildProcess | undefined

  private constructor(folder: string, ca: string, ports: Ports) {
    this.#folder = folder
    this.#ports = ports
    this.ca = ca
    this.authUrl = `https://127.0.0.1:${ports.https}`
    this.#agent = new Agent({ connect: { ca } })
  }

  /** Installs it at the first time, and starts it with one realm. */
  static async start(realm: string, clients: readonly RealmClient[]): Promise<KeycloakServer> {
    const distribution = await install()
    const folder = await mkdtemp(join(tmpdir(), 'keycloak-'))
    await cp(distribution, folder, { recursive: true })
    const { ca, tls } = createLoopbackCertificate()
    await writeFile(join(folder, 'cert.pem'), tls.cert)
    await writeFile(join(folder, 'key.pem'), tls.key)
    await mkdir(join(folder, 'data/import'), { recursive: true })
    await writeFile(join(folder, 'data/import/realm.json'), JSON.stringify(realmOf(realm, clients)))
    const [https, http, management] = await Promise.all([freePort(), freePort(), freePort()])
    const server = new KeycloakServer(folder, ca, { https, http, management })
    try {
      await server.#run()
      return server
    } catch (error) {
      await server[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Resolves when it answers. */
  async #run(): Promise<void> {
    const { https, http, management } = this.#ports
    const child = spawn(
      join(this.#folder, 'bin/kc.sh'),
      [
        'start-dev',
        '--import-realm',
        '--http-relative-path=/auth',
        '--http-host=127.0.0.1',
        `--http-port=${http}`,
        `--https-port=${https}`,
        `--http-management-port=${management}`,
        `--https-certificate-file=${join(this.#folder, 'cert.pem')}`,
        `--https-certificate-key-file=${join(this.#folder, 'key.pem')}`,
      ],
      {
        // A group of its own: kc.sh starts Java as another process.
        detached: true,
        stdio: ['ignore', 'pipe', 'pipe'],
        // In a run of a minute, the second compiler costs more than it saves.
        env: { ...process.env, JAVA_OPTS_APPEND: '-XX:TieredStopAtLevel=1' },
      },
    )
    this.#process = child
    process.once('exit', () => killGroup(child))
    const output: string[] = []
    child.stdout.on('data', (text) => output.push(String(text)))
    child.stderr.on('data', (text) => output.push(String(text)))
    const deadline = Date.now() + 180_000
    for (;;) {
      if (child.exitCode !== null || Date.now() > deadline) {
        throw new Error(`Keycloak did not start:\n${output.join('').slice(-2_000)}`)
      }
      if (await this.#isUp()) return
      await new Promise((resolve) => setTimeout(resolve, 250))
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const child = this.#process
    if (child?.exitCode === null && child.signalCode === null) {
      const exited = once(child, 'exit')
      killGroup(child)
      await exited
    }
    await this.#agent.destroy()
    await rm(this.#folder, { recursive: true, force: true })
  }

  async #isUp(): Promise<boolean> {
    try {
      const answer = await request(`${this.authUrl}/auth/realms/master`, { dispatcher: this.#agent })
      await answer.body.dump()
      return answer.statusCode === 200
    } catch {
      return false
    }
  }
}

function killGroup({ pid }: ChildProcess): void {
  if (pid === undefined) return
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // The group has ended already.
  }
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
