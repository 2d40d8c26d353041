import { execFile } from 'node:child_process'
import { readdir } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

const received = ['Subscription 1: alice sounds tired on call-1', 'The service was answered with 204']

const examples: Record<string, string[]> = {
  'keep-roster.ts': [
    '200 subscribed',
    '1 joined, 1 left',
    'agent-7 was without notifications: ended',
    '200 of 200 are active',
  ],
  'receive-express.ts': received,
  'receive-fastify-json-schema.ts': received,
  'receive-fastify.ts': received,
  'receive-hono.ts': received,
  'receive-lambda.ts': received,
  'receive-nest.ts': received,
  'receive-node-https.ts': received,
  'rotate-callback-token.ts': [
    'Refused during the rotation: 0',
    'Refused: the header "token" is wrong',
    'The old token is answered with 401',
  ],
  'spool-and-work.ts': [
    'The service was answered with 204',
    'Subscription 1: alice sounds tired on call-1, attempt 2',
  ],
}

describe('the examples to copy', () => {
  test('are all in this table', async () => {
    const files = await readdir(new URL('../../examples', import.meta.url))
    expect(
      files.filter((file) => /^(keep-roster\.ts|receive-|rotate-|spool-and-)/.test(file)).sort(),
    ).toEqual(Object.keys(examples))
  })

  test.each(Object.entries(examples))('%s runs as it is, and ends by itself', async (file, lines) => {
    const { stdout, stderr } = await run(process.execPath, ['--import', 'tsx', `examples/${file}`], {
      cwd: root,
      timeout: 100_000,
    })
    expect(stderr).toBe('')
    expect(stdout.trim().split('\n')).toEqual(expect.arrayContaining(lines))
  })

  // ioredis would connect to port 6379 of this machine, which may be somebody else's Redis.
  const onRedis = ['keep-roster-redis.ts', 'spool-to-bullmq.ts', 'spool-to-bullmq-worker.ts']
  test.each(onRedis)('%s asks for REDIS_URL', async (file) => {
    const program = run(process.execPath, ['--import', 'tsx', `examples/${file}`], {
      cwd: root,
      env: { ...process.env, REDIS_URL: '' },
      timeout: 100_000,
    })
    await expect(program).rejects.toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Error: REDIS_URL is missing: set it to the address of your Redis'),
    })
  })
})
