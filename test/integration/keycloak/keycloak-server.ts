/** A real Keycloak on loopback: the authorization server that the service itself uses. */
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { createLocalJWKSet, type JSONWebKeySet, jwtVerify } from 'jose'
import { Agent, request } from 'undici'
import { createLoopbackCertificate } from '../../../src/emulator/https/certificate.js'
import { freePort } from '../../support/listen.js'

const run = promisify(execFile)

/** The newest that Maven Central had when these tests were written; it runs on Java 17 and later. */
export const keycloakVersion = '26.7.3'

const cache = fileURLToPath(new URL('../../../node_modules/.cache/keycloak', import.meta.url))

export interface RealmClient {
  readonly clientId: string
  readonly secret: string
  readonly enabled?: boolean
  /** Lifetime of its access tokens. Default: that of the realm, 300 s. */
  readonly lifetimeSeconds?: number
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
  readonly #adminPassword = randomBytes(12).toString('base64url')
  readonly #agent: Agent
  #process: ChildProcess | undefined

  private constructor(folder: string, ca: string, ports: Ports) {
    this.#folder = folder
    this.#ports = ports
    this.ca = ca
    this.authUrl = `https://127.0.0.1:${ports.https}`
    this.#agent = new Agent({ connect: { ca } })
  }

  /** Installs it at the first time, and starts it with an empty database. */
  static async start(): Promise<KeycloakServer> {
    const distribution = await install()
    const folder = await mkdtemp(join(tmpdir(), 'keycloak-'))
    await cp(distribution, folder, { recursive: true })
    const { ca, tls } = createLoopbackCertificate()
    await writeFile(join(folder, 'cert.pem'), tls.cert)
    await writeFile(join(folder, 'key.pem'), tls.key)
    const [https, http, management] = await Promise.all([freePort(), freePort(), freePort()])
    const server = new KeycloakServer(folder, ca, { https, http, management })
    try {
      await server.restart()
      return server
    } catch (error) {
      await server[Symbol.asyncDispose]()
      throw error
    }
  }

  /** Starts it again on the same port with what it had stored; resolves when it answers. */
  async restart(): Promise<void> {
    await this.stop()
    const { https, http, management } = this.#ports
    const child = spawn(
      join(this.#folder, 'bin/kc.sh'),
      [
        'start-dev',
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
        env: {
          ...process.env,
          // In a run of a minute, the second compiler costs more than it saves.
          JAVA_OPTS_APPEND: '-XX:TieredStopAtLevel=1',
          KC_BOOTSTRAP_ADMIN_USERNAME: 'admin',
          KC_BOOTSTRAP_ADMIN_PASSWORD: this.#adminPassword,
        },
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

  /** Ends it; connections break and new ones are refused. */
  async stop(): Promise<void> {
    const child = this.#process
    this.#process = undefined
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    killGroup(child)
    await exited
  }

  async createRealm(realm: string): Promise<void> {
    await this.#admin('POST', 'realms', { realm, enabled: true })
  }

  /** A confidential client with the client credentials grant alone. */
  async createClient(realm: string, client: RealmClient): Promise<void> {
    const { clientId, secret, enabled = true, lifetimeSeconds } = client
    await this.#admin('POST', `realms/${realm}/clients`, {
      clientId,
      secret,
      enabled,
      serviceAccountsEnabled: true,
      standardFlowEnabled: false,
      directAccessGrantsEnabled: false,
      publicClient: false,
      attributes: lifetimeSeconds === undefined ? {} : { 'access.token.lifespan': String(lifetimeSeconds) },
    })
  }

  /** A scope that the client gets only if it asks for it. */
  async createOptionalScope(realm: string, clientId: string, name: string): Promise<void> {
    await this.#admin('POST', `realms/${realm}/client-scopes`, {
      name,
      protocol: 'openid-connect',
      attributes: { 'include.in.token.scope': 'true' },
    })
    const scopes = await this.#admin('GET', `realms/${realm}/client-scopes`)
    const clients = await this.#admin(
      'GET',
      `realms/${realm}/clients?clientId=${encodeURIComponent(clientId)}`,
    )
    const idIn = (list: unknown, key: string, value: string) =>
      (list as Record<string, string>[]).find((each) => each[key] === value)?.id
    const client = idIn(clients, 'clientId', clientId)
    const scope = idIn(scopes, 'name', name)
    await this.#admin('PUT', `realms/${realm}/clients/${client}/optional-client-scopes/${scope}`)
  }

  /** Checks a token as a service does that trusts this realm. Throws what `jose` says of a token that is not valid. */
  async verify(realm: string, token: string): Promise<void> {
    const keys = await request(`${this.authUrl}/auth/realms/${realm}/protocol/openid-connect/certs`, {
      dispatcher: this.#agent,
    })
    const issuer = `${this.authUrl}/auth/realms/${realm}`
    await jwtVerify(token, createLocalJWKSet((await keys.body.json()) as JSONWebKeySet), { issuer })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
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

  async #admin(method: 'GET' | 'POST' | 'PUT', path: string, json?: object): Promise<unknown> {
    const login = await request(`${this.authUrl}/auth/realms/master/protocol/openid-connect/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        grant_type: 'password',
        client_id: 'admin-cli',
        username: 'admin',
        password: this.#adminPassword,
      }).toString(),
      dispatcher: this.#agent,
    })
    const { access_token: token } = (await login.body.json()) as { access_token: string }
    const answer = await request(`${this.authUrl}/auth/admin/${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: json === undefined ? null : JSON.stringify(json),
      dispatcher: this.#agent,
    })
    const text = await answer.body.text()
    if (answer.statusCode >= 300)
      throw new Error(`${method} ${path} was answered ${answer.statusCode}: ${text}`)
    return text === '' ? undefined : JSON.parse(text)
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
