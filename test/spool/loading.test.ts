import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { ConfigurationError } from 'notification-subscriber'
import { afterEach, expect, test, vi } from 'vitest'
import { openSpool, spoolFolder } from './support.js'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

afterEach(() => void vi.doUnmock('lmdb'))

test('an app that lacks lmdb gets one sentence, at open', async () => {
  await using folder = await spoolFolder()
  vi.doMock('lmdb', () => {
    throw new Error("Cannot find package 'lmdb'")
  })
  const error = await openSpool({ path: folder.path, deliver: () => {} }).catch((reason) => reason)
  expect(error).toBeInstanceOf(ConfigurationError)
  expect(error.message).toMatch(
    /^The delivery spool cannot work: the package lmdb cannot be loaded \(.*\): run "npm install lmdb"\.$/,
  )
  expect(error.cause).toBeDefined()
})

test('importing the spool, or any other door, loads no lmdb', async () => {
  const program = `
    for (const door of ['', '/webhooks', '/spool', '/emulator']) await import('notification-subscriber' + door)
    const loaded = process.report.getReport().sharedObjects.filter((file) => file.includes('lmdb'))
    console.log(JSON.stringify(loaded))
  `
  const { stdout } = await run(
    process.execPath,
    ['--import', 'tsx', '--input-type=module', '--eval', program],
    { cwd: root },
  )
  expect(JSON.parse(stdout)).toEqual([])
})
