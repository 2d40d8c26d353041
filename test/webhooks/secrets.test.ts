import { DeliveryReceiver, type SecretsSource } from 'notification-subscriber/webhooks'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
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
  test('gives each tenant its own, and undefined refuses', async () => {
    const { status, secrets } = receive(secretsOfTenant)
    const acme = { 'x-tenant': 'acme', token: 'the-secret-of-acme' }
    for (let turn = 0; turn < 2; turn += 1) {
      expect(await status(acme)).toBe(204)
      expect(await status({ ...acme, 'x-tenant': 'other' })).toBe(401)
      expect(await status({ ...acme, 'x-tenant': 'unknown' })).toBe(401)
      expect(await status({ token: 'the-secret-of-acme' })).toBe(401)
    }
    expect(secrets).toHaveBeenCalledTimes(8)
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
