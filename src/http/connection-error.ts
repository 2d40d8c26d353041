/** Turns what undici and fetch throw into a `ConnectionError` that says what happened and what to do. */
import { ConnectionError } from '../errors.js'
import { redact } from './redact.js'
import type { HttpRequest } from './transport.js'

const trustIt = 'To trust it, pass `dispatcher: new Agent({ connect: { ca } })` or set NODE_EXTRA_CA_CERTS.'
const selfSigned = `its TLS certificate is self-signed, or signed by a private authority. ${trustIt}`
const unknownAuthority = `its TLS certificate is signed by an authority that is not trusted here. ${trustIt}`

const tlsFailed = 'the TLS handshake failed. Does the port speak TLS?'
const connectionFailed = 'no connection could be made. Check the address, and the proxy if there is one.'

/** Codes after which the server surely never saw the request: there was no connection to send it on. */
const explanationBeforeSending: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'the connection was refused. Is the address right, and is the service running?',
  ENOTFOUND: 'the host name does not exist. Check the address for a typing error.',
  EAI_AGAIN: 'the host name could not be resolved for now. Check the DNS and try again.',
  EHOSTUNREACH: 'there is no route to the host. Check the network, or whether a proxy is needed.',
  ENETUNREACH: 'there is no route to the network. Check the network, or whether a proxy is needed.',
  UND_ERR_CLOSED: 'the dispatcher was closed. Make a new one.',
  UND_ERR_CONNECT_TIMEOUT:
    'no connection could be made in time. Check the network, or whether a proxy is needed.',
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

/**
 * @param error - what the network layer threw while `request` was under way
 * @param sent - whether the request may have left, as far as the transport can tell
 */
export function toConnectionError(
  error: unknown,
  { url, secrets }: Pick<HttpRequest, 'url' | 'secrets'>,
  sent: boolean,
): ConnectionError {
  const { host } = new URL(url)
  const failure = innermost(error)
  const cause = copyWithout(secrets(), failure)
  const { code, message } = cause
  const explanation = code === undefined ? undefined : explanationBeforeSending[code]
  const requestSent = (sent || isMocked(failure)) && !isBeforeSending(failure, explanation)
  if (requestSent) {
    return new ConnectionError(
      `The connection to ${host} broke before the whole answer had arrived (${code ?? message}). ` +
        'The server may have seen the request.',
      { requestSent },
      { cause },
    )
  }
  const reason = explanation ?? (isAboutTls(cause) ? tlsFailed : connectionFailed)
  return new ConnectionError(`Could not reach ${host}: ${reason} (${message})`, { requestSent }, { cause })
}

/** A reset by no system call: a mock, which breaks a connection that it never began. It means a request that was sent. */
function isMocked(failure: unknown): boolean {
  return stringProperty(failure, 'code') === 'ECONNRESET' && stringProperty(failure, 'syscall') === undefined
}

/** What the failure itself proves, where the transport cannot tell. */
function isBeforeSending(failure: unknown, explanation: string | undefined): boolean {
  const syscall = stringProperty(failure, 'syscall')
  if (syscall === 'connect' || syscall === 'getaddrinfo') return true
  // A connection that stands can lose its route, too.
  if (syscall === 'read' || syscall === 'write') return false
  const text = stringProperty(failure, 'message') ?? ''
  return explanation !== undefined || text.includes('before secure TLS connection')
}

function isAboutTls({ code, message }: NetworkError): boolean {
  return code?.startsWith('ERR_SSL_') || code === 'EPROTO' || message.includes('TLS')
}

/** Fetch wraps the network's error in a TypeError; trying several addresses wraps one error for each. */
function innermost(error: unknown): unknown {
  if (typeof error !== 'object' || error === null) return error
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

/** Its words only: what else it carries is unknown, and may be the answer's bytes or the request's headers. */
function copyWithout(secrets: readonly string[], failure: unknown): NetworkError {
  const copied = (name: string) => {
    const text = stringProperty(failure, name)
    return text === undefined ? undefined : redact(text, secrets)
  }
  const copy: NetworkError = new Error(copied('message') ?? redact(String(failure), secrets))
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
