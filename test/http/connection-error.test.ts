/** A `ConnectionError` says what happened, whether the request was sent, and what to do. */
import { createServer } from 'node:http'
import { ConnectionError, NotificationClient } from 'notification-subscriber'
import { Agent, interceptors } from 'undici'
import { describe, expect, test } from 'vitest'
import { failedFetch, failureOf, networkError } from '../support/failure.js'
import { fakeService, subscription } from '../support/fake-service.js'
import { serving } from '../support/listen.js'
import { expectPage } from '../support/message-page.js'

/** What unsubscribing rejects with when `fetch` throws this, and how often it was tried. */
async function failureAfter(thrown: unknown): Promise<{ error: ConnectionError; attempts: number }> {
  const service = fakeService()
  service.onCall = () => {
    throw thrown
  }
  const auth = { username: 'user', password: 'p4ssword' }
  const client = service.client({ auth, retry: { baseDelayMs: 0, maxAttempts: 2 } })
  const error = await client.unsubscribe(1).catch((reason: unknown) => reason)
  if (!(error instanceof ConnectionError)) throw error
  return { error, attempts: service.calls.length }
}

const failed = (fields: object, message?: string) => failedFetch(networkError(fields, message))
const failedWith = (...codes: string[]) => codes.map((code) => [code, failed({ code })] as const)
const connecting = (code: string) => failed({ code, syscall: 'connect' })
/** A failure at each of the addresses that were tried. */
const ofEach = (code: string) =>
  failedFetch(Object.assign(new AggregateError([networkError({ code, syscall: 'connect' })], ''), { code }))
const ofOpenSsl =
  '80BB0F:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:../deps/ssl3_record.c:355:\n'

/** What is thrown, by what it leaves: `sent` is whether the server may have seen the request. */
const failures: Record<
  string,
  { sent: boolean; isRepeated: boolean; thrown: (readonly [string, unknown])[] }
> = {
  'without a connection, for now': {
    ...{ sent: false, isRepeated: true },
    thrown: [
      ...failedWith('ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH'),
      ...failedWith('UND_ERR_CONNECT_TIMEOUT'),
      ['a reset of a system call that connects', connecting('ECONNRESET')],
      ['a system call that resolves', failed({ code: 'ESOMETHING', syscall: 'getaddrinfo' })],
      ['TLS in the words', failed({ syscall: 'connect' }, 'TLS went wrong')],
      ['a code that is not known', connecting('ERR_X')],
      ...['ENETUNREACH', 'ETIMEDOUT', 'EADDRNOTAVAIL'].map(
        (code) => [`${code} of each address`, ofEach(code)] as const,
      ),
    ],
  },
  'without a connection, for good': {
    ...{ sent: false, isRepeated: false },
    thrown: [
      ...failedWith('DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN'),
      ...failedWith('UNABLE_TO_VERIFY_LEAF_SIGNATURE', 'UNABLE_TO_GET_ISSUER_CERT'),
      ...failedWith('UNABLE_TO_GET_ISSUER_CERT_LOCALLY', 'ERR_TLS_CERT_ALTNAME_INVALID', 'CERT_HAS_EXPIRED'),
      ...failedWith('CERT_NOT_YET_VALID', 'CERT_REVOKED', 'UNABLE_TO_GET_CRL', 'CERT_SIGNATURE_FAILURE'),
      ...failedWith('CERT_CHAIN_TOO_LONG', 'CERT_UNTRUSTED', 'CERT_REJECTED'),
      ['an ERR_SSL_ code', connecting('ERR_SSL_WRONG_VERSION_NUMBER')],
      ['HTTP/2 alone', connecting('ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL')],
      ['what OpenSSL says, on one line', failed({ code: 'EPROTO', syscall: 'connect' }, ofOpenSsl)],
    ],
  },
  'on a connection that broke': {
    ...{ sent: true, isRepeated: true },
    thrown: [
      ['a reset while reading', failed({ code: 'ECONNRESET', syscall: 'read' })],
      ['a lost route while reading', failed({ code: 'EHOSTUNREACH', syscall: 'read' })],
      ['a lost route while writing', failed({ code: 'ENETUNREACH', syscall: 'write' })],
      ['a reset by a mock', failed({ code: 'ECONNRESET' })],
      ['something without a code', failed({})],
    ],
  },
  'by a layer that throws the answer': {
    ...{ sent: true, isRepeated: true },
    thrown: [
      ['ky', Object.assign(new Error('Conflict'), { response: new Response('', { status: 409 }) })],
      [
        'axios',
        Object.assign(new Error('x'), { code: 'ERR_BAD_REQUEST', status: 409, response: { status: 409 } }),
      ],
      ['undici', Object.assign(new Error('x'), { code: 'UND_ERR_RESPONSE', statusCode: 409 })],
      ['a `fetch` that throws responses', new Response('', { status: 409 })],
    ],
  },
}

test('each failure says whether the request was sent, and what to check: the reviewed page', async () => {
  const messages: Record<string, string> = {}
  for (const [where, { sent, isRepeated, thrown }] of Object.entries(failures)) {
    for (const [what, reason] of thrown) {
      const { error, attempts } = await failureAfter(reason)
      expect([what, error.requestSent, attempts]).toEqual([what, sent, isRepeated ? 2 : 1])
      messages[`${where}: ${what}`] = error.message
    }
  }
  await expectPage('connections', messages)
})

test("a dispatcher of ours with undici's interceptor throws the answer, which is named", async () => {
  await using server = await serving(createServer((_, response) => response.writeHead(409).end()))
  const dispatcher = new Agent().compose(interceptors.responseError())
  const baseUrl = `http://${server.host}`
  const client = new NotificationClient({ baseUrl, auth: { getAccessToken: () => 'token' }, dispatcher })
  expect(await failureOf(client.createSubscription(subscription))).toMatchObject({
    code: 'OUTCOME_UNKNOWN',
    cause: { code: 'CONNECTION', requestSent: true, message: expect.stringContaining('with status 409') },
  })
  await dispatcher.close()
})

describe('the cause', () => {
  const refused = networkError({ code: 'ECONNREFUSED', syscall: 'connect' }, 'connect ECONNREFUSED ::1:443')
  const unreachable = networkError({ code: 'ENETUNREACH', syscall: 'connect' })
  const itsOwnCause = new TypeError('x')

  test.each([
    ['itself', refused],
    ['what fetch wraps', failedFetch(refused)],
    ['the first of several addresses', failedFetch(new AggregateError([refused, unreachable]))],
    ['with a code of its own, however it was caused', Object.assign(refused, { cause: unreachable })],
  ])('is the innermost error: %s', async (_name, thrown) => {
    const { cause, message } = (await failureAfter(thrown)).error
    expect(cause).toMatchObject({ code: 'ECONNREFUSED', message: 'connect ECONNREFUSED ::1:443' })
    expect((cause as Error).stack).toBe(refused.stack)
    expect(message).toContain('connect ECONNREFUSED ::1:443')
  })

  test.each([
    ['text', 'p4ssword is wrong', '[redacted: it repeats a secret of the request]'],
    ['an error that is its own cause', Object.assign(itsOwnCause, { cause: itsOwnCause }), 'x'],
    ['undefined', undefined, 'undefined'],
    ['an object without a prototype', Object.create(null), 'no message'],
    [
      'an error that repeats a secret',
      failedFetch(networkError({ code: 'x-p4ssword' }, 'p4ssword?')),
      '[redacted: it repeats a secret of the request]',
    ],
  ])('of %s holds its words, without secrets', async (_name, thrown, message) => {
    const { cause } = (await failureAfter(thrown)).error
    expect(cause).toBeInstanceOf(Error)
    expect((cause as Error).message).toBe(message)
    expect((cause as Error).stack).toContain(message)
    expect(JSON.stringify(cause) + (cause as Error).stack).not.toContain('p4ssword')
  })

  test('has at most 300 characters of what was said', async () => {
    const { cause } = (await failureAfter(failed({}, 'x'.repeat(1_000)))).error
    expect(cause).toHaveProperty('message', `${'x'.repeat(300)}…`)
  })

  test('has no other properties: they may hold the answer or the request', async () => {
    const { error } = await failureAfter(failed({ code: 'ECONNRESET', request: 'x', data: 'y' }))
    expect(Object.keys(error.cause as object)).toEqual(['code'])
  })
})
