/** A real Redis on loopback, with a folder of its own, that a test can kill, stop and start again. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { freePort } from './listen.js'
import { RunningProgram } from './running-program.js'

export interface RedisServerOptions {
  /**
   * Whether each write is in a file before it is answered, and so survives {@link RedisServer.kill}. Not synced: on a busy
   * disk that takes as long as a store that hangs. Default: no.
   */
  readonly appendOnly?: boolean | undefined
  /** The port of a primary on 127.0.0.1, whose replica this server is until it is promoted. */
  readonly replicaOf?: number | undefined
}

/** A `redis-server` process, which can be killed, stopped and started again; leaving the scope kills it and removes its folder. */
export class RedisServer implements AsyncDisposable {
  readonly host = '127.0.0.1'
  /** The same for the whole life of this object, however often it is restarted. */
  readonly port: number
  /** `redis://127.0.0.1:…` */
  readonly url: string
  readonly #folder: string
  readonly #options: RedisServerOptions
  #program: RunningProgram | undefined

  private constructor(port: number, folder: string, options: RedisServerOptions) {
    this.port = port
    this.url = `redis://${this.host}:${port}`
    this.#folder = folder
    this.#options = options
  }

  /** Starts one on a free port; resolves when it accepts connections. */
  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    const folder = await mkdtemp(join(tmpdir(), 'redis-server-'))
    for (let attempt = 1; ; attempt += 1) {
      const server = new RedisServer(await freePort(), folder, options)
      try {
        await server.restart()
        return server
      } catch (error) {
        // Another program may have taken the port before Redis.
        const isPortTaken = error instanceof Error && error.message.includes('Address already in use')
        if (isPortTaken && attempt < 5) continue
        await server[Symbol.asyncDispose]()
        throw error
      }
    }
  }

  /** Makes the process stand still: it accepts connections and answers nothing. */
  stop(): void {
    this.#program?.kill('SIGSTOP')
  }

  resume(): void {
    this.#program?.kill('SIGCONT')
  }

  /** Ends the process without a chance to write anything; resolves when it is gone. */
  async kill(): Promise<void> {
    await this.#program?.[Symbol.asyncDispose]()
    this.#program = undefined
  }

  /** Starts the process again on the same port and folder; resolves when it accepts connections. */
  async restart(): Promise<void> {
    await this.kill()
    const { appendOnly = false, replicaOf } = this.#options
    const args = [
      ...['--bind', this.host, '--port', String(this.port), '--dir', this.#folder],
      ...['--save', '', '--appendonly', appendOnly ? 'yes' : 'no', '--appendfsync', 'no'],
      ...(replicaOf === undefined ? [] : ['--replicaof', `127.0.0.1 ${replicaOf}`]),
    ]
    const program = new RunningProgram(args, { command: 'redis-server', folder: this.#folder })
    const ready = program.line(/Ready to accept connections/)
    const missing = program.ended.catch((cause) => Promise.reject(new Error(advice, { cause })))
    await Promise.race([ready, missing.then(() => ready)])
    this.#program = program
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill()
    await rm(this.#folder, { recursive: true, force: true })
  }
}

const advice =
  'redis-server cannot be started. These tests need a real Redis: install the Debian package redis-server ' +
  '(apt-get install redis-server).'
