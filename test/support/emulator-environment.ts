/** The environment of a program whose service is an emulator. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Emulator } from 'notification-subscriber/emulator'
import { clientVariables } from '../../src/emulator/words.js'

/** `NOTIFICATION_*` as the command line prints them, with the authority in a file of this folder, and no proxy. */
export async function environmentOf(emulator: Emulator, folder: string): Promise<Record<string, string>> {
  const caFile = join(folder, 'ca.pem')
  await writeFile(caFile, emulator.ca)
  return { ...clientVariables(emulator, caFile), NO_PROXY: '127.0.0.1', no_proxy: '127.0.0.1' }
}
