/** Turns what undici and fetch throw into a `ConnectionError` that says what happened and what to do. */

import { ConnectionError } from '../errors.js'
import { redact } from '../shared/redact.js'
import { isProxyRefusal, isProxyUnauthorized } from '../shared/statuses.js'
import { excerpt, wholeMessageOf } from '../shared/text.js'
import { ProxyFailure } from './proxy.js'

const trustIt =
  'To trust it, give the client its certificate as `ca` (in the environment: NOTIFICATION_CA_FILE), or set NODE_EXTRA_CA_CERTS.'
const selfSigned = `its TLS certificate is self-signed, or signed by a private authority. ${trustIt}`
const unknownAuthority =
  'its TLS certificate is signed by an authority that is not trusted here, or it does not send the certificates in ' +
  `between (the whole chain). ${trustIt}`
const dispatcherClosed = 'the dispatcher was closed. Make a new one.'

/** The status of a proxy that made no tunnel, and codes of failures to reach it. */
const proxyFailures: Readonly<Record<string, string>> = {
  403: 'it does not let this machine reach the host. Ask its administrator, or list the host in NO_PROXY.',
  ECONNREFUSED: 'the connection was refused. Is the address of the proxy right, and is it running?',
  ENOTFOUND: 'its host name does not exist. Check the variable for a typing error.',
  UND_ERR_CONNECT_TIMEOUT:
    'no connection to it could be made in time. Is the address of the proxy right, and is it running?',
}

/** Codes of temporary failures without a connection: the server cannot have seen the request. */
const transientFailures: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused. Is the address right, and is the service running?',
  ENOTFOUND: 'the host name does not exist. Check the address for a typing error.',
  EAI_AGAIN: 'the host name could not be resolved for now. Check the DNS and try again.',
  EHOSTUNREACH: 'there is no route to the host. Check the network, or whether a proxy is needed.',
  ENETUNREACH: 'there is no route to the network. Check the network, or whether a proxy is needed.',
  UND_ERR_CONNECT_TIMEOUT:
    'no connection could be made in time. Check the network, or whether a proxy is needed.',
}

/** Codes of permanent failures without a connection. */
const permanentFailures: Readonly<Record<string, string>> = {
  UND_ERR_CLOSED: dispatcherClosed,
  // Of undici's MockAgent, in a user's tests.
  UND_MOCK_ERR_MOCK_NOT_MATCHED:
    'the mock has no interceptor for this request. Add one; each answers once, unless you call `persist()`.',
  DEPTH_ZERO_SELF_SIGNED_CERT: selfSigned,
  SELF_SIGNED_CERT_IN_CHAIN: selfSigned,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknownAuthority,
  ERR_TLS_CERT_ALTNAME_INVALID:
    'its TLS certificate was issued for another host. Check the address; do not turn verification off.',
  CERT_HAS_EXPIRED:
    "its TLS certificate has expired. The owner of the server must renew it, unless this machine's clock is wrong.",
  CERT_NOT_YET_VALID: "its TLS certificate is not valid yet. Check this machine's clock.",
  CERT_REVOKED: 'its TLS certificate was revoked. The owner of the server must replace it.',
  ERR_SSL_TLSV1_ALERT_NO_APPLICATION_PROTOCOL:
    'it does not speak HTTP/1.1. For HTTP/2, give the client a `dispatcher`: `new Agent({ allowH2: true })` of undici.',
}

/** The codes of Node.js for OpenSSL's X509_V_ERR_…: each names a certificate that was not accepted. */
export const verificationError =
  /^(?:UNSPECIFIED|HOSTNAME_MISMATCH|OUT_OF_MEM|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH_EXCEEDED|(?:CERT|CRL|UNABLE_TO|ERROR_IN|DEPTH_ZERO|SELF_SIGNED)_[A-Z_]+)$/

const notVerified = 'its TLS certificate was not accepted. The owner of the server must replace it.'

/** A TLS alert about the certificate of this client; with TLS 1.3 it comes after the request. */
const clientCertificateAlert =
  /^ERR_SSL_.*ALERT_(?:CERTIFICATE_REQUIRED|BAD_CERTIFICATE|UNSUPPORTED_CERTIFICATE|CERTIFICATE_(?:REVOKED|EXPIRED|UNKNOWN)|UNKNOWN_CA|ACCESS_DENIED|HANDSHAKE_FAILURE)$/

const clientCertificate =
  'it refused the TLS handshake, probably because it wants a client certificate (docs/client.md, A client certificate).'

/** What a permanent failure without a connection means. */
function permanentReason(code: string): string | undefined {
  if (clientCertificateAlert.test(code)) return clientCertificate
  return permanentFailures[code] ?? (verificationError.test(code) ? notVerified : undefined)
}

/** Permanent errors that are made here. */
const permanentErrors = new WeakSet<ConnectionError>()

/** Errors of the proxy, and not of the target. */
const proxyErrors = new WeakSet<ConnectionError>()

/** Whether there was no connection to the proxy, or no tunnel through it. */
export function isOfProxy(error: ConnectionError): boolean {
  return proxyErrors.has(error)
}

/** Whether another attempt may succeed: nothing was sent, and the failure may be temporary. */
export function isTransient(error: ConnectionError): boolean {
  return !error.requestSent && !permanentErrors.has(error)
}

/** @param requestSent - whether the request may have been sent, as the transport observed */
export function toConnectionError(
  error: unknown,
  { host, secrets }: { readonly host: string; readonly secrets: readonly string[] },
  requestSent: boolean,
): ConnectionError {
  const found = innermost(error)
  const proxy = found instanceof ProxyFailure ? found : undefined
  const failure = proxy === undefined ? found : innermost(proxy.cause)
  const cause = copyWithout(secrets, failure)
  if (requestSent && proxy === undefined) {
    return new ConnectionError(
      `The connection to ${host} broke before the whole answer had arrived (${cause.code ?? cause.message}). ` +
        'The server may have seen the request.',
      { requestSent },
      { cause },
    )
  }
  // Read from the original error: in the copy, redacting a short secret may have blanked the code.
  const code = codeOf(failure)
  const words =
    proxy === undefined
      ? `Could not reach ${host}: ${transientFailures[code] ?? permanentReason(code) ?? otherReason(failure)}`
      : `Could not get through the proxy ${proxy.proxy.name}: ${reasonOfProxy(proxy, code) ?? `it made no tunnel to ${host}. Is it a proxy, and does it work?`}`
  const notSent = new ConnectionError(`${words} (${cause.message})`, { requestSent: false }, { cause })
  if (proxy !== undefined) proxyErrors.add(notSent)
  // A server that is starting sends the TLS alert `internal error`: temporary.
  const isPermanent = isOfTls(code) ? !code.includes('INTERNAL_ERROR') : permanentReason(code) !== undefined
  const isRefusedByProxy = proxy?.refusal !== undefined && isProxyRefusal(proxy.refusal)
  if (isPermanent || isRefusedByProxy) permanentErrors.add(notSent)
  return notSent
}

function reasonOfProxy({ proxy, refusal: status, schemes }: ProxyFailure, code: string): string | undefined {
  if (status === undefined || !isProxyUnauthorized(status)) return proxyFailures[status ?? code]
  const offer =
    schemes.length === 0 || schemes.some((name) => /^basic$/i.test(name))
      ? ''
      : ` It offers ${schemes.join(', ')}; only Basic works here.`
  return proxy.authorization !== undefined
    ? `it refuses the credentials that its address has.${offer || ' Check user name and password, with `%25` for a `%`.'}`
    : `it asks for credentials.${offer || ' Put them into its address, as in `http://user:password@proxy:3128`.'}`
}

/** The explanation of a failure without a connection whose code alone proves nothing. */
function otherReason(failure: unknown): string {
  const code = codeOf(failure)
  // The same as UND_ERR_CLOSED a moment later. It also ends requests that were sent.
  if (code === 'UND_ERR_DESTROYED') return dispatcherClosed
  return isOfTls(code) || textOf(failure, 'message')?.includes('TLS')
    ? 'the TLS handshake failed. Does the port speak TLS, in a version that Node.js allows?'
    : 'no connection could be made. Check the address, and the proxy if there is one.'
}

/** Whether an error of `fetch` or of an unknown dispatcher, which do not report this, proves that nothing was sent. */
export function provesUnsent(error: unknown): boolean {
  const failure = innermost(error)
  const syscall = textOf(failure, 'syscall')
  if (syscall === 'connect' || syscall === 'getaddrinfo') return true
  // There was a connection: EHOSTUNREACH and similar codes then mean that the route was lost.
  if (syscall === 'read' || syscall === 'write') return false
  const code = codeOf(failure)
  return code in transientFailures || permanentReason(code) !== undefined || isBeforeConnection(failure)
}

/** Whether the server ended TLS because of the client's certificate: then it processed nothing, whatever was sent. */
export function isRefusedHandshake(error: unknown): boolean {
  return clientCertificateAlert.test(codeOf(innermost(error)))
}

/** Whether a mock reset a connection that never existed: ECONNRESET without a `syscall`. */
export function isMockedReset(error: unknown): boolean {
  const failure = innermost(error)
  return (
    codeOf(failure) === 'ECONNRESET' &&
    textOf(failure, 'syscall') === undefined &&
    !isBeforeConnection(failure)
  )
}

/** By the message, because Node.js has no code for this, nor the `fetch` of Deno, Bun or Electron one for each failure to connect. */
const beforeConnection =
  /before secure TLS connection|client error \(Connect\)|^Unable to connect\. Is |^Was there a typo in the url|^net::ERR_(?:CONNECTION_REFUSED|NAME_NOT_RESOLVED|INTERNET_DISCONNECTED|PROXY_CONNECTION_FAILED|TUNNEL_CONNECTION_FAILED|CERT_)/

function isBeforeConnection(failure: unknown): boolean {
  return beforeConnection.test(textOf(failure, 'message') ?? '')
}

function isOfTls(code: string): boolean {
  return code.startsWith('ERR_SSL_') || code === 'EPROTO'
}

/** The network's own error: fetch wraps it in a TypeError, and Node.js wraps one error per address that it tried. */
function innermost(error: unknown): unknown {
  let found = error
  // A limit, because the error of a caller's `fetch` may be its own cause.
  for (let layer = 0; layer < 10; layer++) {
    const inner = innerOf(found)
    if (inner === undefined) return found
    found = inner
  }
  return found
}

function innerOf(error: unknown): unknown {
  if (typeof error !== 'object' || error === null || error instanceof ProxyFailure) return undefined
  if ('errors' in error && Array.isArray(error.errors)) return error.errors[0]
  const isWrapper = ['', 'UND_ERR_PRX_TLS'].includes(codeOf(error))
  return isWrapper && 'cause' in error ? error.cause : undefined
}

/** A copy of message, stack and code only: other properties may be bytes or headers with a secret. */
function copyWithout(secrets: readonly string[], failure: unknown): Error & { code?: string } {
  // OpenSSL's messages end with a line break.
  const copy = new Error(excerpt(redact(wholeMessageOf(failure), secrets), 300).trim())
  const stack = textOf(failure, 'stack')
  if (stack !== undefined) copy.stack = redact(stack, secrets)
  const code = textOf(failure, 'code')
  return code === undefined ? copy : Object.assign(copy, { code: redact(code, secrets) })
}

/** Empty if there is none. */
function codeOf(failure: unknown): string {
  return textOf(failure, 'code') ?? ''
}

function textOf(failure: unknown, property: 'code' | 'message' | 'stack' | 'syscall'): string | undefined {
  const value: unknown = Object(failure)[property]
  return typeof value === 'string' ? value : undefined
}
