/** Run by Vitest before all tests: makes the emulator's page where the emulator's sources look for it. */
import { fileURLToPath } from 'node:url'
import { writePage } from '../../scripts/build-page.js'

export async function setup(): Promise<void> {
  await writePage(fileURLToPath(new URL('../../src/emulator/page/page.html', import.meta.url)))
}
