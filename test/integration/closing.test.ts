/** design.md, "The client": what `close()` waits for. */
import { NotificationClient } from 'notification-subscriber'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { createLoopbackCertificate } from '../../src/emulator/https/certificate.js'
import { deferred } from '../support/deferred.js'
import { subscription } from '../support/fake-service.js'
import { ScriptedServer } from '../support/scripted-server.js'
import { auth } from '../support/secrets.js'

const { tls } = createLoopbackCertificate()

beforeAll(() => void vi.stubEnv('NODE_TLS_REJECT_UNAUTHORIZED', '0'))
afterAll(() => void vi.unstubAllEnvs())

const answer = (status: string, body: string) =>
  `HTTP/1.1 ${status}\r\ncontent-length: ${body.length}\r\n\r\n${body}`

test('calls under way finish, their tokens and repeats included; then every connection is closed', async () => {
  const closing = deferred<void>()
  const answers = [
    answer('200 OK', '{"access_token":"a.b.c","token_type":"Bearer","expires_in":60}'),
    answer('503 Busy', ''),
    answer('201 Created', '{"subscription_id":7}'),
  ]
  await using server = await ScriptedServer.listen(tls, async (connection) => {
    await connection.request()
    await closing.promise
    await connection.write(answers.shift() ?? '')
  })
  const client = new NotificationClient({
    baseUrl: server.origin,
    auth: { ...auth.clientCredentials, authUrl: server.origin },
    retry: { baseDelayMs: 0 },
  })
  const created = client.createSubscription(subscription)
  const closed = client.close()
  closing.resolve()
  expect(await created).toEqual({ subscriptionId: 7 })
  await closed
  await server.idle()
  expect(server.seen).toBe(3)
  await expect(client.createSubscription(subscription)).rejects.toMatchObject({ code: 'CLOSED' })
})
