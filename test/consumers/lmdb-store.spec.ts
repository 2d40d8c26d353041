import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { RedisStore } from 'notification-subscriber/redis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import {
  describeCompareAndSet,
  describeKeyValueStore,
  newKey,
} from '../support/key-value-store-conformance.js'
import { node, project } from './support/project.js'

let folder: string
let opened: { store: RedisStore; close(): Promise<void> }

beforeAll(async () => {
  folder = await project(['lmdb-store.mjs', 'count-up.mjs'])
  const { openLmdbStore } = await import(pathToFileURL(join(folder, 'lmdb-store.mjs')).href)
  opened = openLmdbStore(join(folder, 'data'))
})
afterAll(() => opened.close())

describeKeyValueStore('lmdb', () => opened.store, { expires: false })
describeCompareAndSet('lmdb', () => [opened.store, opened.store, opened.store], { expires: false })

test('compareAndSet of lmdb loses no step of a counter that several processes count up', async () => {
  const key = newKey()
  const run = () => node(folder, 'count-up.mjs', join(folder, 'data'), key, '100')
  await Promise.all([run(), run(), run()])
  expect(await opened.store.get(key)).toBe('300')
})
