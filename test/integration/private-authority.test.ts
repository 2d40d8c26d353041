/** The option `ca`: a private authority is trusted besides the public ones, directly and through a proxy. */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { rootCertificates } from 'node:tls'
import { NotificationClient } from 'notification-subscriber'
import { type Emulator, startEmulator } from 'notification-subscriber/emulator'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { trustedWith } from '../../src/http/undici.js'
import { ConnectProxy } from '../support/connect-proxy.js'
import { subscription } from '../support/fake-service.js'
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
  await using other = clientTrusting(rootCertificates[0])
  await expect(other.getAccessToken()).rejects.toMatchObject({ code: 'CONNECTION', requestSent: false })
})

test('the same holds for a server behind a proxy', async () => {
  await using proxy = await ConnectProxy.listen({ to: emulator.baseUrl })
  vi.stubEnv('HTTPS_PROXY', proxy.url)
  await using client = clientTrusting(emulator.ca)
  await client.getAccessToken()
  expect(proxy.requests).toHaveLength(1)
})

test('the public authorities and NODE_EXTRA_CA_CERTS stay trusted', async () => {
  await using folder = await temporaryFolder()
  const file = join(folder.path, 'extra.pem')
  await writeFile(file, 'extra')
  vi.stubEnv('NODE_EXTRA_CA_CERTS', file)
  expect(await trustedWith('own')).toEqual([...rootCertificates, 'extra', 'own'])
  vi.stubEnv('NODE_EXTRA_CA_CERTS', join(folder.path, 'missing.pem'))
  expect(await trustedWith('own')).toEqual([...rootCertificates, 'own'])
})
