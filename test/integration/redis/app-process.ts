/** An app in a process of its own, which calls the client all the time. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Emulator } from 'notification-subscriber/emulator'
import { bundleProgram } from './bundle-program.js'
import type { StoreKind } from './stores.js'

/**
 * For a test that counts the requests of many processes, or measures how long their calls take: a busy machine may keep a
 * process from running for a second.
 */
export const triedThrice = { retry: 2 }

/** The service that an app calls, or the emulator. */
export type AppService = Pick<Emulator, 'baseUrl' | 'authUrl' | 'domain' | 'clientId' | 'clientSecret' | 'ca'>

/** What an app gets when it starts. */
export interface AppSettings {
  readonly kind: StoreKind
  readonly redisUrl: string
  readonly baseUrl: string
  readonly credentials: {
    readonly authUrl: string
    readonly domain: string
    readonly clientId: string
    readonly clientSecret: string
  }
}

/** What an app tells when it ends. */
export interface AppReport {
  calls: number
  /** Token requests that it sent itself. */
  requests: number
  /** Each message once: thousands of equal ones would take minutes to show. */
  readonly failures: string[]
  /** The longest that a call took, without its token request and without the time in which the process could not run. */
  longestDelayMs: number
  readonly tokens: string[]
}

/** The program of the apps as one file. */
export class AppProgram implements AsyncDisposable {
  readonly #folder: string
  readonly #file: string

  private constructor(folder: string, file: string) {
    this.#folder = folder
    this.#file = file
  }

  static async build(): Promise<AppProgram> {
    const folder = await mkdtemp(join(tmpdir(), 'app-program-'))
    return new AppProgram(folder, await bundleProgram('calls-all-the-time', folder))
  }

  /** Starts an app; resolves when it waits for {@link AppProcess.begin}. */
  async start(service: AppService, kind: StoreKind, redisUrl: string): Promise<AppProcess> {
    const { baseUrl, authUrl, domain, clientId, clientSecret } = service
    const settings: AppSettings = {
      kind,
      redisUrl,
      baseUrl,
      credentials: { authUrl, domain, clientId, clientSecret },
    }
    // Tests run side by side, each with an emulator of its own.
    const ca = join(this.#folder, `${new URL(baseUrl).port}.pem`)
    await writeFile(ca, service.ca)
    const child = fork(this.#file, [JSON.stringify(settings)], {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: ca, NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' },
    })
    await Promise.race([
      once(child, 'message'),
      once(child, 'exit').then(([code]) =>
        Promise.reject(new Error(`the app ended early, with code ${code}`)),
      ),
    ])
    return new AppProcess(child)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#folder, { recursive: true, force: true })
  }
}

export class AppProcess implements AsyncDisposable {
  readonly #child: ChildProcess
  readonly #exited: Promise<unknown[]>

  constructor(child: ChildProcess) {
    this.#child = child
    this.#exited = once(child, 'exit')
  }

  /** Lets the app call from now on. */
  begin(): void {
    this.#child.send('begin')
  }

  /** Ends the calls; resolves with how they went, and with the exit code when the process has ended by itself. */
  async end(): Promise<AppReport & { exitCode: unknown }> {
    const reported = once(this.#child, 'message')
    this.#child.send('end')
    const [report] = await reported
    const [exitCode] = await this.#exited
    return { ...report, exitCode }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.kill('SIGKILL')
    await this.#exited
  }

  /** Ends the process without a chance to do anything. */
  async kill(): Promise<void> {
    await this[Symbol.asyncDispose]()
  }
}
