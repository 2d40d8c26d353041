/** Turns what undici and fetch throw into a `ConnectionError` that says what happened and what to do. */
import { ConnectionError } from '../errors.js'

const trustIt = 'To trust it, pass `dispatcher: new Agent({ connect: { ca } })` or set NODE_EXTRA_CA_CERTS.'
const selfSigned = `its TLS certificate is self-signed, or signed by a private authority. ${trustIt}`
const unknownAuthority = `its TLS certificate is signed by an authority that is not trusted here. ${trustIt}`

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

/** @param error - what the network layer threw while `url` was requested */
export function toConnectionError(error: unknown, url: string): ConnectionError {
  const { host } = new URL(url)
  const failure = innermost(error)
  const code = stringProperty(failure, 'code')
  const explanation = code === undefined ? undefined : explanationBeforeSending[code]
  if (explanation !== undefined) {
    return new ConnectionError(
      `Could not reach ${host}: ${explanation}`,
      { requestSent: false },
      { cause: error },
    )
  }
  const text = stringProperty(failure, 'message') ?? String(failure)
  if (code?.startsWith('ERR_SSL_') || code === 'EPROTO' || text.includes('before secure TLS connection')) {
    return new ConnectionError(
      `Could not reach ${host}: the TLS handshake failed (${code ?? text}). Does the port speak TLS?`,
      { requestSent: false },
      { cause: error },
    )
  }
  return new ConnectionError(
    `The connection to ${host} broke before the whole answer had arrived (${code ?? text}). ` +
      'The server may have seen the request.',
    { requestSent: true },
    { cause: error },
  )
}

/** Fetch wraps the network's error in a TypeError; trying several addresses wraps one error for each. */
function innermost(error: unknown): unknown {
  if (error instanceof AggregateError && error.errors.length > 0) return innermost(error.errors[0])
  if (error instanceof Error && stringProperty(error, 'code') === undefined && error.cause !== undefined) {
    return innermost(error.cause)
  }
  return error
}

function stringProperty(value: unknown, name: 'code' | 'message'): string | undefined {
  if (typeof value !== 'object' || value === null || !(name in value)) return undefined
  const property = (value as Record<typeof name, unknown>)[name]
  return typeof property === 'string' ? property : undefined
}
