import { execFile } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { startEmulator } from 'notification-subscriber/emulator'
import { fetch as undiciFetch } from 'undici'
import { describe, expect, test } from 'vitest'
import { InvalidRequestError } from '../../src/errors.js'
import { eventually } from '../support/eventually.js'
import { createPath } from '../support/routes.js'
import { accessToken, create, created, lowEnergy, Receiver, send } from './support.js'

const program = (name: string) => fileURLToPath(new URL(`programs/${name}`, import.meta.url))
const runNode = (args: string[]) => promisify(execFile)(process.execPath, args, { timeout: 50_000 })

describe('starting', () => {
  test('each emulator is its own: address, authority, secrets', async () => {
    await using first = await startEmulator()
    await using second = await startEmulator()
    expect(first.baseUrl).toMatch(/^https:\/\/127\.0\.0\.1:\d+$/)
    expect(first.authUrl).toBe(first.baseUrl)
    for (const property of ['baseUrl', 'ca', 'clientSecret', 'password'] as const) {
      expect(first[property]).not.toBe(second[property])
    }
    // 24 random bytes.
    for (const secret of [first.clientSecret, first.password]) expect(secret).toMatch(/^[\w-]{32}$/)
  })

  test.each([
    ['0.0.0.0', 'https://127.0.0.1'],
    ['127.0.0.2', 'https://127.0.0.2'],
    ['::1', 'https://[::1]'],
    ['localhost', 'https://localhost'],
  ])('with host %s it is reached at %s, and the certificate is for it', async (host, origin) => {
    await using emulator = await startEmulator({ host })
    expect(emulator.baseUrl).toMatch(new RegExp(`^${origin.replace(/[[\]]/g, '\\$&')}:\\d+$`))
    await accessToken(emulator)
  })
})

describe('closing', () => {
  test('breaks requests that wait for a delayed answer, and connections without a request', async () => {
    const emulator = await startEmulator()
    const silent = connect(Number(new URL(emulator.baseUrl).port), '127.0.0.1')
    await once(silent, 'connect')
    emulator.injectFault('create', { delayMs: 1_000_000 }, { times: 2 })
    const delayed = expect(create(emulator)).rejects.toThrow()
    const request = new Request(emulator.baseUrl + createPath, { method: 'POST' })
    const direct = expect(emulator.fetch(request)).rejects.toBeInstanceOf(TypeError)
    await eventually(() => expect(emulator.requestCounts.create).toBe(2))
    await Promise.all([emulator.close(), once(silent, 'close'), delayed, direct])
  })

  test('aborts callbacks without an answer, and those that wait for a connection', async () => {
    const emulator = await startEmulator({ callbackTimeoutMs: 1_000_000 })
    await using receiver = await Receiver.start(emulator)
    await created(emulator, { url: receiver.url })
    receiver.reactions.push(...new Array(100).fill('hang'))
    const notified = Promise.all(Array.from({ length: 100 }, () => emulator.notify(lowEnergy)))
    await eventually(() => expect(receiver.callbacks).toHaveLength(64))
    await emulator.close()
    const messages = (await notified).flat().map(({ error }) => error?.message)
    const closed = 'The emulator was closed before the callback was answered'
    expect(messages).toHaveLength(100)
    expect(messages.slice(0, 64)).toEqual(new Array(64).fill(closed))
    // Three of those are failures in a row, and there may be nothing to send any more.
    const ended = 'The subscription ended before this callback was sent'
    expect([closed, ended]).toEqual(expect.arrayContaining(messages.slice(64)))
    expect(receiver.callbacks).toHaveLength(64)
  })

  test('can be done twice; afterwards nothing listens and nothing is sent', async () => {
    const emulator = await startEmulator()
    await created(emulator)
    await Promise.all([emulator.close(), emulator.close()])
    await emulator[Symbol.asyncDispose]()
    await expect(send(emulator, 'GET', '/')).rejects.toThrow()
    await expect(undiciFetch(emulator.baseUrl)).rejects.toMatchObject({ cause: { code: 'ECONNREFUSED' } })
    const refused = emulator.notify(lowEnergy)
    await expect(refused).rejects.toBeInstanceOf(InvalidRequestError)
    await expect(refused).rejects.toMatchObject({
      message: 'Nothing was sent: the emulator is closed.',
      issues: [{ path: [], message: 'the emulator is closed' }],
    })
  })

  test('a process that used the emulator ends by itself, also where code generation is forbidden', async () => {
    const flags = ['--disallow-code-generation-from-strings', '--import', 'tsx']
    const { stdout } = await runNode([...flags, program('start-use-close.ts')])
    expect(stdout.trim()).toBe('delivered: 204')
  })
})
