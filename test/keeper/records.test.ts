/** Records on a store whose answers may come in another order than the questions. */
import { expect, test } from 'vitest'
import { Configuration, NewestConfiguration } from '../../src/keeper/configuration.js'
import { KeeperStore } from '../../src/keeper/keeper-store.js'
import { Records } from '../../src/keeper/records.js'
import { Reporter } from '../../src/keeper/reporter.js'
import { Users } from '../../src/keeper/users.js'
import type { KeyValueStore } from '../../src/stores/key-value-store.js'
import { deferred } from '../support/deferred.js'
import { key, known, recordOf, spec } from './fixtures.js'

test('a reading that a claim has overtaken does not hide the claim', async () => {
  const map = new Map<string, string>()
  let answering: Promise<unknown> = Promise.resolve()
  const store: KeyValueStore = {
    async get(name) {
      const text = map.get(name)
      await answering
      return text
    },
    set: (name, text) => void map.set(name, text),
    delete: (name) => map.delete(name),
    compareAndSet(name, expected, text) {
      if (map.get(name) !== expected) return false
      map.set(name, text)
      return true
    },
  }
  const users = new Users()
  const reporter = new Reporter({ name: 'coaching', logger: false })
  const { problems } = reporter
  const keeperStore = new KeeperStore(store, 'coaching', problems)
  const newest = new NewestConfiguration(new Configuration(spec, {}), { store: keeperStore, users, problems })
  const records = new Records({ store: keeperStore, users, newest, reporter })
  const user = users.add('alice', true)
  const record = recordOf(known)
  const create = { kind: 'create', key } as const
  await records.claim(user, record, create)
  await records.settle(user, record)

  const answer = deferred<void>()
  answering = answer.promise
  const reading = records.read(user)
  answering = Promise.resolve()
  await records.claim(user, record, create)
  answer.resolve()
  await reading
  expect(user.record?.claim?.call).toBe('create')
  await records.settle(user, record)
  expect(map.get(`coaching:${user.key}`)).not.toContain('claim')
})
