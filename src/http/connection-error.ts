/** Turns what undici and fetch throw into a `ConnectionError` that says what happened and what to do. */
import { ConnectionError } from '../errors.js'
import { redact } from '../shared/redact.js'
import { isStatus } from '../shared/statuses.js'
import { excerpt, wholeMessageOf } from '../shared/text.js'

const network = 'Check the network, and whether a proxy is needed.'
const trustIt =
  'To trust its authority, give the client its certificate as `ca` (in the environment: NOTIFICATION_CA_FILE), or set NODE_EXTRA_CA_CERTS.'
const trustOrSend = `${trustIt} If it is a public one, the server does not send the whole chain.`
const closed = 'The dispatcher was closed: make a new one.'

/** What to do, by the code of a failure without a connection: the server cannot have seen the request. */
const advice: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'Is the address right, and is the service running?',
  ENOTFOUND: 'Check the address for a typing error.',
  EAI_AGAIN: 'Check the DNS and try again.',
  EHOSTUNREACH: network,
  ENETUNREACH: network,
  UND_ERR_CONNECT_TIMEOUT: network,
  UND_ERR_CLOSED: closed,
  UND_ERR_DESTROYED: closed,
  DEPTH_ZERO_SELF_SIGNED_CERT: trustIt,
  SELF_SIGNED_CERT_IN_CHAIN: trustIt,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: trustOrSend,
  UNABLE_TO_GET_ISSUER_CERT: trustOrSend,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: trustOrSend,
  ERR_TLS_CERT_ALTNAME_INVALID: 'Check the address; do not turn verification off.',
  CERT_HAS_EXPIRED: "The owner of the server must renew it, unless this machine's clock is wrong.",
  CERT_NOT_YET_VALID: "Check this machine's clock.",
}

/** The server's TLS alert about this client's certificate. With TLS 1.3 it comes after the request, which is not processed. */
const clientCertificateAlert = /^ERR_SSL_\w*ALERT_\w*CERTIFICATE/
const clientCertificate =
  'The server wants a client certificate that it accepts (docs/client.md, A client certificate).'

/** Of TLS, and of a mock without an interceptor: another attempt would fail, too. */
const permanent =
  /^(?:ERR_(?:SSL|TLS)_|EPROTO|UND_MOCK|(?:CERT|CRL|UNABLE_TO|ERROR_IN|DEPTH_ZERO|SELF_SIGNED)_)/

/** How the messages of failures of a proxy begin: those of {@link ProxyFailure}, and undici's about a tunnel. */
const proxyFailure = /^(?:no connection to the proxy|Proxy response \((\d+)\))/

/** No connection to the proxy. Has the code of its cause. */
export class ProxyFailure extends Error {
  readonly code: string

  constructor(cause: Error) {
    const failure = innermost(cause)
    super(`no connection to the proxy: ${wholeMessageOf(failure)}`)
    this.code = codeOf(failure)
  }
}

/** Whether the server's certificate was not accepted. */
export function isOfCertificate(code: string): boolean {
  return (
    code === 'ERR_TLS_CERT_ALTNAME_INVALID' || /^(?:CERT|CRL|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED)_/.test(code)
  )
}

/** Whether there was no connection to a proxy, or no tunnel through it. */
export function isOfProxy({ cause }: ConnectionError): boolean {
  return proxyFailure.test(wholeMessageOf(cause))
}

/** Whether another attempt may succeed: nothing was sent, and the failure may be temporary. */
export function isTransient({ requestSent, cause }: ConnectionError): boolean {
  // Repeated, wrong credentials would lock an account.
  const isRefusedByProxy = /^Proxy response \(40[37]\)/.test(wholeMessageOf(cause))
  return !requestSent && !permanent.test(codeOf(cause)) && !isRefusedByProxy
}

/** Whether the server ended TLS because of the client's certificate: it processed nothing, whatever was sent. */
export function isRefusedHandshake(error: unknown): boolean {
  return clientCertificateAlert.test(codeOf(innermost(error)))
}

/** @param requestSent - whether the request may have been sent, as the transport observed */
export function toConnectionError(
  error: unknown,
  request: {
    readonly host: string
    /** The variable that names the proxy. */
    readonly proxy?: string | undefined
    readonly secrets: readonly string[]
  },
  requestSent: boolean,
): ConnectionError {
  const { host, proxy, secrets } = request
  const failure = innermost(error)
  const cause = copyWithout(secrets, failure)
  const status = thrownStatus(error)
  if (status !== undefined) {
    return new ConnectionError(
      `The request to ${host} was answered, but what the client sends with threw the answer, of status ${status}: ` +
        'give the client a `fetch` or `dispatcher` that returns it.',
      { requestSent: true },
      { cause },
    )
  }
  if (requestSent) {
    return new ConnectionError(
      `The connection to ${host} broke before the whole answer had arrived (${cause.message}${cause.code === undefined ? '' : `, ${cause.code}`}). ` +
        'The server may have seen the request.',
      { requestSent },
      { cause },
    )
  }
  const [isOfAProxy, refusal] = proxyFailure.exec(cause.message) ?? []
  const next = isOfAProxy === undefined ? adviceFor(codeOf(failure), proxy) : adviceOnProxy(refusal, proxy)
  const said = cause.message
    .replace(/^\w+:error:\w+:[^:]*:[^:]*:([^:]+):.*$/s, 'TLS failed with "$1"')
    .replace(/^Proxy response \((\d+)\).*$/s, 'the proxy answered $1')
  return new ConnectionError(`Could not reach ${host}: ${said}. ${next}`, { requestSent }, { cause })
}

function adviceFor(code: string, proxy: string | undefined): string {
  if (clientCertificateAlert.test(code)) return clientCertificate
  if (/^(?:ERR_SSL_|EPROTO)/.test(code)) return 'Does the port speak TLS, in a version that Node.js allows?'
  const which = proxy === undefined ? 'if there is one' : `that ${proxy} names`
  return advice[code] ?? `Check the address, and the proxy ${which}.`
}

/** @param status - with which the proxy made no tunnel */
function adviceOnProxy(status: string | undefined, variable = 'HTTPS_PROXY'): string {
  return status === '407'
    ? `The proxy asks for a user and a password: write them into ${variable}, as in http://user:password@proxy:3128.`
    : `Check the address in ${variable} and the proxy's log, or list the host in NO_PROXY.`
}

/** The status of an answer that was thrown, as ky, axios and undici's interceptor `responseError` do. */
function thrownStatus(error: unknown): number | undefined {
  const { response, status, statusCode } = Object(error)
  return [Object(response).status, statusCode, status].find(isStatus)
}

/** Whether an error of `fetch` or of a foreign dispatcher, which do not report this, proves that nothing was sent. */
export function provesUnsent(error: unknown): boolean {
  const failure = innermost(error)
  const { syscall }: { syscall?: unknown } = Object(failure)
  if (syscall === 'connect' || syscall === 'getaddrinfo') return true
  // There was a connection: EHOSTUNREACH and similar codes then mean that the route was lost.
  if (syscall === 'read' || syscall === 'write') return false
  const code = codeOf(failure)
  return (
    // A destroyed dispatcher also ends requests that were sent.
    (code in advice && code !== 'UND_ERR_DESTROYED') ||
    isOfCertificate(code) ||
    clientCertificateAlert.test(code) ||
    code.startsWith('UND_MOCK') ||
    // Node.js has no code for this.
    wholeMessageOf(failure).includes('before secure TLS connection')
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
