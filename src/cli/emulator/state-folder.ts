/** The folder that `--state` names: what of an emulator outlives its process, readable by its owner only. */
import { X509Certificate } from 'node:crypto'
import { chmod, mkdir, mkdtemp, readFile, rename, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import * as z from 'zod'
import { messageOf } from '../../shared/excerpt.js'
import { UsageError } from '../usage-error.js'

const weekMs = 7 * 24 * 60 * 60 * 1000

const stateSchema = z.object({
  /** Taken again at the next start, so that the addresses in somebody's `.env` stay right. */
  port: z.int(),
  clientSecret: z.string(),
  password: z.string(),
  tls: z.object({ key: z.string(), cert: z.string() }),
  ca: z.string(),
})

/** What the next start takes over. The authority's private key is not among it, because that was never kept. */
export type EmulatorState = z.infer<typeof stateSchema>

const runningSchema = z.object({ pageUrl: z.string() })

export class StateFolder {
  readonly path: string
  readonly #isTemporary: boolean

  private constructor(path: string, isTemporary: boolean) {
    this.path = path
    this.#isTemporary = isTemporary
  }

  /**
   * Makes the folder if there is none.
   *
   * @throws `UsageError` for a folder that cannot be made, or that others could read
   */
  static async open(path: string): Promise<StateFolder> {
    const folder = resolve(path)
    try {
      await mkdir(folder, { recursive: true, mode: 0o700 })
    } catch (error) {
      throw new UsageError(`--state names a folder that cannot be made: ${messageOf(error)}`)
    }
    const { mode, uid } = await stat(folder)
    // Windows has other permissions, and no numbers for users.
    if (process.platform !== 'win32' && ((mode & 0o077) !== 0 || uid !== process.getuid?.())) {
      throw new UsageError(
        `--state names ${folder}, which others can read, and secrets go there: chmod 700 it, or choose another folder`,
      )
    }
    return new StateFolder(folder, false)
  }

  /** A folder that is gone after `release`, for the certificate of an emulator without `--state`. */
  static async temporary(): Promise<StateFolder> {
    return new StateFolder(await mkdtemp(join(tmpdir(), 'notification-emulator-')), true)
  }

  /** Where the authority's certificate is, for `NOTIFICATION_CA_FILE`. */
  get caFile(): string {
    return join(this.path, 'ca.pem')
  }

  /**
   * What an earlier emulator left, if there was one.
   *
   * @throws `UsageError` for a file that cannot be read, or that no emulator wrote
   */
  async load(): Promise<EmulatorState | undefined> {
    return this.#read('state.json', stateSchema)
  }

  async save(state: EmulatorState): Promise<void> {
    await this.#write('ca.pem', state.ca)
    if (!this.#isTemporary) await this.#write('state.json', JSON.stringify(state, null, 2))
  }

  /** The page of the emulator that runs with this folder, or ran until its process was killed. */
  async pageUrl(): Promise<string | undefined> {
    return (await this.#read('running.json', runningSchema))?.pageUrl
  }

  async setPageUrl(pageUrl: string): Promise<void> {
    await this.#write('running.json', JSON.stringify({ pageUrl }))
  }

  /** Called when the emulator is closed: forgets its page, and removes the folder if it is temporary. */
  async release(): Promise<void> {
    if (this.#isTemporary) await rm(this.path, { recursive: true, force: true })
    else await rm(join(this.path, 'running.json'), { force: true })
  }

  async #read<Content>(name: string, schema: z.ZodType<Content>): Promise<Content | undefined> {
    const path = join(this.path, name)
    let text: string
    try {
      text = await readFile(path, 'utf8')
    } catch (error) {
      if (Object(error).code === 'ENOENT') return undefined
      throw new UsageError(`${path} cannot be read: ${messageOf(error)}`)
    }
    try {
      return schema.parse(JSON.parse(text))
    } catch {
      throw new UsageError(`${path} is not what an emulator wrote: delete it, and a new one is made`)
    }
  }

  /** In one step, so that a reader finds the old or the new content. */
  async #write(name: string, content: string): Promise<void> {
    const path = join(this.path, name)
    const unfinished = `${path}.${process.pid}`
    await writeFile(unfinished, content, { mode: 0o600 })
    // The mode above holds for a new file only.
    await chmod(unfinished, 0o600)
    await rename(unfinished, path)
  }
}

/** The certificate of an earlier run, but not in its last week: whoever has to trust it anew should not have to soon. */
export function reusableCertificate(
  state: EmulatorState | undefined,
): Pick<EmulatorState, 'tls' | 'ca'> | undefined {
  if (state === undefined) return undefined
  const { tls, ca } = state
  const endsAt = Math.min(...[tls.cert, ca].map((pem) => Date.parse(new X509Certificate(pem).validTo)))
  return endsAt - Date.now() > weekMs ? { tls, ca } : undefined
}
