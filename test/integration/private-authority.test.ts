/** The option `ca`: a private authority is trusted besides the public ones, directly and through a proxy. */
import { writeFile } from 'node:fs/promises'
import { createServer } from 'node:https'
import { join } from 'node:path'
import * as tls from 'node:tls'
import { NotificationClient } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { trustedWith } from '../../src/http/undici.js'
import { createCertificate } from '../support/certificates.js'
import { ConnectProxy } from '../support/connect-proxy.js'
import { subscription } from '../support/fake-service.js'
import { serving } from '../support/listen.js'
import { temporaryFolder } from '../support/temporary-folder.js'

let emulator: Emulator
beforeEach(async () => {
  for (const name of ['HTTPS_PROXY', 'https_proxy', 'HTTP_PROXY', 'http_proxy', 'NO_PROXY', 'no_proxy']) {
    vi.stubEnv(name, undefined)
  }
  emulator = await startEmulator()
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await emulator.close()
})

function clientTrusting(ca: string | undefined): NotificationClient {
  const { auth, baseUrl } = emulator.clientOptions
  return new NotificationClient({ baseUrl, auth, ca })
}

test('with it, a server of the authority is trusted, and without it is not', async () => {
  await using trusting = clientTrusting(emulator.ca)
  await trusting.createSubscription(subscription)
  expect(emulator.subscriptions).toHaveLength(1)
  await using plain = clientTrusting(undefined)
  await expect(plain.getAccessToken()).rejects.toMatchObject({ code: 'CONNECTION', requestSent: false })
  await using other = clientTrusting(tls.rootCertificates[0])
  await expect(other.getAccessToken()).rejects.toMatchObject({ code: 'CONNECTION', requestSent: false })
})

test('the same holds for a server behind a proxy', async () => {
  const host = 'notifications.example.com'
  const { ca, tls: certified } = createCertificate({ host })
  await using server = await serving(
    createServer(certified, (_request, response) => response.writeHead(204).end()),
  )
  await using proxy = await ConnectProxy.listen({ to: `https://${server.host}` })
  vi.stubEnv('HTTPS_PROXY', proxy.url)
  const options = {
    baseUrl: `https://${host}`,
    auth: { getAccessToken: () => 'token' },
    retry: false,
  } as const
  await using trusting = new NotificationClient({ ...options, ca })
  await trusting.unsubscribe(1)
  await using plain = new NotificationClient(options)
  await expect(plain.unsubscribe(1)).rejects.toMatchObject({ code: 'CONNECTION', requestSent: false })
  expect(proxy.requests).toHaveLength(2)
})

test('certificates in a file without line breaks between them are all trusted', async () => {
  const { ca } = createCertificate({})
  const joined = [ca, emulator.ca].map((pem) => pem.trim()).join('')
  await using client = clientTrusting(joined)
  await client.createSubscription(subscription)
  expect(emulator.subscriptions).toHaveLength(1)
})

describe('what the machine trusts stays trusted', () => {
  const own = createCertificate({}).ca.trim()

  test.skipIf('getCACertificates' in tls)('the public authorities and NODE_EXTRA_CA_CERTS', async () => {
    await using folder = await temporaryFolder()
    const file = join(folder.path, 'extra.pem')
    await writeFile(file, 'extra')
    vi.stubEnv('NODE_EXTRA_CA_CERTS', file)
    expect(await trustedWith(own)).toEqual([...tls.rootCertificates, 'extra', own])
    vi.stubEnv('NODE_EXTRA_CA_CERTS', join(folder.path, 'missing.pem'))
    expect(await trustedWith(own)).toEqual([...tls.rootCertificates, own])
  })

  test('what Node.js says that it trusts, where it can', async () => {
    const getCACertificates = vi.fn(() => ['of the system'])
    vi.doMock('node:tls', () => ({ ...tls, getCACertificates }))
    expect(await trustedWith(own)).toEqual(['of the system', own])
    expect(getCACertificates).toHaveBeenCalledWith('default')
    vi.doUnmock('node:tls')
  })
})
