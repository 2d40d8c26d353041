import { type EmulatorOptions, startEmulator } from 'notification-subscriber/emulator'
import { expect, test } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { ConfigurationError } from '../../src/errors.js'
import { createCertificate } from '../support/certificates.js'
import { failureOf } from '../support/failure.js'
import { expectPage, problemsIn } from '../support/message-page.js'

const loopback = createLoopbackCertificate()

const problems: Record<string, unknown> = {
  'an empty domain': { domain: '' },
  'a domain of two lines': { domain: 'a\nb' },
  'a client ID beyond ASCII': { clientId: 'ä' },
  'an empty client secret': { clientSecret: '' },
  'an empty password': { password: '' },
  'an empty user name': { username: '' },
  'a lifetime below 0': { tokenLifetimeSeconds: -1 },
  'half a second of lifetime': { tokenLifetimeSeconds: 1.5 },
  'a header of the callback itself': { permittedHeaders: ['Content-Type'] },
  'a header name that is none': { permittedHeaders: ['not a name'] },
  'a colon in the user name': { username: 'a:b' },
  'an authority that is none': { callbackCa: 'no certificate' },
  'no time for callbacks': { callbackTimeoutMs: 0 },
  'a time beyond what timers take': { callbackTimeoutMs: 2 ** 31 },
  'an unknown encoding': { credentialsEncoding: 'base64' },
  'a port beyond 65535': { port: 65_536 },
  'a port below 0': { port: -1 },
  'an empty host': { host: '' },
  'an authority of its own that is none': { ca: 'no certificate', tls: loopback.tls },
  'an authority without a certificate': { ca: loopback.ca },
  'a certificate without its authority': { tls: loopback.tls },
  'a key that is none': { ...loopback, tls: { ...loopback.tls, key: 'x' } },
  'a certificate that is none': { ...loopback, tls: { ...loopback.tls, cert: 'x' } },
  'the key of another certificate': {
    ...loopback,
    tls: { ...loopback.tls, key: createLoopbackCertificate().tls.key },
  },
  'a certificate that has expired': createCertificate({ validUntil: Date.now() - 1_000 }),
  'an authority that cannot be read': { tls: loopback.tls, ca: `${loopback.ca}`.replace(/[A-Z]{4}/, '....') },
  'a page port below 0': { page: { port: -1 } },
  'a variable that is no text': { page: { environment: { A: 1 } } },
  'a misspelt option': { prot: 1 },
}

test('options that cannot work are refused, with the place and the reason of each problem', async () => {
  const messages: Record<string, string> = {}
  for (const [name, options] of Object.entries(problems)) {
    const error = await failureOf(startEmulator(options as EmulatorOptions))
    expect(error).toBeInstanceOf(ConfigurationError)
    // OpenSSL has other words in another version.
    messages[name] = problemsIn(error).replace(/(cannot be used for TLS with `tls\.cert`): .*/, '$1: …')
  }
  await expectPage('problems-of-emulator-options', messages)
})
