/** Several keepers of one process. */
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { expect, onTestFinished, test } from 'vitest'
import { Bench } from './bench.js'

/** Replaces `pbkdf2` for one test. */
function install(pbkdf2: typeof crypto.pbkdf2): void {
  Object.assign(crypto, { pbkdf2 })
  syncBuiltinESMExports()
}

test('keepers that start together leave threads for the names and files of others', async () => {
  const { pbkdf2 } = crypto
  onTestFinished(() => install(pbkdf2))
  const hashes = { inFlight: 0, most: 0, count: 0 }
  install((password, salt, _iterations, length, digest, callback) => {
    hashes.count += 1
    hashes.inFlight += 1
    hashes.most = Math.max(hashes.most, hashes.inFlight)
    pbkdf2(password, salt, 1, length, digest, (...result) => {
      hashes.inFlight -= 1
      callback(...result)
    })
  })
  await using bench = await Bench.start()
  const keepers = Array.from({ length: 12 }, (_, index) => bench.keeper({ name: `tenant ${index}` }))
  const reports = await Promise.all(keepers.map((keeper) => keeper.sweep()))
  expect(reports.map(({ problems }) => problems)).toEqual(keepers.map(() => []))
  expect(hashes).toMatchObject({ inFlight: 0, most: 2 })
  expect(hashes.count).toBeGreaterThanOrEqual(keepers.length)
})
