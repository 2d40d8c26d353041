import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  describeCompareAndSet,
  describeKeyValueStore,
  newKey,
} from '../support/key-value-store-conformance.js'
import { openLmdbStore } from './lmdb-store.js'

let folder: string
let opened: ReturnType<typeof openLmdbStore>
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'lmdb-store-'))
  opened = openLmdbStore(folder)
})
afterAll(async () => {
  await opened.close()
  await rm(folder, { recursive: true, force: true })
})

describeKeyValueStore('lmdb', () => opened.store, { expires: false })
describeCompareAndSet('lmdb', () => [opened.store, opened.store, opened.store], { expires: false })

test('compareAndSet of lmdb loses no step of a counter that several processes count up', async () => {
  const program = fileURLToPath(new URL('programs/count-up.ts', import.meta.url))
  const key = newKey()
  const run = () => promisify(execFile)(process.execPath, ['--import', 'tsx', program, folder, key, '100'])
  await Promise.all([run(), run(), run()])
  expect(await opened.store.get(key)).toBe('300')
})
