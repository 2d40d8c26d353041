/** The folder of `--state`: the data that an emulator keeps for its next start, readable only by the owner. */
import { X509Certificate } from 'node:crypto'
import { mkdir, mkdtemp, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join, resolve } from 'node:path'
import type { RequestInit } from 'undici'
import * as z from 'zod'
import { messageOf } from '../shared/text.js'
import { parseJson } from '../shared/validation.js'
import { UsageError } from './command.js'
import { readPrivateFile, writePrivateFile } from './private-file.js'

const weekMs = 7 * 24 * 60 * 60 * 1000

const stateSchema = z.object({
  /** The same port, so that the addresses in a `.env` stay valid. */
  port: z.int().min(0).max(65_535),
  clientSecret: z.string().min(1),
  password: z.string().min(1),
  callbackToken: z.string().min(1),
  tls: z.object({ key: z.string(), cert: z.string() }),
  ca: z.string(),
  /** The page of the emulator that uses the folder, or used it until its process was killed. */
  pageUrl: z.string().optional(),
})

/** Used again at the next start; never the authority's private key, which the emulator does not keep. */
export type EmulatorState = z.infer<typeof stateSchema>

export class StateFolder {
  readonly path: string
  readonly #isTemporary: boolean

  private constructor(path: string, isTemporary: boolean) {
    this.path = path
    this.#isTemporary = isTemporary
  }

  /** Makes the folder if there is none. @throws `UsageError` if it cannot be made, or if other users can read it */
  static async open(path: string): Promise<StateFolder> {
    const folder = resolve(path)
    await makeFolder(folder).catch((error: unknown) => {
      throw new UsageError(`--state names a folder that cannot be made: ${messageOf(error)}`)
    })
    return StateFolder.existing(folder)
  }

  /** @throws `UsageError` for a folder that does not exist, or that other users can read */
  static async existing(path: string): Promise<StateFolder> {
    const folder = resolve(path)
    const { mode, uid } = await stat(folder).catch((error: unknown) => {
      throw new UsageError(`--state names a folder that cannot be read: ${messageOf(error)}`)
    })
    // Windows has other permissions, and no user numbers.
    if (process.platform !== 'win32' && ((mode & 0o077) !== 0 || uid !== process.getuid?.())) {
      throw new UsageError(
        `--state names ${folder}, which other users can read, and the folder is for secrets: ` +
          'run chmod 700 on it, or choose another folder',
      )
    }
    return new StateFolder(folder, false)
  }

  /** For the certificate of an emulator without `--state`; `release` removes it. @throws `UsageError` if it cannot be made */
  static async temporary(): Promise<StateFolder> {
    const path = await mkdtemp(join(tmpdir(), 'notification-emulator-')).catch((error: unknown) => {
      throw new UsageError(
        `No temporary folder can be made (${messageOf(error)}): set TMPDIR to a folder that can be written, or name a folder with --state`,
      )
    })
    return new StateFolder(path, true)
  }

  /** The file of the authority's certificate, for `NOTIFICATION_CA_FILE`. */
  get caFile(): string {
    return join(this.path, 'ca.pem')
  }

  get stateFile(): string {
    return join(this.path, 'state.json')
  }

  /** Nothing before the first emulator. @throws `UsageError` for a file that cannot be read, or that no emulator wrote */
  async load(): Promise<EmulatorState | undefined> {
    const text = await readPrivateFile(this.stateFile)
    if (text === undefined) return undefined
    const { data, error } = stateSchema.safeParse(parseJson(text))
    if (error === undefined) return data
    throw new UsageError(
      `${this.stateFile} is not what an emulator wrote: delete the file, and a new one is made`,
    )
  }

  /** @throws `UsageError` for a file that cannot be written */
  async save(state: EmulatorState): Promise<void> {
    if (!this.#isTemporary) await writePrivateFile(this.stateFile, JSON.stringify(state, null, 2))
    await writePrivateFile(this.caFile, state.ca)
  }

  /** Called when the emulator is closed: forgets its page, or removes the folder if it is temporary. */
  async release(): Promise<void> {
    if (this.#isTemporary) return rm(this.path, { recursive: true, force: true })
    const state = await this.load()
    if (state !== undefined) await this.save({ ...state, pageUrl: undefined })
  }
}

/** Asks the page of an emulator directly: with NODE_USE_ENV_PROXY, the `fetch` of Node.js asks a proxy for this machine, too. */
export async function askPage(url: string | URL, init: RequestInit) {
  const { Agent, fetch } = await import('undici')
  return fetch(url, { ...init, dispatcher: new Agent() })
}

/** Not `recursive`: below `/proc`, Node.js would then try for ever. */
async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (error) {
    const { code } = Object(error)
    if (code === 'EEXIST' && (await stat(path)).isDirectory()) return
    if (code !== 'ENOENT' || dirname(path) === path) throw error
    await makeFolder(dirname(path))
    await mkdir(path, { mode: 0o700 })
  }
}

/**
 * The certificate of an earlier start, unless it expires within a week: replacing it now does not interrupt work later. What
 * cannot be read is not replaced: the emulator refuses it with the reason.
 */
export function reusableCertificate(
  state: EmulatorState | undefined,
): Pick<EmulatorState, 'tls' | 'ca'> | undefined {
  if (state === undefined) return undefined
  const { tls, ca } = state
  try {
    const ends = [tls.cert, ca].map((pem) => Date.parse(new X509Certificate(pem).validTo))
    if (Math.min(...ends) - Date.now() < weekMs) return undefined
  } catch {}
  return { tls, ca }
}
