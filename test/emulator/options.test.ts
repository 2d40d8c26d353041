import { type EmulatorOptions, startEmulator } from 'notification-subscriber/emulator'
import { describe, expect, test } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { ConfigurationError } from '../../src/errors.js'
import { createCertificate } from '../support/certificates.js'

const loopback = createLoopbackCertificate()

describe('the options of startEmulator', () => {
  test.each<[unknown, string]>([
    [{ domain: '' }, '`domain` must be printable ASCII and not empty'],
    [{ domain: 'a\nb' }, '`domain` must be printable ASCII and not empty'],
    [{ clientId: 'ä' }, '`clientId` must be printable ASCII and not empty'],
    [{ clientSecret: '' }, '`clientSecret`: expected string to have >=1 characters'],
    [{ password: '' }, '`password`: expected string to have >=1 characters'],
    [{ username: '' }, '`username`: expected string to have >=1 characters'],
    [{ tokenLifetimeSeconds: -1 }, '`tokenLifetimeSeconds`: expected number to be >=0'],
    [{ tokenLifetimeSeconds: 1.5 }, '`tokenLifetimeSeconds`: expected int, received number'],
    [{ permittedHeaders: ['Content-Type'] }, '`permittedHeaders[0]` belongs to the callback request itself'],
    [{ permittedHeaders: ['not a name'] }, '`permittedHeaders[0]` is not a header name'],
    [{ username: 'a:b' }, '`username` cannot contain a colon: Basic ends the user name there (RFC 7617)'],
    [{ callbackCa: 'no certificate' }, '`callbackCa` is not a PEM certificate'],
    [{ callbackTimeoutMs: 0 }, '`callbackTimeoutMs`: expected number to be >=1'],
    [{ callbackTimeoutMs: 2 ** 31 }, '`callbackTimeoutMs`: expected number to be <=2147483647'],
    [{ credentialsEncoding: 'base64' }, '`credentialsEncoding`: expected one of "raw"|"form-urlencoded"'],
    [{ port: 65_536 }, '`port`: expected number to be <=65535'],
    [{ port: -1 }, '`port`: expected number to be >=0'],
    [{ host: 'https://x' }, '`host` must be an IP address or a host name'],
    [{ host: '' }, '`host` must be an IP address or a host name'],
    [{ host: '::1%lo' }, '`host` must be an IP address or a host name'],
    [{ ca: 'no certificate', tls: loopback.tls }, '`ca` is not a PEM certificate'],
    [{ ca: loopback.ca }, '`tls` and `ca` belong together: give both or neither'],
    [{ tls: loopback.tls }, '`tls` and `ca` belong together: give both or neither'],
    [
      { ...loopback, tls: { ...loopback.tls, key: 'x' } },
      '`tls.key` cannot be used for TLS with `tls.cert`: ',
    ],
    [{ ...loopback, tls: { ...loopback.tls, cert: 'x' } }, '`tls.cert` is not a PEM certificate'],
    [
      { ...loopback, tls: { ...loopback.tls, key: createLoopbackCertificate().tls.key } },
      '`tls.key` cannot be used for TLS with `tls.cert`: ',
    ],
    [
      createCertificate({ validUntil: Date.now() - 1_000 }),
      '`tls.cert` has expired: without `tls` and `ca`, new ones are made',
    ],
    [{ tls: loopback.tls, ca: createLoopbackCertificate().ca }, '`tls.cert` is not signed by `ca`'],
    [
      { tls: loopback.tls, ca: `${loopback.ca}`.replace(/[A-Z]{4}/, '....') },
      '`ca` is not a PEM certificate',
    ],
    [{ page: { port: -1 } }, '`page.port`: expected number to be >=0'],
    [
      { page: { environment: { 'A-B': 'x' } } },
      '`page.environment` has a name that no environment variable can have',
    ],
    [{ page: { environment: { A: 'x\ny' } } }, '`page.environment.A` must be one line'],
    [{ prot: 1 }, 'there is no `prot` (did you mean `port`?)'],
  ])('refuses what cannot work: %j', async (options, sentence) => {
    const refused = startEmulator(options as EmulatorOptions)
    await expect(refused).rejects.toBeInstanceOf(ConfigurationError)
    await expect(refused).rejects.toMatchObject({
      issues: [{ path: pathIn(sentence) }],
      message: expect.stringContaining(`The emulator cannot start with these options: ${sentence}`),
    })
  })
})

/** The path that a sentence begins with, if it does: `permittedHeaders[0]` is at `permittedHeaders`, 0. */
function pathIn(sentence: string): PropertyKey[] {
  const [before, path = ''] = sentence.split('`')
  if (before !== '') return []
  return path
    .split(/[.[\]]+/)
    .filter((key) => key !== '')
    .map((key) => (/^\d+$/.test(key) ? Number(key) : key))
}
