import { expect, test, vi } from 'vitest'
import { Bench } from './bench.js'

const hashes = vi.hoisted(() => ({ inFlight: 0, most: 0, count: 0 }))

vi.mock('node:crypto', async (importOriginal) => {
  const crypto = await importOriginal<typeof import('node:crypto')>()
  const pbkdf2: typeof crypto.pbkdf2 = (password, salt, _iterations, length, digest, callback) => {
    hashes.count += 1
    hashes.inFlight += 1
    hashes.most = Math.max(hashes.most, hashes.inFlight)
    crypto.pbkdf2(password, salt, 1, length, digest, (...result) => {
      hashes.inFlight -= 1
      callback(...result)
    })
  }
  return { ...crypto, pbkdf2 }
})

test('keepers that start together leave threads for the names and files of others', async () => {
  await using bench = await Bench.start()
  const keepers = Array.from({ length: 12 }, (_, index) => bench.keeper({ name: `tenant ${index}` }))
  const reports = await Promise.all(keepers.map((keeper) => keeper.sweep()))
  expect(reports.map(({ problems }) => problems)).toEqual(keepers.map(() => []))
  expect(hashes).toMatchObject({ inFlight: 0, most: 2 })
  expect(hashes.count).toBeGreaterThanOrEqual(keepers.length)
})
