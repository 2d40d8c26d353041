/** A bundler that puts undici into an ES module takes its `require` away: the first call says what to do. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { build } from 'esbuild'
import { expect, test } from 'vitest'
import { expectPage } from '../support/message-page.js'
import { temporaryFolder } from '../support/temporary-folder.js'

const run = promisify(execFile)
const root = fileURLToPath(new URL('../..', import.meta.url))

const program = `
import { NotificationClient, NotificationError } from './src/index.js'

const options = { baseUrl: 'https://service.example.com', auth: { getAccessToken: () => 'token' } }
const outcomes = []
// Twice: what is loaded for the second time is a module that was left half made.
for (const client of [new NotificationClient(options), new NotificationClient(options)]) {
  const error = await client.unsubscribe(1).catch((reason) => reason)
  outcomes.push([error instanceof NotificationError, error.code, error.message, error.issues])
}
const fetch = async () => new Response(null, { status: 204 })
outcomes.push(await new NotificationClient({ ...options, fetch }).unsubscribe(1) ?? 'works with fetch')
console.log(JSON.stringify(outcomes))
`

test('every call without a fetch rejects with a NotificationError that names the ways out', async () => {
  await using folder = await temporaryFolder()
  const outfile = join(folder.path, 'bundle.mjs')
  await build({
    stdin: { contents: program, resolveDir: root, loader: 'ts' },
    bundle: true,
    format: 'esm',
    platform: 'node',
    outfile,
    logLevel: 'silent',
  })
  const { stdout } = await run(process.execPath, [outfile])
  const [first, second, withFetch] = JSON.parse(stdout)
  const refused = [
    true,
    'CONFIGURATION',
    expect.any(String),
    [{ path: ['dispatcher'], message: expect.any(String) }],
  ]
  expect([first, second, withFetch]).toEqual([refused, refused, 'works with fetch'])
  // In brackets stands what the bundler left of undici.
  const messageOf = ([, , message]: string[]) => message?.replace(/\(.+\)/, '(<reason>)') ?? ''
  await expectPage('bundled', { 'the first client': messageOf(first), 'the second one': messageOf(second) })
})
