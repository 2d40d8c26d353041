/** Turns what undici and fetch throw into a `ConnectionError` that says what happened and what to do. */
import { ConnectionError } from '../errors.js'
import { excerpt } from '../shared/excerpt.js'
import { ProxyFailure } from './proxy.js'
import { redact } from './redact.js'
import type { HttpRequest } from './transport.js'

const trustIt = 'To trust it, give the client its certificate as `ca`, or set NODE_EXTRA_CA_CERTS.'
const selfSigned = `its TLS certificate is self-signed, or signed by a private authority. ${trustIt}`
const unknownAuthority = `its TLS certificate is signed by an authority that is not trusted here. ${trustIt}`

const tlsFailed = 'the TLS handshake failed. Does the port speak TLS?'
const connectionFailed = 'no connection could be made. Check the address, and the proxy if there is one.'

/** Codes after which the server surely never saw the request, because there was no connection; they may pass. */
const transientFailures: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused. Is the address right, and is the service running?',
  ENOTFOUND: 'the host name does not exist. Check the address for a typing error.',
  EAI_AGAIN: 'the host name could not be resolved for now. Check the DNS and try again.',
  EHOSTUNREACH: 'there is no route to the host. Check the network, or whether a proxy is needed.',
  ENETUNREACH: 'there is no route to the network. Check the network, or whether a proxy is needed.',
  UND_ERR_CONNECT_TIMEOUT:
    'no connection could be made in time. Check the network, or whether a proxy is needed.',
}

/** Codes after which the server never saw the request either, and another attempt would fail alike. */
const permanentFailures: Readonly<Record<string, string>> = {
  UND_ERR_CLOSED: 'the dispatcher was closed. Make a new one.',
  DEPTH_ZERO_SELF_SIGNED_CERT: selfSigned,
  SELF_SIGNED_CERT_IN_CHAIN: selfSigned,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT: unknownAuthority,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: unknownAuthority,
  ERR_TLS_CERT_ALTNAME_INVALID:
    'its TLS certificate was issued for another host. Check the address; do not turn verification off.',
  CERT_HAS_EXPIRED: 'its TLS certificate has expired. The owner of the server must renew it.',
  CERT_NOT_YET_VALID: "its TLS certificate is not valid yet. Check this machine's clock.",
  CERT_REVOKED: 'its TLS certificate was revoked. The owner of the server must replace it.',
}

const explanations = { ...transientFailures, ...permanentFailures }

/** Errors of this module that another attempt at the same address would meet again. */
const permanentErrors = new WeakSet<ConnectionError>()

/**
 * @param error - what the network layer threw while `request` was in flight
 * @param sent - whether the request may have left, as far as the transport can tell
 */
export function toConnectionError(
  error: unknown,
  { address, secrets }: Pick<HttpRequest, 'address' | 'secrets'>,
  sent: boolean,
): ConnectionError {
  const failure = innermost(error)
  if (failure instanceof ProxyFailure) return proxyError(failure, address.host, secrets())
  const cause = copyWithout(secrets(), failure)
  const { code, message } = cause
  const explanation = code === undefined ? undefined : explanations[code]
  const requestSent = (sent || isMocked(failure)) && !isBeforeSending(failure, explanation)
  if (requestSent) {
    return new ConnectionError(
      `The connection to ${address.host} broke before the whole answer had arrived (${code ?? message}). ` +
        'The server may have seen the request.',
      { requestSent },
      { cause },
    )
  }
  const reason = explanation ?? (isAboutTls(cause) ? tlsFailed : connectionFailed)
  const notSent = new ConnectionError(
    `Could not reach ${address.host}: ${reason} (${message})`,
    { requestSent },
    { cause },
  )
  if (isPermanent(cause)) permanentErrors.add(notSent)
  return notSent
}

/** Whether another attempt may do better: nothing was sent, and what went wrong may pass. */
export function isTransient(error: ConnectionError): boolean {
  return !error.requestSent && !permanentErrors.has(error)
}

function proxyError(failure: ProxyFailure, host: string, secrets: readonly string[]): ConnectionError {
  const cause = copyWithout(secrets, innermost(failure.cause))
  const reason = failure.explain(host, cause.code)
  const error = new ConnectionError(
    `Could not get through the proxy ${failure.proxy}: ${reason} (${cause.message})`,
    { requestSent: false },
    { cause },
  )
  if (failure.isPermanent || isPermanent(cause)) permanentErrors.add(error)
  return error
}

/** A certificate stays what it is, and so does a port that does not speak TLS. */
function isPermanent({ code = '' }: NetworkError): boolean {
  // A server that is being set up sends the TLS alert `internal error`: that passes.
  if (code.includes('INTERNAL_ERROR')) return false
  return Object.hasOwn(permanentFailures, code) || code.startsWith('ERR_SSL_') || code === 'EPROTO'
}

/** ECONNRESET without a `syscall` comes from a mock: treat the request as sent. */
function isMocked(failure: unknown): boolean {
  return stringProperty(failure, 'code') === 'ECONNRESET' && stringProperty(failure, 'syscall') === undefined
}

/** Whether the failure itself proves that the request was not sent, where the transport cannot tell. */
function isBeforeSending(failure: unknown, explanation: string | undefined): boolean {
  const syscall = stringProperty(failure, 'syscall')
  if (syscall === 'connect' || syscall === 'getaddrinfo') return true
  // On a connection that stands: EHOSTUNREACH and the like then mean that it lost its route.
  if (syscall === 'read' || syscall === 'write') return false
  const text = stringProperty(failure, 'message') ?? ''
  return explanation !== undefined || text.includes('before secure TLS connection')
}

function isAboutTls({ code, message }: NetworkError): boolean {
  return code?.startsWith('ERR_SSL_') || code === 'EPROTO' || message.includes('TLS')
}

/** The network's own error: fetch wraps it in a TypeError, and trying several addresses wraps one for each. */
function innermost(error: unknown): unknown {
  if (typeof error !== 'object' || error === null || error instanceof ProxyFailure) return error
  if ('errors' in error && Array.isArray(error.errors) && error.errors.length > 0) {
    return innermost(error.errors[0])
  }
  const code = stringProperty(error, 'code')
  const isWrapper = code === undefined || code === 'UND_ERR_PRX_TLS'
  return isWrapper && 'cause' in error && error.cause !== undefined ? innermost(error.cause) : error
}

interface NetworkError extends Error {
  code?: string
}

/** A copy of an error's words: what else an error carries is unknown, and may be bytes or headers with a secret. */
function copyWithout(secrets: readonly string[], failure: unknown): NetworkError {
  const copied = (name: string) => {
    const text = stringProperty(failure, name)
    return text === undefined ? undefined : redact(text, secrets)
  }
  // OpenSSL's messages end with a line break.
  const message = excerpt(copied('message') ?? redact(String(failure), secrets), 300).trim()
  const copy: NetworkError = new Error(message)
  const stack = copied('stack')
  if (stack !== undefined) copy.stack = stack
  const code = copied('code')
  return code === undefined ? copy : Object.assign(copy, { code })
}

function stringProperty(value: unknown, name: string): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const property: unknown = Reflect.get(value, name)
  return typeof property === 'string' ? property : undefined
}
