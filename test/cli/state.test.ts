/** The folder of an emulator, as one start leaves it and the next one finds it. */
import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { expect, test, vi } from 'vitest'
import { type EmulatorState, saveState } from '../../src/cli/state.js'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { createCertificate } from '../support/certificates.js'
import { call, folderOfTest, newState, start } from './support.js'

const fileSystem = vi.hoisted(() => ({ keepsModes: true }))
vi.mock('node:fs/promises', async (original) => {
  const fs = await original<typeof import('node:fs/promises')>()
  const stat = async (path: string) => (fileSystem.keepsModes ? fs.stat(path) : { mode: 0o100_777 })
  return { ...fs, stat }
})

async function folderWith(state: EmulatorState): Promise<string> {
  const folder = await folderOfTest()
  await saveState(folder, state, {})
  return folder
}

test('a file system that keeps no modes is a warning', async () => {
  const folder = await folderOfTest()
  expect(await saveState(folder, newState(), {})).toBe(false)
  fileSystem.keepsModes = false
  expect(await saveState(folder, newState(), {})).toBe(true)
  fileSystem.keepsModes = true
})

test('Node.js reads the variables as they are, whatever is in the name of the folder', async () => {
  const folder = join(await folderOfTest(), `it's "$HOME" #1 ü\\n`)
  const variables = { NOTIFICATION_CA_FILE: join(folder, 'ca.pem'), CALLBACK_TOKEN: 'token' }
  await saveState(folder, newState(), variables)
  expect(parseEnv(await readFile(join(folder, 'env'), 'utf8'))).toEqual(variables)
})

test('a certificate is kept, but not if it is damaged or in its last month, and not for another host', async () => {
  const old = createCertificate({ validUntil: Date.now() + 29 * 24 * 60 * 60 * 1000 })
  const folder = await folderWith({ ...newState(), ...old })
  const caOf = async (...flags: string[]) => {
    const emulator = await start(['emulator', '--json', '--state', folder, '--port', '0', ...flags])
    const { caFile } = JSON.parse(await emulator.line(/"listening"/))
    emulator.child.kill('SIGTERM')
    await emulator.ended
    return readFile(caFile, 'utf8')
  }
  const renewed = await caOf()
  expect(renewed).not.toBe(old.ca)
  expect(await caOf()).toBe(renewed)
  expect(await caOf('--host', '127.0.0.2')).not.toBe(renewed)
  const ofAnotherKey = { ...newState().tls, key: createLoopbackCertificate().tls.key }
  for (const damage of [{ ca: 'x' }, { tls: ofAnotherKey }]) {
    await saveState(folder, { ...newState(), ...damage }, {})
    expect(await caOf()).toContain('BEGIN CERTIFICATE')
  }
})

test('a folder that cannot be written is one sentence', async () => {
  const folder = await folderOfTest()
  await mkdir(join(folder, 'env.new'))
  const { code, stderr } = await call(['emulator', '--state', folder])
  expect([code, stderr]).toEqual([
    2,
    expect.stringMatching(`^${folder} cannot be written: EISDIR.* --state$`),
  ])
})
