import { createServer } from 'node:https'
import { networkInterfaces } from 'node:os'
import { startEmulator } from 'notification-subscriber/emulator'
import { getGlobalDispatcher, MockAgent, setGlobalDispatcher } from 'undici'
import { expect, onTestFinished, test } from 'vitest'
import { saveState } from '../../src/cli/state.js'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { created, Receiver } from '../emulator/support.js'
import { serving } from '../support/listen.js'
import { call, folderOfTest, newState } from './support.js'

/** An emulator with a folder, as the command line leaves it, and a receiver. */
async function running(host?: string) {
  const emulator = await startEmulator({ page: true, host })
  const receiver = await Receiver.startInsecure()
  onTestFinished(() => emulator.close())
  onTestFinished(() => receiver[Symbol.asyncDispose]())
  const { baseUrl, clientSecret, tls, ca, pageUrl = '' } = emulator
  const folder = await folderOfTest()
  await saveState(folder, { baseUrl, clientSecret, tls, ca, pageUrl, callbackToken: 'token' }, {})
  return { emulator, receiver, notify: (...args: string[]) => call(['notify', '--state', folder, ...args]) }
}

test('without a flag it sends the documented notification to the first subscribed user', async () => {
  const { emulator, receiver, notify } = await running()
  const none = await notify()
  expect(none).toMatchObject({ code: 1, stderr: '' })
  expect(none.stdout).toMatch(/^✘ Nothing was sent: .*\n {2}→ There is no subscription at all/)
  const id = await created(emulator, { users: 'bob', url: `${receiver.url}?key=hush` })
  const { code, stdout, stderr } = await notify()
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout.split('\n')).toEqual([
    `✔ lowEnergyAgentOpened of bob to subscription ${id} at ${receiver.url}?…: answered 204`,
    expect.stringContaining(emulator.pageUrl ?? ''),
  ])
  const custom = '--type brandNew --category behavioral --payload {"a":1} --user bob'.split(' ')
  expect((await notify(...custom)).code).toBe(0)
  expect(receiver.callbacks.map(({ body }) => body.notification)).toMatchObject([
    { type: 'lowEnergyAgentOpened', payload: { username: 'bob', idx: 0 } },
    { type: 'brandNew', payload: { a: 1 } },
  ])
})

const hasIpv6 = Object.values(networkInterfaces())
  .flat()
  .some((each) => each?.address === '::1')

test.skipIf(!hasIpv6)('finds an emulator that listens on ::1', async () => {
  const { notify } = await running('::1')
  expect(await notify()).toMatchObject({ code: 1, stderr: '' })
})

test('asks no proxy for the page, also if Node.js uses one for every request', async () => {
  const { notify } = await running()
  const before = getGlobalDispatcher()
  const proxy = new MockAgent()
  proxy.disableNetConnect()
  setGlobalDispatcher(proxy)
  onTestFinished(() => setGlobalDispatcher(before))
  expect(await notify()).toMatchObject({ code: 1, stderr: '' })
})

test('a callback that fails is exit code 1, and the end of the subscription is named', async () => {
  const { emulator, receiver, notify } = await running()
  const subscriptionId = await created(emulator, { users: 'bob', url: receiver.url })
  receiver.reactions.push(401, 500, 500)
  expect((await notify()).stdout).toMatch(/status 401\n {2}→ See callback\.refused/)
  await notify()
  const { code, stdout } = await notify('--json')
  const error = expect.stringContaining('500')
  const failed = { event: 'callback', subscriptionId, callbackUrl: receiver.url, status: 500, error }
  expect([code, JSON.parse(stdout)]).toEqual([1, { ...failed, subscriptionEnded: true }])
})

test('without a match says which type it needs and who is subscribed, and a mistake names its flag', async () => {
  const { emulator, notify } = await running()
  for (let i = 0; i < 25; i++) await created(emulator, { users: `user-${i}`, types: 'call-score' })
  const { code, stdout } = await notify('--user', 'user-1')
  expect(code).toBe(1)
  expect(stdout.split('\n').slice(0, 3)).toEqual([
    '✘ Nothing was sent: no subscription to behavioral is for user-1, and lowEnergyAgentOpened needs one.',
    '  → Subscribe to it, or choose --user and --type from these:',
    expect.stringMatching(/^ {4}\d+ {2}user-24: call-score \(--type cxScoreUpdated\)$/),
  ])
  const unsent = JSON.parse((await notify('--user', 'nobody', '--json')).stdout)
  expect([unsent.event, unsent.category, unsent.subscribed.length]).toEqual(['unsent', 'behavioral', 20])
  for (const [flag, value] of [
    ['--type', 'brandNew'],
    ['--user', ''],
    ['--payload', '['],
  ] as const) {
    const refused = await notify(flag, value)
    expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringMatching(`^${flag} `) })
  }
})

test('a server that is not the emulator is named, and learns nothing of its address', async () => {
  const folder = await folderOfTest()
  const seen: unknown[] = []
  const state = newState()
  const web = createServer(createLoopbackCertificate().tls, (request, response) => {
    seen.push(request.url)
    response.end('<div id=app>')
  })
  await using server = await serving(web)
  const pageUrl = `https://${server.host}/the-secret-of-the-page/`
  await saveState(folder, { ...state, baseUrl: `https://${server.host}`, pageUrl }, {})
  const { code, stderr } = await call(['notify', '--state', folder])
  expect([code, stderr]).toEqual([
    2,
    expect.stringContaining(`Another server listens at https://${server.host}.`),
  ])
  expect(seen).toEqual([])
  await saveState(folder, state, {})
  const none = await call(['notify', '--state', folder])
  expect([none.code, none.stderr]).toEqual([2, expect.stringMatching(`${folder} is not running: run .*\\.$`)])
})
