/** The worked examples run as they are, each in a process of its own that ends by itself. */
import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

const example = (name: string) =>
  run(process.execPath, ['--import', 'tsx', `examples/${name}.ts`], { cwd: root, timeout: 100_000 })

describe('the worked examples', () => {
  test('a start-up settles a busy service, a conflict, an unknown outcome and an overlap', async () => {
    const { stdout, stderr } = await example('resilient-startup')
    expect(stderr).toBe('')
    expect(stdout.match(/^settled .*$/gm)).toEqual([
      expect.stringContaining('subscription 1 for alice,bob, and no other'),
      expect.stringContaining('subscription 2 for alice,bob, and no other'),
      expect.stringContaining('subscription 4 for alice,bob, and no other'),
      expect.stringContaining('subscription 5 for alice,bob,carol, and no other'),
    ])
    for (const code of ['SUBSCRIPTION_CONFLICT', 'OUTCOME_UNKNOWN']) expect(stdout).toContain(code)
  })

  test('a corporate proxy carries tunnels, and the messages say what is missing', async () => {
    const { stdout, stderr } = await example('corporate-proxy')
    expect(stderr).toBe('')
    expect(stdout).toMatch(
      /^Subscription 1 was created through the proxy, which saw CONNECT 127\.0\.0\.1:\d+/,
    )
    expect(stdout).toMatch(/With no authority: .*not trusted here/)
    expect(stdout).toMatch(/With no password: .*407/)
  })
})
