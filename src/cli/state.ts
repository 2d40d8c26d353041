/** The folder of `--state`: what an emulator keeps for its next start, and the files that an app reads. */
import { X509Certificate } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import * as z from 'zod'
import { messageOf } from '../shared/text.js'
import { parseJson } from '../shared/validation.js'
import { UsageError } from './command.js'

export const defaultFolder = '.emulator'

const weekMs = 7 * 24 * 60 * 60 * 1000

const stateSchema = z.object({
  /** The same port, so that the addresses stay valid. */
  port: z.int().min(0).max(65_535),
  clientSecret: z.string().min(1),
  password: z.string().min(1),
  callbackToken: z.string().min(1),
  tls: z.object({ key: z.string(), cert: z.string() }),
  ca: z.string(),
  /** The page of the emulator that uses the folder, or used it last. */
  pageUrl: z.string(),
})

export type EmulatorState = z.infer<typeof stateSchema>

export const caFileIn = (folder: string) => resolve(folder, 'ca.pem')
export const envFileIn = (folder: string) => join(folder, 'env')

/** What the last start left, if there is a folder with a state that can be used. */
export async function loadState(folder: string): Promise<EmulatorState | undefined> {
  const text = await readFile(join(folder, 'state.json'), 'utf8').catch(() => '')
  return stateSchema.safeParse(parseJson(text)).data
}

/** Each file for its owner only, and none for git. @throws `UsageError` if the folder cannot be written */
export async function saveState(
  folder: string,
  state: EmulatorState,
  variables: Readonly<Record<string, string>>,
): Promise<void> {
  const lines = Object.entries(variables).map(([name, value]) => `${name}='${value}'\n`)
  const files = {
    'state.json': JSON.stringify(state, null, 2),
    'ca.pem': state.ca,
    env: `# Written by notification-subscriber emulator, anew at each start.\n${lines.join('')}`,
    '.gitignore': '*\n',
  }
  try {
    await mkdir(folder, { mode: 0o700, recursive: true })
    for (const [name, text] of Object.entries(files)) {
      await writeFile(join(folder, name), text, { mode: 0o600 })
    }
  } catch (error) {
    throw new UsageError(`--state names a folder that cannot be written: ${messageOf(error)}`)
  }
}

/** The certificate of an earlier start, unless it expires within a week: replacing it now does not interrupt work later. */
export function reusableCertificate(
  state: EmulatorState | undefined,
): Pick<EmulatorState, 'tls' | 'ca'> | undefined {
  if (state === undefined) return undefined
  const { tls, ca } = state
  try {
    const ends = [tls.cert, ca].map((pem) => Date.parse(new X509Certificate(pem).validTo))
    return Math.min(...ends) - Date.now() < weekMs ? undefined : { tls, ca }
  } catch {
    return undefined
  }
}
