/** The folder of an emulator: what it keeps for its next start, and the files that an app reads. */
import { once } from 'node:events'
import { mkdir, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { connect } from 'node:tls'
import * as z from 'zod'
import { messageOf } from '../shared/text.js'
import { parseJson } from '../shared/validation.js'
import { UsageError } from './command.js'

const stateSchema = z.object({
  /** Its port is that of the next start, so that the addresses stay valid. */
  baseUrl: z.url(),
  clientSecret: z.string().min(1),
  callbackToken: z.string().min(1),
  tls: z.object({ key: z.string(), cert: z.string() }),
  ca: z.string(),
  /** The page of the emulator that uses the folder, or used it last. */
  pageUrl: z.url(),
})

export type EmulatorState = z.infer<typeof stateSchema>

const fileNames = ['state.json', 'ca.pem', 'env', '.gitignore']

/**
 * What the last start left; `undefined` if the folder is new.
 *
 * @throws `UsageError` for a folder of something else, or one that is damaged or cannot be read
 */
export async function loadState(folder: string): Promise<EmulatorState | undefined> {
  const names: string[] = await readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw new UsageError(`${folder} cannot be used: ${messageOf(error)}. Name another folder with --state`)
  })
  if (!names.includes('state.json')) {
    const foreign = names.find((name) => !fileNames.includes(name.replace(/\.new$/, '')))
    if (foreign === undefined) return undefined
    throw new UsageError(
      `${folder} is no folder of an emulator, because it holds ${foreign}: name another with --state`,
    )
  }
  const file = join(folder, 'state.json')
  const text = await readFile(file, 'utf8').catch((error) => {
    throw new UsageError(`${file} cannot be read: ${messageOf(error)}`)
  })
  const { data } = stateSchema.safeParse(parseJson(text))
  if (data !== undefined) return data
  throw new UsageError(`${file} is damaged: delete it, and the emulator starts with new credentials`)
}

/** Which server has the port of the emulator, by its certificate: no other server has the key. Sends nothing. */
export async function serverOf({ baseUrl, ca }: EmulatorState): Promise<'emulator' | 'other' | 'none'> {
  const { hostname, port } = new URL(baseUrl)
  const socket = connect({ host: hostname.replace(/[[\]]/g, ''), port: Number(port), ca })
  let isConnected = false
  socket.once('connect', () => {
    isConnected = true
  })
  try {
    await once(socket, 'secureConnect', { signal: AbortSignal.timeout(5_000) })
    return 'emulator'
  } catch {
    return isConnected ? 'other' : 'none'
  } finally {
    socket.destroy()
  }
}

/** Resolves with whether other users of this machine can read the files. @throws `UsageError` if they cannot be written */
export async function saveState(
  folder: string,
  state: EmulatorState,
  variables: Readonly<Record<string, string>>,
): Promise<boolean> {
  // Node.js takes three kinds of quotes, and no escapes in two of them.
  const quoted = (value: string) => (value.includes("'") ? `\`${value}\`` : `'${value}'`)
  const lines = Object.entries(variables).map(([name, value]) => `${name}=${quoted(value)}\n`)
  const texts: Readonly<Record<string, string>> = {
    '.gitignore': '*\n',
    'ca.pem': state.ca,
    env: `# Written by notification-subscriber emulator, anew at each start.\n${lines.join('')}`,
    'state.json': JSON.stringify(state, null, 2),
  }
  try {
    await mkdir(folder, { mode: 0o700, recursive: true })
    for (const [name, text] of Object.entries(texts)) {
      // Renamed, so that a file is whole whenever its emulator is killed.
      const unfinished = join(folder, `${name}.new`)
      await writeFile(unfinished, text, { mode: 0o600 })
      await rename(unfinished, join(folder, name))
    }
    const { mode } = await stat(join(folder, 'env'))
    return process.platform !== 'win32' && (mode & 0o077) !== 0
  } catch (error) {
    throw new UsageError(`${folder} cannot be written: ${messageOf(error)}. Name another folder with --state`)
  }
}
