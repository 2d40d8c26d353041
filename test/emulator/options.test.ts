import { type EmulatorOptions, startEmulator } from 'notification-subscriber/emulator'
import { expect, test } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { ConfigurationError } from '../../src/errors.js'
import { failureOf } from '../support/failure.js'
import { expectPage, problemsIn } from '../support/message-page.js'

const loopback = createLoopbackCertificate()

const problems: Record<string, unknown> = {
  'a domain of two lines': { domain: 'a\nb' },
  'a client ID beyond ASCII': { clientId: 'ä' },
  'an empty password': { password: '' },
  'a colon in the user name': { username: 'a:b' },
  'half a second of lifetime': { tokenLifetimeSeconds: 1.5 },
  'a header name that is none': { permittedHeaders: ['not a name'] },
  'an authority that is none': { callbackCa: 'no certificate' },
  'a time beyond what timers take': { callbackTimeoutMs: 2 ** 31 },
  'an unknown encoding': { credentialsEncoding: 'base64' },
  'a port beyond 65535': { port: 65_536 },
  'an IPv6 address that is not loopback': { host: '::' },
  'an authority of its own that is none': { ca: 'no certificate', tls: loopback.tls },
  'a certificate without its authority': { tls: loopback.tls },
  'the key of another certificate': {
    ...loopback,
    tls: { ...loopback.tls, key: createLoopbackCertificate().tls.key },
  },
  'a route without a place for the id': { routes: { update: { path: '/x' } } },
  'a page port below 0': { page: { port: -1 } },
  'a variable that is no text': { page: { environment: { A: 1 } } },
  'a misspelt option': { prot: 1 },
}

test('options that cannot work are refused, with the place and the reason of each problem', async () => {
  const messages: Record<string, string> = {}
  for (const [name, options] of Object.entries(problems)) {
    const error = await failureOf(startEmulator(options as EmulatorOptions))
    expect(error).toBeInstanceOf(ConfigurationError)
    messages[name] = problemsIn(error)
  }
  await expectPage('problems-of-emulator-options', messages)
})
