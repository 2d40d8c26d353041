/** Redirects are errors: what a request carries never reaches another address. */
import { NotificationClient } from 'notification-subscriber'
import { Agent, fetch } from 'undici'
import { describe, expect, test } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { operations } from '../support/operations.js'
import { ScriptedServer } from '../support/scripted-server.js'
import { auth, expectNoSecretIn } from '../support/secrets.js'

const { ca, tls } = createLoopbackCertificate()
const dispatcher = new Agent({ connect: { ca } })
const transports = {
  undici: { dispatcher },
  fetch: { fetch: (url: string, init: object) => fetch(url, { ...init, dispatcher }) },
}

const cases = [301, 302, 303, 307, 308].flatMap((status) =>
  operations.flatMap((operation) =>
    (['undici', 'fetch'] as const).map((transport) => ({ status, operation, transport })),
  ),
)

describe('a redirect to another host', () => {
  test.each(cases)('$status for $operation.name over $transport is an error', async (redirect) => {
    const { status, operation, transport } = redirect
    await using elsewhere = await ScriptedServer.listen(tls, async (connection) => {
      await connection.request()
    })
    await using server = await ScriptedServer.listen(tls, async (connection) => {
      await connection.request()
      const location = `${elsewhere.origin.replace('127.0.0.1', 'localhost')}/`
      await connection.write(`HTTP/1.1 ${status} X\r\nlocation: ${location}\r\ncontent-length: 0\r\n\r\n`)
    })
    await using client = new NotificationClient({
      ...transports[transport],
      baseUrl: server.origin,
      auth: operation.name === 'token' ? { ...auth.clientCredentials, authUrl: server.origin } : auth.token,
    })
    const [result] = await Promise.allSettled([operation.call(client, 30_000)])
    const code = operation.name === 'token' ? 'TOKEN_REQUEST' : 'API'
    expect(result).toMatchObject({
      reason: { code, status, message: expect.stringMatching(/redirects are not followed/i) },
    })
    expect([server.seen, elsewhere.seen]).toEqual([1, 0])
    expectNoSecretIn(result)
  })
})
