/** The examples that need a Redis. The others: `test/frameworks/examples.test.ts`. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { RedisServer } from '../support/redis-server.js'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

test('keep-roster-redis.ts runs as it is: one process takes over from the other', async () => {
  await using redis = await RedisServer.start()
  const { stdout, stderr } = await run(
    process.execPath,
    ['--import', 'tsx', 'examples/keep-roster-redis.ts'],
    {
      cwd: root,
      env: { ...process.env, REDIS_URL: redis.url },
      timeout: 200_000,
    },
  )
  expect(stderr).toBe('')
  expect(stdout.trim().split('\n')).toEqual(
    expect.arrayContaining([
      'The first process has subscribed alice, bob, carol',
      'It has stopped, and 3 subscriptions stay',
      'The second process has restored bob',
    ]),
  )
})
