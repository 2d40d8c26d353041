import { DeliveryReceiver, type SecretsSource } from 'notification-subscriber/webhooks'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { expectPage } from '../support/message-page.js'
import { post, recordingLogger } from './support.js'

beforeEach(() => void vi.useFakeTimers({ toFake: ['performance', 'setTimeout', 'clearTimeout'] }))
afterEach(() => void vi.useRealTimers())

function receive(source: SecretsSource) {
  const secrets = vi.fn(source)
  const { logger, lines } = recordingLogger()
  const reasons: string[] = []
  const receiver = new DeliveryReceiver({ secrets, logger, onRefused: ({ reason }) => reasons.push(reason) })
  const status = async (headers: Record<string, string>) => (await receiver.handle(post(headers))).status
  const failures = () =>
    lines
      .filter(({ fields }) => Object(fields).event === 'secrets.failed')
      .map(({ level, fields, message }) => `${level}: ${message} (${Object(fields).err.message})`)
  return { status, secrets, reasons, failures }
}

const tenants: Record<string, string> = { acme: 'the-secret-of-acme', other: 'the-secret-of-other' }
const secretsOfTenant: SecretsSource = ({ header }) => {
  const token = tenants[header('x-tenant') ?? '']
  return token === undefined ? undefined : { token }
}

describe('secrets as a function', () => {
  test('may be asynchronous, and is called once a minute', async () => {
    const { status, secrets } = receive(async () => ({ token: 'from-the-vault-0001' }))
    expect(await status({ token: 'from-the-vault-0001' })).toBe(204)
    expect(await status({ token: 'from-the-vault-0002' })).toBe(401)
    expect(secrets).toHaveBeenCalledTimes(1)
    vi.advanceTimersByTime(60_000)
    expect(await status({ token: 'from-the-vault-0001' })).toBe(204)
    expect(secrets).toHaveBeenCalledTimes(2)
  })

  test('is asked again for a refused callback, at most every 5 seconds: the secret may be new', async () => {
    let token = 'from-the-vault-0001'
    const { status, secrets } = receive(({ header }) =>
      header('x-tenant') === 'late' && token.endsWith('1') ? undefined : { token },
    )
    const late = { 'x-tenant': 'late' }
    expect([await status({ token }), await status({ ...late, token })]).toEqual([204, 401])
    token = 'from-the-vault-0002'
    vi.advanceTimersByTime(4_999)
    expect([await status({ token }), await status({ ...late, token })]).toEqual([401, 401])
    expect(secrets).toHaveBeenCalledTimes(2)
    vi.advanceTimersByTime(1)
    expect([await status({ token }), await status({ ...late, token })]).toEqual([204, 204])
    for (let index = 0; index < 9; index += 1) expect(await status({ token: `wrong-${index}` })).toBe(401)
    expect(secrets).toHaveBeenCalledTimes(4)
  })

  test('shares one call among callbacks that arrive at the same time', async () => {
    const { status, secrets } = receive(async () => ({ token: 'from-the-vault-0001' }))
    const token = 'from-the-vault-0001'
    expect(await Promise.all([status({ token }), status({ token })])).toEqual([204, 204])
    expect(secrets).toHaveBeenCalledTimes(1)
  })

  test('gives each tenant its own, and undefined refuses', async () => {
    const { status, secrets } = receive(secretsOfTenant)
    const acme = { 'x-tenant': 'acme', token: 'the-secret-of-acme' }
    for (let turn = 0; turn < 2; turn += 1) {
      expect(await status(acme)).toBe(204)
      expect(await status({ ...acme, 'x-tenant': 'other' })).toBe(401)
      expect(await status({ ...acme, 'x-tenant': 'unknown' })).toBe(401)
      expect(await status({ token: 'the-secret-of-acme' })).toBe(401)
    }
    expect(secrets).toHaveBeenCalledTimes(4)
  })

  test('must read headers before its first await: otherwise another tenant could share the result', async () => {
    const { status, failures } = receive(async (request) => {
      await undefined
      return secretsOfTenant(request)
    })
    expect(await status({ 'x-tenant': 'acme', token: 'the-secret-of-acme' })).toBe(401)
    expect(failures()).toEqual([expect.stringContaining('before its first await')])
  })

  test('that fails, is late, or returns no secrets: the last result counts, and it is asked again after 5 seconds', async () => {
    let answer: () => unknown = () => ({ token: 'from-the-vault-0001' })
    const { status, failures, secrets } = receive(() => answer() as never)
    const token = 'from-the-vault-0001'
    expect(await status({ token })).toBe(204)
    for (const failing of [() => Promise.reject(new Error('down')), () => ({ token: '' })]) {
      answer = failing
      vi.advanceTimersByTime(60_000)
      // The second one does not ask.
      for (let callback = 0; callback < 2; callback += 1) expect(await status({ token })).toBe(204)
    }
    answer = () => ({ token: 'from-the-vault-0002' })
    vi.advanceTimersByTime(5_000)
    expect(await status({ token })).toBe(401)
    answer = () => new Promise(() => {})
    vi.advanceTimersByTime(60_000)
    const late = status({ token: 'from-the-vault-0002' })
    await vi.advanceTimersByTimeAsync(5_000)
    expect(await late).toBe(204)
    expect(secrets).toHaveBeenCalledTimes(5)
    const [rejected = '', invalid = '', tooLate = '', ...others] = failures()
    expect(others).toEqual([])
    const messages = { 'a function that rejects': rejected, 'an empty secret': invalid, 'no result': tooLate }
    await expectPage('secrets-that-fail', messages)
  })

  test('that fails before anything is known is asked again by the next callback', async () => {
    let answer: () => unknown = () => Promise.reject(new Error('down'))
    const { status, reasons } = receive(() => answer() as never)
    const token = 'from-the-vault-0001'
    expect(await status({ token })).toBe(401)
    expect(reasons).toEqual(['there are no secrets for this request'])
    answer = () => ({ token })
    expect(await status({ token })).toBe(204)
  })

  test('is asked for at most 100 strangers a second, and they push out no tenant', async () => {
    const { status, secrets } = receive(async (request) => secretsOfTenant(request))
    const acme = { 'x-tenant': 'acme', token: 'the-secret-of-acme' }
    expect(await status(acme)).toBe(204)
    for (let second = 0; second < 12; second += 1) {
      const strangers = Array.from({ length: 200 }, (_, index) =>
        status({ 'x-tenant': `${second}-${index}`, token: 'x' }),
      )
      expect(new Set(await Promise.all(strangers))).toEqual(new Set([401]))
      vi.advanceTimersByTime(1_000)
    }
    // The first second has one call for the tenant.
    expect(secrets).toHaveBeenCalledTimes(1_200)
    expect(await status(acme)).toBe(204)
    expect(secrets).toHaveBeenCalledTimes(1_200)
    // The first ones are known no more, the last ones are.
    expect(await status({ 'x-tenant': '11-0', token: 'x' })).toBe(401)
    expect(secrets).toHaveBeenCalledTimes(1_200)
    expect(await status({ 'x-tenant': '0-0', token: 'x' })).toBe(401)
    expect(secrets).toHaveBeenCalledTimes(1_201)
  })

  test('is asked for every known tenant, but for wrong secrets of tenants at most 100 times a second', async () => {
    const { status, secrets } = receive(({ header }) => ({ token: `the-secret-of-${header('x-tenant')}` }))
    const callbacks = (secretOf: (tenant: number) => string) =>
      Promise.all(
        Array.from({ length: 150 }, (_, tenant) =>
          status({ 'x-tenant': `${tenant}`, token: secretOf(tenant) }),
        ),
      )
    const secretOf = (tenant: number) => `the-secret-of-${tenant}`
    for (let second = 0; second < 2; second += 1) {
      await callbacks(secretOf)
      vi.advanceTimersByTime(1_000)
    }
    vi.advanceTimersByTime(60_000)
    expect(new Set(await callbacks(secretOf))).toEqual(new Set([204]))
    expect(secrets).toHaveBeenCalledTimes(300)
    vi.advanceTimersByTime(5_000)
    expect(new Set(await callbacks(() => 'another-secret-0001'))).toEqual(new Set([401]))
    expect(secrets).toHaveBeenCalledTimes(400)
  })

  test('forgets a tenant for whom it has no secrets any more', async () => {
    let secret: string | undefined = 'the-secret-of-acme'
    const { status } = receive(() => (secret === undefined ? undefined : { token: secret }))
    expect(await status({ token: 'the-secret-of-acme' })).toBe(204)
    secret = undefined
    vi.advanceTimersByTime(60_000)
    expect(await status({ token: 'the-secret-of-acme' })).toBe(401)
  })

  test('is not asked for a probe', async () => {
    const { secrets } = receive(() => undefined)
    const receiver = new DeliveryReceiver({ secrets, logger: false })
    expect((await receiver.handle({ ...post(), method: 'GET' })).status).toBe(405)
    expect(secrets).not.toHaveBeenCalled()
  })
})
