import type { DeliveryReceiver, SecretsSource } from 'notification-subscriber/webhooks'
import { afterEach, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { runBlock } from '../integration/frameworks/support/page-blocks.js'
import { expectPage } from '../support/message-page.js'
import { post, recordingReceiver } from './support.js'

/** Functions of JavaScript, which no type stops. */
const untyped = (source: unknown) => source as SecretsSource

function receive(secrets: SecretsSource) {
  const { receiver, lines } = recordingReceiver({ secrets })
  const status = async (headers: Record<string, string> = {}) => (await receiver.handle(post(headers))).status
  const failures = () =>
    lines
      .filter(({ fields }) => Object(fields).event === 'secrets.failed')
      .map(({ fields, message }) => `${message} (${Object(fields).err.message})`)
  return { receiver, status, lines, failures }
}

const vaultIsDown = () => {
  throw new Error('the vault is down')
}

/** Fails the test if a promise is rejected that nothing handles. */
const unhandled = vi.fn()
beforeEach(() => void process.on('unhandledRejection', unhandled))
afterEach(async () => {
  await new Promise(setImmediate)
  process.off('unhandledRejection', unhandled)
  expect(unhandled).not.toHaveBeenCalled()
})

describe('a function for secrets', () => {
  const token = 'the-secret-of-acme'

  test('is called for each callback, gives each tenant its own, and undefined refuses', async () => {
    const tenants = new Map([['acme', { token }]])
    const { status, failures } = receive(({ header }) => tenants.get(header('X-Tenant') ?? ''))
    const acme = { 'x-tenant': 'acme', token }
    expect(await status(acme)).toBe(204)
    expect(await status({ ...acme, 'x-tenant': 'unknown' })).toBe(401)
    expect(await status({ token })).toBe(401)
    tenants.set('unknown', { token }).delete('acme')
    expect(await status({ ...acme, 'x-tenant': 'unknown' })).toBe(204)
    expect(await status(acme)).toBe(401)
    expect(failures()).toEqual([])
  })

  test.each<[what: string, source: unknown]>([
    ['a promise', async () => ({ token })],
    ['a promise that is rejected', async () => vaultIsDown()],
    ['a thenable', () => Object.fromEntries([['then', (resolve: () => void) => resolve()]])],
    ['a promise as a value', () => ({ token: Promise.reject(new Error('later')) })],
    ['promises in a list', () => ({ token: [Promise.reject(new Error('later'))] })],
  ])('that returns %s is refused at construction', (_, source) => {
    const issues = [{ path: ['secrets'], message: expect.stringContaining('must be synchronous') }]
    expect(() => receive(untyped(source))).toThrow(expect.objectContaining({ issues }))
  })

  const wrong: [what: string, result: () => unknown][] = [
    ['a promise', async () => ({ token })],
    ['a promise that is rejected', async () => vaultIsDown()],
    ['a promise as a value', () => ({ token: Promise.reject(new Error('later')) })],
    ['an empty object', () => ({})],
    ['null', () => null],
    ['a list', () => [token]],
    ['a value that is missing', () => ({ token: undefined })],
    ['an empty value', () => ({ token: '' })],
    ['no values', () => ({ token: [] })],
    ['a placeholder', () => ({ token: 'undefined' })],
    ['a throw', vaultIsDown],
  ]

  test('that then returns what cannot work refuses everyone: 401, and the reviewed line', async () => {
    let result: () => unknown = () => ({ token })
    const { status, failures } = receive(untyped(() => result()))
    const lines: Record<string, string> = {}
    for (const [what, wrongResult] of wrong) {
      result = wrongResult
      const before = failures().length
      for (const sent of [{}, { token }, { token: '' }, { token: 'undefined' }]) {
        expect([what, await status(sent)]).toEqual([what, 401])
      }
      expect(failures()).toHaveLength(before + 4)
      lines[what] = failures().at(-1) ?? ''
    }
    await expectPage('secrets-that-fail', lines)
    result = () => ({ token })
    expect(await status({ token })).toBe(204)
  })

  test('that throws or has nothing when the receiver is made counts at the callback: a build needs no secret', async () => {
    for (const result of [vaultIsDown, () => ({ token: undefined }), () => ({ token: '' }), () => null]) {
      let current: () => unknown = result
      const { status, failures } = receive(untyped(() => current()))
      expect(failures()).toEqual([])
      expect(await status({ token })).toBe(401)
      current = () => ({ token })
      expect(await status({ token })).toBe(204)
    }
  })

  test('that gives a short secret is logged once', async () => {
    const { status, lines } = receive(() => ({ token: 'short' }))
    for (let time = 0; time < 2; time += 1) expect(await status({ token: 'short' })).toBe(204)
    expect(lines.filter(({ fields }) => Object(fields).event === 'secret.short')).toHaveLength(1)
  })
})

describe('the program of the page (docs/receiver.md, Secrets that change)', () => {
  const old = 'current-0123456789abcdef'
  const next = 'next-0123456789abcdef'

  /** Runs it on a vault, in virtual time. */
  async function program(read: () => Promise<Map<string, { token: string[] }>>) {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    vi.spyOn(console, 'error').mockImplementation(() => {})
    onTestFinished(() => void vi.useRealTimers().restoreAllMocks())
    const { receiver } = await runBlock('Secrets that change', { vault: { read } })
    const status = async (tenant: string, token: string) =>
      (await (receiver as DeliveryReceiver).handle(post({ 'x-tenant': tenant, token }))).status
    /** A true callback each second, beside a wrong one. Resolves with how many were refused. */
    const refusedIn = async (seconds: number, token: string) => {
      const refused = { true: 0, wrong: 0 }
      for (let second = 0; second < seconds; second += 1) {
        if ((await status('acme', token)) === 401) refused.true += 1
        if ((await status('acme', 'wrong')) === 401) refused.wrong += 1
        await vi.advanceTimersByTimeAsync(1_000)
      }
      return refused
    }
    return { status, refusedIn }
  }

  test('a rotation refuses no true callback, beside a wrong one a second', async () => {
    let token = [old]
    const { refusedIn, status } = await program(async () => new Map([['acme', { token }]]))
    expect(await refusedIn(25, old)).toEqual({ true: 0, wrong: 25 })
    token = [next, old]
    expect(await refusedIn(60, old)).toEqual({ true: 0, wrong: 60 })
    // The subscription has the new value.
    expect(await refusedIn(60, next)).toEqual({ true: 0, wrong: 60 })
    token = [next]
    expect(await refusedIn(60, next)).toEqual({ true: 0, wrong: 60 })
    expect(await status('acme', old)).toBe(401)
  })

  test.each<[how: string, read: () => Promise<never>]>([
    ['fails', async () => vaultIsDown()],
    ['throws', vaultIsDown],
    ['hangs', () => new Promise(() => {})],
  ])('a vault that %s refuses no callback', async (_, dead) => {
    let read = async () => new Map([['acme', { token: [old] }]])
    const { refusedIn } = await program(() => read())
    read = dead
    expect(await refusedIn(120, old)).toEqual({ true: 0, wrong: 120 })
  })
})
