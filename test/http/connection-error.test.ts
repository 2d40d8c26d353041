/** A `ConnectionError` says what happened, whether the request was sent, and what to do. */
import { ConnectionError } from 'notification-subscriber'
import { describe, expect, test } from 'vitest'
import {
  isRefusedHandshake,
  isTransient,
  provesUnsent,
  toConnectionError,
} from '../../src/http/connection-error.js'
import { ProxyFailure } from '../../src/http/proxy.js'
import { failedFetch, failureOf, networkError } from '../support/failure.js'
import { fakeService } from '../support/fake-service.js'

/** What unsubscribing rejects with when `fetch` throws this. */
async function errorAfter(thrown: unknown): Promise<ConnectionError> {
  const service = fakeService()
  service.onCall = () => {
    throw thrown
  }
  const client = service.client({ auth: { username: 'user', password: 'p4ssword' }, retry: false })
  const error = await failureOf(client.unsubscribe(1))
  expect(error).toBeInstanceOf(ConnectionError)
  return error as ConnectionError
}

describe('without a connection the request was certainly not sent', () => {
  test('each code says what to check', async () => {
    const codes = [
      'ECONNREFUSED',
      'ENOTFOUND',
      'EAI_AGAIN',
      'EHOSTUNREACH',
      'ENETUNREACH',
      'UND_ERR_CLOSED',
      'UND_ERR_CONNECT_TIMEOUT',
      'DEPTH_ZERO_SELF_SIGNED_CERT',
      'SELF_SIGNED_CERT_IN_CHAIN',
      'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
      'UNABLE_TO_GET_ISSUER_CERT',
      'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
      'ERR_TLS_CERT_ALTNAME_INVALID',
      'CERT_HAS_EXPIRED',
      'CERT_NOT_YET_VALID',
      'CERT_REVOKED',
    ]
    const messages: Record<string, string> = {}
    for (const code of codes) {
      const error = await errorAfter(failedFetch(networkError({ code })))
      expect(error).toMatchObject({ requestSent: false, cause: { code } })
      messages[code] = error.message
    }
    expect(messages).toMatchInlineSnapshot(`
      {
        "CERT_HAS_EXPIRED": "Could not reach notifications.example.com: its TLS certificate has expired. The owner of the server must renew it. (what the network says)",
        "CERT_NOT_YET_VALID": "Could not reach notifications.example.com: its TLS certificate is not valid yet. Check this machine's clock. (what the network says)",
        "CERT_REVOKED": "Could not reach notifications.example.com: its TLS certificate was revoked. The owner of the server must replace it. (what the network says)",
        "DEPTH_ZERO_SELF_SIGNED_CERT": "Could not reach notifications.example.com: its TLS certificate is self-signed, or signed by a private authority. To trust it, give the client its certificate as \`ca\` (in the environment: NOTIFICATION_CA_FILE), or set NODE_EXTRA_CA_CERTS. (what the network says)",
        "EAI_AGAIN": "Could not reach notifications.example.com: the host name could not be resolved for now. Check the DNS and try again. (what the network says)",
        "ECONNREFUSED": "Could not reach notifications.example.com: the connection was refused. Is the address right, and is the service running? (what the network says)",
        "EHOSTUNREACH": "Could not reach notifications.example.com: there is no route to the host. Check the network, or whether a proxy is needed. (what the network says)",
        "ENETUNREACH": "Could not reach notifications.example.com: there is no route to the network. Check the network, or whether a proxy is needed. (what the network says)",
        "ENOTFOUND": "Could not reach notifications.example.com: the host name does not exist. Check the address for a typing error. (what the network says)",
        "ERR_TLS_CERT_ALTNAME_INVALID": "Could not reach notifications.example.com: its TLS certificate was issued for another host. Check the address; do not turn verification off. (what the network says)",
        "SELF_SIGNED_CERT_IN_CHAIN": "Could not reach notifications.example.com: its TLS certificate is self-signed, or signed by a private authority. To trust it, give the client its certificate as \`ca\` (in the environment: NOTIFICATION_CA_FILE), or set NODE_EXTRA_CA_CERTS. (what the network says)",
        "UNABLE_TO_GET_ISSUER_CERT": "Could not reach notifications.example.com: its TLS certificate is signed by an authority that is not trusted here. To trust it, give the client its certificate as \`ca\` (in the environment: NOTIFICATION_CA_FILE), or set NODE_EXTRA_CA_CERTS. (what the network says)",
        "UNABLE_TO_GET_ISSUER_CERT_LOCALLY": "Could not reach notifications.example.com: its TLS certificate is signed by an authority that is not trusted here. To trust it, give the client its certificate as \`ca\` (in the environment: NOTIFICATION_CA_FILE), or set NODE_EXTRA_CA_CERTS. (what the network says)",
        "UNABLE_TO_VERIFY_LEAF_SIGNATURE": "Could not reach notifications.example.com: its TLS certificate is signed by an authority that is not trusted here. To trust it, give the client its certificate as \`ca\` (in the environment: NOTIFICATION_CA_FILE), or set NODE_EXTRA_CA_CERTS. (what the network says)",
        "UND_ERR_CLOSED": "Could not reach notifications.example.com: the dispatcher was closed. Make a new one. (what the network says)",
        "UND_ERR_CONNECT_TIMEOUT": "Could not reach notifications.example.com: no connection could be made in time. Check the network, or whether a proxy is needed. (what the network says)",
      }
    `)
  })

  test.each([
    ['a system call that connects', { code: 'ECONNRESET', syscall: 'connect' }, undefined],
    ['a system call that resolves', { code: 'ESOMETHING', syscall: 'getaddrinfo' }, undefined],
    [
      'the words of Node.js',
      { code: 'ECONNRESET' },
      'Client network socket disconnected before secure TLS connection was established',
    ],
  ])('as %s shows', async (_name, fields, message) => {
    expect(await errorAfter(failedFetch(networkError(fields, message)))).toMatchObject({ requestSent: false })
  })

  test.each([
    ['EPROTO', { code: 'EPROTO', syscall: 'connect' }, 'x'],
    ['an ERR_SSL_ code', { code: 'ERR_SSL_WRONG_VERSION_NUMBER', syscall: 'connect' }, 'x'],
    ['TLS in the words', { syscall: 'connect' }, 'TLS went wrong'],
  ])('%s is about TLS', async (_name, fields, message) => {
    expect((await errorAfter(failedFetch(networkError(fields, message)))).message).toBe(
      'Could not reach notifications.example.com: the TLS handshake failed. ' +
        `Does the port speak TLS? (${message})`,
    )
  })

  test('anything else asks to check the address', async () => {
    expect((await errorAfter(failedFetch(networkError({ code: 'ERR_X', syscall: 'connect' })))).message).toBe(
      'Could not reach notifications.example.com: no connection could be made. ' +
        'Check the address, and the proxy if there is one. (what the network says)',
    )
  })
})

test.each([
  ['ENOTFOUND', 'its host name does not exist. Check the variable for a typing error.'],
  ['UND_ERR_CONNECT_TIMEOUT', 'no connection to it could be made in time.'],
])('a proxy that fails with %s says what to check', async (code, words) => {
  const proxy = { url: '', name: 'proxy.example:3128', hasCredentials: false, noProxy: '' }
  const failure = new ProxyFailure(proxy, networkError({ code }))
  const error = await errorAfter(failure)
  expect(error).toMatchObject({ requestSent: false, cause: { code } })
  expect(error.message).toContain(`Could not get through the proxy proxy.example:3128: ${words}`)
})

describe('a request that was certainly not sent is repeated', () => {
  async function attemptsAfter(thrown: unknown): Promise<number> {
    const service = fakeService()
    service.onCall = () => {
      throw thrown
    }
    const auth = { username: 'user', password: 'p4ssword' }
    await service
      .client({ auth, retry: { baseDelayMs: 0 } })
      .unsubscribe(1)
      .catch(() => {})
    return service.calls.length
  }

  test.each([
    'ECONNREFUSED',
    'ENOTFOUND',
    'EAI_AGAIN',
    'EHOSTUNREACH',
    'UND_ERR_CONNECT_TIMEOUT',
    'ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR',
  ])('if it may pass: %s', async (code) => {
    expect(await attemptsAfter(failedFetch(networkError({ code, syscall: 'connect' })))).toBe(3)
  })

  test.each([
    'DEPTH_ZERO_SELF_SIGNED_CERT',
    'SELF_SIGNED_CERT_IN_CHAIN',
    'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
    'ERR_TLS_CERT_ALTNAME_INVALID',
    'CERT_HAS_EXPIRED',
    'CERT_NOT_YET_VALID',
    'ERR_SSL_WRONG_VERSION_NUMBER',
    'EPROTO',
    'UND_ERR_CLOSED',
  ])('and not if it stays what it is: %s', async (code) => {
    expect(await attemptsAfter(failedFetch(networkError({ code, syscall: 'connect' })))).toBe(1)
  })
})

test("OpenSSL's text stays on one line", async () => {
  const text =
    '80BB0F:error:0A00010B:SSL routines:ssl3_get_record:wrong version number:../deps/ssl3_record.c:355:\n'
  const error = await errorAfter(failedFetch(networkError({ code: 'EPROTO', syscall: 'connect' }, text)))
  expect(error.message).toBe(
    'Could not reach notifications.example.com: the TLS handshake failed. Does the port speak TLS? ' +
      `(${text.trim()})`,
  )
  expect((error.cause as Error).message).toBe(text.trim())
})

describe('on a connection that broke the request may have been sent', () => {
  test.each([
    ['a reset while reading', { code: 'ECONNRESET', syscall: 'read' }, 'ECONNRESET'],
    ['a lost route while reading', { code: 'EHOSTUNREACH', syscall: 'read' }, 'EHOSTUNREACH'],
    ['a lost route while writing', { code: 'ENETUNREACH', syscall: 'write' }, 'ENETUNREACH'],
    ['a reset by a mock', { code: 'ECONNRESET' }, 'ECONNRESET'],
    ['something without a code', {}, 'what the network says'],
  ])('%s', async (_name, fields, shown) => {
    const error = await errorAfter(failedFetch(networkError(fields)))
    expect(error).toMatchObject({
      requestSent: true,
      message:
        `The connection to notifications.example.com broke before the whole answer had arrived (${shown}). ` +
        'The server may have seen the request.',
    })
  })
})

describe('the cause', () => {
  const refused = networkError({ code: 'ECONNREFUSED', syscall: 'connect' }, 'connect ECONNREFUSED ::1:443')
  const unreachable = networkError({ code: 'ENETUNREACH', syscall: 'connect' })
  const itsOwnCause = new TypeError('x')

  test.each([
    ['itself', refused],
    ['what fetch wraps', failedFetch(refused)],
    ['what a proxy wraps', Object.assign(new Error('tunnel'), { code: 'UND_ERR_PRX_TLS', cause: refused })],
    ['the first of several addresses', failedFetch(new AggregateError([refused, unreachable]))],
    ['a list that is no AggregateError', failedFetch({ errors: [failedFetch(refused)] })],
  ])('is the innermost error: %s', async (_name, thrown) => {
    const { cause, message } = await errorAfter(thrown)
    expect(cause).toMatchObject({ code: 'ECONNREFUSED', message: 'connect ECONNREFUSED ::1:443' })
    expect((cause as Error).stack).toBe(refused.stack)
    expect(message).toContain('the connection was refused')
  })

  test.each([
    [
      'an error with a code of its own',
      networkError({ code: 'ECONNREFUSED', cause: unreachable }),
      'ECONNREFUSED',
    ],
    [
      'an AggregateError of nothing',
      Object.assign(new AggregateError([]), { code: 'ENOTFOUND' }),
      'ENOTFOUND',
    ],
    ['errors that are no list', networkError({ errors: 'many', code: 'ENOTFOUND' }), 'ENOTFOUND'],
    ['a code that is no text', failedFetch(networkError({ code: 7 })), undefined],
    ['an error that is its own cause', Object.assign(itsOwnCause, { cause: itsOwnCause }), undefined],
    ['a cause that is undefined', Object.assign(new TypeError('x'), { cause: undefined }), undefined],
  ])('is no deeper than that: %s', async (_name, thrown, code) => {
    const { cause } = await errorAfter(thrown)
    expect((cause as { code?: string }).code).toBe(code)
    expect(Object.keys(cause as object)).toEqual(code === undefined ? [] : ['code'])
  })

  test.each([
    ['text', 'p4ssword is wrong', '[redacted: it repeats a secret of the request]'],
    ['an error without a cause', Object.assign(new TypeError('x'), { cause: undefined }), 'x'],
    ['an error that ends like a secret begins', new Error('bad p4ssw'), 'bad p4ssw'],
    ['null', null, 'null'],
    ['undefined', undefined, 'undefined'],
    ['an object', {}, '[object Object]'],
    ['an object without a prototype', Object.create(null), 'no message'],
    [
      'an error that repeats a secret',
      failedFetch(networkError({ code: 'x-p4ssword' }, 'p4ssword?')),
      '[redacted: it repeats a secret of the request]',
    ],
  ])('of %s holds its words, without secrets', async (_name, thrown, message) => {
    const { cause } = await errorAfter(thrown)
    expect(cause).toBeInstanceOf(Error)
    expect((cause as Error).message).toBe(message)
    expect((cause as Error).stack).toContain(message)
    expect(JSON.stringify(cause) + (cause as Error).stack).not.toContain('p4ssword')
  })

  test('has no other properties: they may hold the answer or the request', async () => {
    const { cause } = await errorAfter(
      failedFetch(networkError({ code: 'ECONNRESET', request: 'x', data: 'y' })),
    )
    expect(Object.keys(cause as object)).toEqual(['code'])
  })
})

describe('TLS', () => {
  test.each([
    'UNABLE_TO_GET_CRL',
    'CERT_SIGNATURE_FAILURE',
    'CERT_CHAIN_TOO_LONG',
    'CERT_UNTRUSTED',
    'CERT_REJECTED',
    'INVALID_CA',
    'INVALID_PURPOSE',
    'PATH_LENGTH_EXCEEDED',
    'HOSTNAME_MISMATCH',
    'UNSPECIFIED',
  ])('the verification error %s is permanent, and names the certificate', (code) => {
    const error = toConnectionError(networkError({ code }), { host: 'h', secrets: [] }, false)
    expect(error.message).toContain('its TLS certificate was not accepted')
    expect(isTransient(error)).toBe(false)
    expect(provesUnsent(networkError({ code }))).toBe(true)
  })

  test.each([
    'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
    'ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE',
    'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
    'ERR_SSL_SSLV3_ALERT_CERTIFICATE_UNKNOWN',
    'ERR_SSL_SSLV3_ALERT_HANDSHAKE_FAILURE',
  ])('the alert %s proves that nothing was processed, also after the request was sent', (code) => {
    expect(isRefusedHandshake(networkError({ code }))).toBe(true)
    expect(provesUnsent(networkError({ code }))).toBe(true)
    const error = toConnectionError(networkError({ code }), { host: 'h', secrets: [] }, false)
    expect(error.message).toContain('client certificate')
    expect(isTransient(error)).toBe(false)
  })

  test.each(['ENETUNREACH', 'EHOSTUNREACH', 'ETIMEDOUT', 'EADDRNOTAVAIL'])(
    '%s of each address that was tried proves that nothing was sent',
    (code) => {
      const tried = new AggregateError([networkError({ code, syscall: 'connect' })], '')
      expect(provesUnsent(Object.assign(tried, { code }))).toBe(true)
    },
  )

  test.each(['EPIPE', 'ECONNRESET', 'ERR_SSL_WRONG_VERSION_NUMBER', 'UND_ERR_SOCKET', 'CUSTOM_ERROR'])(
    '%s proves nothing about what was sent',
    (code) => expect(isRefusedHandshake(networkError({ code }))).toBe(false),
  )
})
