import { expect, test } from 'vitest'
import { Program } from '../integration/chaos/support/program.js'
import { freePort } from '../support/listen.js'
import { numbered, spoolFolder, until } from './support.js'

test('examples/spool-and-work.mts does the work of what it has answered, and says what to do next', async () => {
  await using folder = await spoolFolder()
  const port = await freePort()
  const lines: string[] = []
  const env = { CALLBACK_TOKEN: 's', SPOOL_PATH: folder.path, PORT: String(port) }
  await using program = new Program('spool-and-work', 'examples/spool-and-work.mts', env, (line) =>
    lines.push(line),
  )
  await program.start()
  const answer = await fetch(`http://127.0.0.1:${port}/`, {
    method: 'POST',
    headers: { token: 's', 'content-type': 'application/json' },
    body: JSON.stringify(numbered(1)),
  })
  expect(answer.status).toBe(204)
  await until(() => lines.includes('Subscription 1: cxScoreUpdated n1 is done'))
  expect(lines[0]).toBe(`Listening on http://127.0.0.1:${port}, with 0 deliveries of an earlier run.`)
  await program.end()
  expect(lines.at(-1)).toMatch(/^Stopped: 0 deliveries are left for the next start/)
})
