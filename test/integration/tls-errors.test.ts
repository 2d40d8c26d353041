/** A certificate that cannot be trusted: nothing is sent, and the message says what is wrong with it. */
import { NotificationClient } from 'notification-subscriber'
import { Agent, fetch } from 'undici'
import { Agent as Agent6 } from 'undici6'
import { describe, expect, test } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { createCertificate } from '../support/certificates.js'
import { subscription } from '../support/fake-service.js'
import { ScriptedServer } from '../support/scripted-server.js'
import { auth, expectNoSecretIn } from '../support/secrets.js'

const dayMs = 24 * 60 * 60 * 1000
const loopback = createLoopbackCertificate()

type Case = [
  name: string,
  certificate: ReturnType<typeof createLoopbackCertificate>,
  trusted: boolean,
  says: RegExp,
]

const withAuthority = { ...loopback, tls: { ...loopback.tls, cert: loopback.tls.cert + loopback.ca } }
const otherHost = createCertificate({ host: 'other.example.com' })
const expired = createCertificate({ validFrom: Date.now() - 60 * dayMs, validUntil: Date.now() - dayMs })
const ofTomorrow = createCertificate({ validFrom: Date.now() + dayMs })

const cases: readonly Case[] = [
  ['self-signed', createCertificate({ selfSigned: true }), false, /certificate is self-signed/],
  ['signed by a private authority', loopback, false, /authority that is not trusted here.*ca/s],
  ['sent together with a private authority', withAuthority, false, /private authority.*ca/s],
  ['of another host', otherHost, true, /issued for another host/],
  ['expired', expired, true, /certificate has expired/],
  ['not valid yet', ofTomorrow, true, /not valid yet/],
]

const transports = {
  undici: (ca: string[]) => ({ dispatcher: new Agent({ connect: { ca } }) }),
  'undici 6': (ca: string[]) => ({ dispatcher: new Agent6({ connect: { ca } }) }),
  fetch: (ca: string[]) => {
    const dispatcher = new Agent({ connect: { ca } })
    return { fetch: (url: string, init: object) => fetch(url, { ...init, dispatcher }) }
  },
}

describe.each(Object.entries(transports))('over %s, a certificate that is', (_name, transport) => {
  test.each(cases)('%s', async (_what, certificate, trusted, says) => {
    await using server = await ScriptedServer.listen(certificate.tls, async (connection) => {
      await connection.request()
    })
    await using client = new NotificationClient({
      baseUrl: server.origin,
      auth: auth.token,
      retry: { baseDelayMs: 0 },
      ...transport(trusted ? [certificate.ca] : []),
    })
    const [result] = await Promise.allSettled([client.createSubscription(subscription)])
    expect(result).toMatchObject({
      reason: { code: 'CONNECTION', requestSent: false, message: expect.stringMatching(says) },
    })
    expect(server.seen).toBe(0)
    expectNoSecretIn(result)
  })
})
