/** Turns what undici and fetch throw into a `ConnectionError` that says what happened and what to do. */
import { ConnectionError } from '../errors.js'
import { redact } from '../shared/redact.js'
import { excerpt, wholeMessageOf } from '../shared/text.js'

const network = 'Check the network, and whether a proxy is needed.'
const trustIt =
  'To trust its authority, give the client its certificate as `ca` (in the environment: NOTIFICATION_CA_FILE), or set NODE_EXTRA_CA_CERTS.'

/** Codes of failures without a connection: the server cannot have seen the request. */
const advice: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'Is the address right, and is the service running?',
  ENOTFOUND: 'Check the address for a typing error.',
  EAI_AGAIN: 'Check the DNS and try again.',
  EHOSTUNREACH: network,
  ENETUNREACH: network,
  UND_ERR_CONNECT_TIMEOUT: network,
  UND_ERR_CLOSED: 'The dispatcher was closed: make a new one.',
  UND_ERR_DESTROYED: 'The dispatcher was closed: make a new one.',
  DEPTH_ZERO_SELF_SIGNED_CERT: trustIt,
  SELF_SIGNED_CERT_IN_CHAIN: trustIt,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: trustIt,
  UNABLE_TO_GET_ISSUER_CERT: trustIt,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: trustIt,
  ERR_TLS_CERT_ALTNAME_INVALID: 'Check the address; do not turn verification off.',
  CERT_NOT_YET_VALID: "Check this machine's clock.",
}

/** Of TLS, and of a mock without an interceptor: another attempt would fail, too. */
const permanent =
  /^(?:ERR_(?:SSL|TLS)_|EPROTO|UND_MOCK|(?:CERT|CRL|UNABLE_TO|ERROR_IN|DEPTH_ZERO|SELF_SIGNED)_)/

/** Whether the server's certificate was not accepted. */
export function isOfCertificate(code: string): boolean {
  return (
    code === 'ERR_TLS_CERT_ALTNAME_INVALID' || /^(?:CERT|CRL|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED)_/.test(code)
  )
}

/** Whether there was no tunnel through a proxy. By undici's message, which has no code. */
export function isOfProxy({ cause }: ConnectionError): boolean {
  return wholeMessageOf(cause).startsWith('Proxy response')
}

/** Whether another attempt may succeed: nothing was sent, and the failure may be temporary. */
export function isTransient({ requestSent, cause }: ConnectionError): boolean {
  return !requestSent && !permanent.test(codeOf(cause))
}

/** @param requestSent - whether the request may have been sent, as the transport observed */
export function toConnectionError(
  error: unknown,
  {
    host,
    proxy,
    secrets,
  }: { readonly host: string; readonly proxy?: string | undefined; readonly secrets: readonly string[] },
  requestSent: boolean,
): ConnectionError {
  const cause = copyWithout(secrets, innermost(error))
  if (requestSent) {
    return new ConnectionError(
      `The connection to ${host} broke before the whole answer had arrived (${cause.message}${cause.code === undefined ? '' : `, ${cause.code}`}). ` +
        'The server may have seen the request.',
      { requestSent },
      { cause },
    )
  }
  const through = proxy === undefined ? '' : `, perhaps because of the proxy ${proxy}`
  return new ConnectionError(
    `Could not reach ${host}${through}: ${cause.message}. ${advice[codeOf(cause)] ?? 'Check the address, and the proxy if there is one.'}`,
    { requestSent },
    { cause },
  )
}

/** Whether an error of `fetch` or of a dispatcher, which do not report this, proves that nothing was sent. */
export function provesUnsent(error: unknown): boolean {
  const failure = innermost(error)
  const { syscall }: { syscall?: unknown } = Object(failure)
  if (syscall === 'connect' || syscall === 'getaddrinfo') return true
  // There was a connection: EHOSTUNREACH and similar codes then mean that the route was lost.
  if (syscall === 'read' || syscall === 'write') return false
  const code = codeOf(failure)
  // A destroyed dispatcher also ends requests that were sent, and a TLS alert may come after the request.
  return (
    (code in advice && code !== 'UND_ERR_DESTROYED') || isOfCertificate(code) || code.startsWith('UND_MOCK')
  )
}

/** The network's own error: fetch wraps it in a TypeError, and Node.js wraps one error per address that it tried. */
function innermost(error: unknown): unknown {
  let found = error
  // A limit, because the error of a caller's `fetch` may be its own cause.
  for (let layer = 0; layer < 10; layer++) {
    const { cause, errors } = Object(found)
    const inner = Array.isArray(errors) ? errors[0] : codeOf(found) === '' ? cause : undefined
    if (inner === undefined) return found
    found = inner
  }
  return found
}

/** A copy of message, stack and code only: other properties may be bytes or headers with a secret. */
function copyWithout(secrets: readonly string[], failure: unknown): Error & { code?: string } {
  // OpenSSL's messages end with a line break.
  const copy = new Error(excerpt(redact(wholeMessageOf(failure), secrets), 300).trim())
  const { stack } = Object(failure)
  if (typeof stack === 'string') copy.stack = redact(stack, secrets)
  const code = codeOf(failure)
  return code === '' ? copy : Object.assign(copy, { code: redact(code, secrets) })
}

/** Empty if there is none. */
function codeOf(failure: unknown): string {
  const { code } = Object(failure)
  return typeof code === 'string' ? code : ''
}
