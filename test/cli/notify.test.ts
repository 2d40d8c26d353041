import { stat } from 'node:fs/promises'
import { createServer, type ServerResponse } from 'node:http'
import { join } from 'node:path'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { getGlobalDispatcher, MockAgent, setGlobalDispatcher } from 'undici'
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { notifyCommand } from '../../src/cli/notify.js'
import { saveState } from '../../src/cli/state.js'
import { created, Receiver } from '../emulator/support.js'
import { serving } from '../support/listen.js'
import { temporaryFolder } from '../support/temporary-folder.js'
import { call, newState } from './support.js'

let emulator: Emulator
let receiver: Receiver
beforeAll(async () => {
  emulator = await startEmulator({ page: true })
  receiver = await Receiver.startInsecure()
})
afterAll(async () => {
  await emulator.close()
  await receiver[Symbol.asyncDispose]()
})

const notify = (...args: string[]) => call(notifyCommand, ['--page-url', emulator.pageUrl ?? '', ...args])
const lowEnergy = ['--type', 'lowEnergyAgentOpened', '--user', 'alice']

describe('notification-subscriber notify', () => {
  test('without any subscription says so', async () => {
    const { code, stdout } = await notify(...lowEnergy)
    expect(code).toBe(1)
    expect(stdout).toMatch(/^✘ Nothing was sent: .*\n {2}There is no subscription at all/)
  })

  test('fills in category and payload, finds the emulator by --state, and prints each answer', async () => {
    const subscriptionId = await created(emulator, { users: 'alice', url: receiver.url })
    await using folder = await temporaryFolder()
    await saveState(folder.path, { ...newState(), pageUrl: emulator.pageUrl ?? '' }, {})
    expect(await call(notifyCommand, ['--state', folder.path, ...lowEnergy])).toEqual({
      code: 0,
      stdout: `✔ lowEnergyAgentOpened of alice to subscription ${subscriptionId} at ${receiver.url}: answered 204`,
      stderr: '',
    })
    expect(receiver.callbacks.at(-1)?.body.notification).toMatchObject({
      type: 'lowEnergyAgentOpened',
      payload: { username: 'alice', idx: 0 },
    })
    const custom = '--type brandNew --category behavioral --payload {"a":1} --user alice'.split(' ')
    expect((await notify(...custom)).code).toBe(0)
    expect(receiver.callbacks.at(-1)?.body.notification).toMatchObject({
      type: 'brandNew',
      payload: { a: 1 },
    })
  })

  test('asks no proxy for the page, also if Node.js uses one for every request', async () => {
    const before = getGlobalDispatcher()
    const proxy = new MockAgent()
    proxy.disableNetConnect()
    setGlobalDispatcher(proxy)
    onTestFinished(() => setGlobalDispatcher(before))
    expect(await notify('--type', 'silenceHighOpened', '--user', 'proxied')).toMatchObject({
      code: 1,
      stderr: '',
    })
  })

  test('creates no folder for a mistake in --state', async () => {
    await using folder = await temporaryFolder()
    const state = join(folder.path, 'mispelt')
    expect((await call(notifyCommand, ['--state', state, ...lowEnergy])).code).toBe(2)
    await expect(stat(state)).rejects.toMatchObject({ code: 'ENOENT' })
  })

  test('a callback that fails is exit code 1, and the end of the subscription is named', async () => {
    const subscriptionId = await created(emulator, { users: 'bob', url: receiver.url })
    receiver.reactions.push(500, 500, 500)
    const answers = []
    for (let i = 0; i < 3; i++)
      answers.push(await notify('--type', 'silenceHighOpened', '--user', 'bob', '--json'))
    const failure = {
      event: 'callback',
      subscriptionId,
      callbackUrl: receiver.url,
      status: 500,
      error: expect.stringContaining('500'),
    }
    expect(answers.map(({ code, stdout }) => [code, JSON.parse(stdout)])).toEqual([
      [1, { ...failure, subscriptionEnded: false }],
      [1, { ...failure, subscriptionEnded: false }],
      [1, { ...failure, subscriptionEnded: true }],
    ])
  })

  test('says where the reason of a 401 and of an untrusted certificate is mended', async () => {
    await created(emulator, { users: 'carol', url: receiver.url })
    receiver.reactions.push(401)
    const carol = ['--type', 'silenceHighOpened', '--user', 'carol']
    expect((await notify(...carol)).stdout).toMatch(/status 401\n {2}→ See callback\.refused/)
    await using stranger = await startEmulator()
    await created(emulator, { users: 'carol', url: `${stranger.baseUrl}/` })
    expect((await notify(...carol)).stdout).toMatch(/→ .*--callback-ca$/)
  })

  test('without a match lists who is subscribed', async () => {
    for (let i = 0; i < 25; i++) await created(emulator, { users: `user-${i}`, types: 'call-score' })
    const { code, stdout } = await notify(...lowEnergy.slice(0, 2), '--user', 'nobody')
    expect(code).toBe(1)
    const lines = stdout.split('\n')
    expect(lines[0]).toBe('✘ Nothing was sent: no subscription is for lowEnergyAgentOpened of nobody.')
    expect(lines.slice(1, 3)).toEqual([
      '  Subscribed are:',
      expect.stringMatching(/^ {4}\d+ {2}user-24: call-score$/),
    ])
    const unsent = JSON.parse((await notify(...lowEnergy.slice(0, 2), '--user', 'nobody', '--json')).stdout)
    expect(unsent).toMatchObject({ event: 'unsent' })
    expect(unsent.subscribed).toHaveLength(20)
  })

  test.each([
    ['--type', ['--type', 'brandNew', '--user', 'a']],
    ['--category', ['--type', 'a', '--user', 'a', '--category', 'b']],
    ['--type', ['--type', 'lowEnergyAgentOpend', '--user', 'a']],
  ])('what the emulator refuses names the flag %s, and is exit code 2', async (flag, args) => {
    const { code, stdout, stderr } = await notify(...args)
    expect([code, stdout]).toEqual([2, ''])
    expect(stderr).toMatch(new RegExp(`^${flag} `))
  })

  test.each([
    ['accepts the connection and never answers', () => {}],
    ['never ends its answer', (_: unknown, response: ServerResponse) => response.write(' ')],
  ])('a program that %s is given up', async (_, answer) => {
    await using server = await serving(createServer(answer))
    const pageUrl = `http://${server.host}/x/`
    const soon = AbortSignal.timeout(200)
    const limit = vi.spyOn(AbortSignal, 'timeout').mockReturnValue(soon)
    const { code, stderr } = await call(notifyCommand, [...lowEnergy, '--page-url', pageUrl])
    limit.mockRestore()
    expect([code, stderr]).toEqual([2, expect.stringMatching(/is this the page|Is the emulator running/)])
  })

  test('the address of an earlier start, and one that is no page, are refused', async () => {
    for (const path of ['../other/', '/']) {
      const pageUrl = new URL(path, emulator.pageUrl).href
      const { code, stderr } = await notify(...lowEnergy, '--page-url', pageUrl)
      expect([code, stderr]).toEqual([2, expect.stringMatching(/earlier start/)])
    }
  })
})
