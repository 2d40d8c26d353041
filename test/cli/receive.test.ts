import { createServer } from 'node:http'
import { join } from 'node:path'
import { startEmulator } from 'notification-subscriber/emulator'
import { sampleDelivery } from 'notification-subscriber/webhooks'
import { expect, test } from 'vitest'
import { saveState } from '../../src/cli/state.js'
import { clientVariables } from '../../src/emulator/words.js'
import { serving } from '../support/listen.js'
import { call, folderOfTest, newState, start } from './support.js'

const env = { CALLBACK_TOKEN: 'hush-hush-hush-hush' }

function post(url: string, body: string, token = env.CALLBACK_TOKEN): Promise<Response> {
  return fetch(url, { method: 'POST', headers: { token }, body })
}

test('prints who, type and payload of each callback, refuses a wrong secret, and passes a check', async () => {
  const running = await start(['receive', '--port', '0'], env)
  const [, url = ''] = /Callbacks to (\S+) are printed here\. Next/.exec(await running.line(/Next/)) ?? []
  expect(await running.line(/ subscribe /)).toContain(
    `--callback-url ${url} --parameter token=env:CALLBACK_TOKEN`,
  )
  const payload = { username: 'al\u001b[2J', idx: 1 }
  const { delivery } = sampleDelivery('lowEnergyAgentOpened', { subscriptionId: 7, payload })
  expect((await post(url, JSON.stringify(delivery))).status).toBe(204)
  expect((await post(url, JSON.stringify(delivery), 'wrong')).status).toBe(401)
  expect((await post(url, 'no JSON')).status).toBe(204)
  const checking = await call(['check', '--callback-url', url, '--secret', 'token=env:CALLBACK_TOKEN'], env)
  expect(checking.stdout.match(/✔ Callback/g)).toHaveLength(2)
  running.child.kill('SIGTERM')
  const { code, stdout, stderr } = await running.finished
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).not.toContain(env.CALLBACK_TOKEN)
  const lines = stdout
    .split('\n')
    .slice(2)
    .map((line) => line.replace(/^[\d:]{8} {2}/, ''))
  expect(lines).toEqual([
    expect.stringMatching(
      /^al \[2J, subscription 7 {2}lowEnergyAgentOpened {2}\{.*"username":"al\\u001b\[2J".*"idx":1\}$/,
    ),
    expect.stringMatching(/^refused with 401 {2}.*token/),
    expect.stringMatching(/^no delivery .* no JSON$/),
    expect.stringMatching(/^refused with 401 {2}.*token/),
    'SIGTERM: answering what has arrived …',
    'Closed.',
  ])
})

test('beside the emulator an operator sees a notification without a program of their own', async () => {
  await using emulator = await startEmulator()
  const folder = await folderOfTest()
  const variables = { ...clientVariables(emulator, join(folder, 'ca.pem')), ...env }
  await saveState(folder, { ...newState(), ca: emulator.ca }, variables)
  const file = join(folder, 'env')
  const running = await start(['receive', '--json', '--port', '0', '--dotenv', file])
  const { url } = JSON.parse(await running.line(/listening/))
  const secret = ['--parameter', 'token=env:CALLBACK_TOKEN', '--dotenv', file]
  await call(['subscribe', '--type', 'behavioral', '--user', 'alice', '--callback-url', url, ...secret])
  const [result] = await emulator.notify({ type: 'lowEnergyAgentOpened', username: 'alice' })
  expect(result?.status).toBe(204)
  const { event, subscriptionId, notification } = JSON.parse(await running.line(/"callback"/))
  expect([event, subscriptionId]).toEqual(['callback', result?.subscriptionId])
  expect(notification).toMatchObject({ type: 'lowEnergyAgentOpened', payload: { username: 'alice' } })
  running.child.kill('SIGINT')
  expect((await running.finished).code).toBe(0)
  expect(JSON.parse(running.lines.at(-1) ?? '')).toEqual({ event: 'closed' })
})

test('a port that is taken is a sentence and exit code 2', async () => {
  await using other = await serving(createServer())
  const [, port = ''] = other.host.split(':')
  const { code, stderr } = await call(['receive', '--port', port], env)
  expect([code, stderr]).toEqual([2, expect.stringContaining(`--port ${port}`)])
})
