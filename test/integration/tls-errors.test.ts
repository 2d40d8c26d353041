/** A certificate that cannot be trusted: nothing is sent, and the message says what is wrong with it. */
import { createServer } from 'node:https'
import { NotificationClient } from 'notification-subscriber'
import { Agent, fetch } from 'undici'
import { Agent as Agent6 } from 'undici6'
import { expect, test } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { createCertificate } from '../support/certificates.js'
import { failureOf } from '../support/failure.js'
import { subscription } from '../support/fake-service.js'
import { serving } from '../support/listen.js'
import { expectPage } from '../support/message-page.js'
import { ScriptedServer } from '../support/scripted-server.js'
import { auth, expectNoSecretIn } from '../support/secrets.js'

const dayMs = 24 * 60 * 60 * 1000
const loopback = createLoopbackCertificate()

type Case = [name: string, certificate: ReturnType<typeof createLoopbackCertificate>, trusted: boolean]

const withAuthority = { ...loopback, tls: { ...loopback.tls, cert: loopback.tls.cert + loopback.ca } }
const otherHost = createCertificate({ host: 'other.example.com' })
const expired = createCertificate({ validFrom: Date.now() - 60 * dayMs, validUntil: Date.now() - dayMs })
const ofTomorrow = createCertificate({ validFrom: Date.now() + dayMs })

const cases: readonly Case[] = [
  ['self-signed', createCertificate({ selfSigned: true }), false],
  ['signed by a private authority', loopback, false],
  ['sent together with a private authority', withAuthority, false],
  ['of another host', otherHost, true],
  ['expired', expired, true],
  ['not valid yet', ofTomorrow, true],
]

const transports = {
  undici: (ca: string[]) => ({ dispatcher: new Agent({ connect: { ca } }) }),
  'undici 6': (ca: string[]) => ({ dispatcher: new Agent6({ connect: { ca } }) }),
  fetch: (ca: string[]) => {
    const dispatcher = new Agent({ connect: { ca } })
    return { fetch: (url: string, init: object) => fetch(url, { ...init, dispatcher }) }
  },
}

test.each(Object.entries(transports))('messages over %s: the reviewed page', async (_name, transport) => {
  const messages: Record<string, string> = {}
  for (const [what, certificate, trusted] of cases) {
    await using server = await ScriptedServer.listen(certificate.tls, async (connection) => {
      await connection.request()
    })
    await using client = new NotificationClient({
      baseUrl: server.origin,
      auth: auth.token,
      retry: { baseDelayMs: 0 },
      ...transport(trusted ? [certificate.ca] : []),
    })
    const error = await failureOf(client.createSubscription(subscription))
    expect(error).toMatchObject({ code: 'CONNECTION', requestSent: false })
    expect(server.seen).toBe(0)
    expectNoSecretIn(error)
    // The end is what the system says.
    const [ours = ''] = (error as Error).message.split(/ \([^(]*\)$/)
    messages[what] = ours.replace(server.origin.slice(8), '<host>')
  }
  await expectPage('certificates', messages)
})

test('TLS 1.3 that wants a client certificate: nothing was processed, and the error says why', async () => {
  const { ca, tls } = loopback
  const options = { ...tls, ca, requestCert: true, minVersion: 'TLSv1.3' } as const
  const unreachable = () => expect.unreachable('the request was processed')
  await using server = await serving(createServer(options, unreachable))
  const baseUrl = `https://${server.host}`
  await using client = new NotificationClient({ baseUrl, auth: auth.token, ca })
  await expect(client.createSubscription(subscription)).rejects.toMatchObject({
    ...{ code: 'CONNECTION', requestSent: false },
    message: expect.stringContaining('client certificate'),
  })
})
