/** Turns what undici and fetch throw into a `ConnectionError` that says what happened and what to do. */
import { ConnectionError } from '../errors.js'
import { redact } from '../shared/redact.js'
import { isStatus } from '../shared/statuses.js'
import { excerpt, wholeMessageOf } from '../shared/text.js'
import { type Words, worded } from '../shared/words.js'

const network = 'Check the network, and whether a proxy is needed.'
const closed = 'The dispatcher was closed: make a new one.'
const trustIt: Words = ({ trust }) => `To trust the server, ${trust}.`
const trustOrSend: Words = (view) =>
  `${trustIt(view)} If that authority is public, the server does not send the whole chain.`

/** What to do, by the code of a failure without a connection: the server cannot have seen the request. */
const advice: Readonly<Record<string, string | Words>> = {
  ECONNREFUSED: 'Is the address right, and does a server run there?',
  ENOTFOUND: 'Check the address for a typing error.',
  EAI_AGAIN: 'Check the DNS and try again.',
  EHOSTUNREACH: network,
  ENETUNREACH: network,
  UND_ERR_CONNECT_TIMEOUT: network,
  UND_ERR_CLOSED: closed,
  UND_ERR_DESTROYED: closed,
  PROXY_407:
    'The proxy asks for a user and a password that it accepts: write both into its variable, as in HTTPS_PROXY=http://user:password@proxy:3128.',
  ERR_TLS_CERT_ALTNAME_INVALID: 'Check the address; do not turn verification off.',
  CERT_HAS_EXPIRED: "The owner of the server must renew it, unless this machine's clock is wrong.",
  CERT_NOT_YET_VALID: "Check this machine's clock.",
}

/** An alert of the server about the client's certificate. With TLS 1.3 it comes after the request. */
const refusedCertificate = /^ERR_SSL_\w*ALERT_\w*CERTIFICATE/

/** What to do for every other code, by its pattern. */
const adviceByKind: readonly (readonly [RegExp, string | Words])[] = [
  [/SELF_SIGNED/, trustIt],
  [/^UNABLE_TO_(?:VERIFY_LEAF|GET_ISSUER)/, trustOrSend],
  [
    refusedCertificate,
    'The server wants a client certificate that it accepts (docs/client.md, A client certificate).',
  ],
  [/NO_APPLICATION_PROTOCOL/, 'It speaks only HTTP/2: set `dispatcher: new Agent({ allowH2: true })`.'],
  [/^(?:ERR_SSL_|EPROTO)/, 'Does the port speak TLS, in a version that Node.js allows?'],
  [/^PROXY/, 'Check the address of the proxy (HTTPS_PROXY) and its log, or list the host in NO_PROXY.'],
  [/./, 'Check the address, and the proxy if there is one.'],
]

/** Failures of TLS, of a proxy that refuses, and of a mock without an interceptor: another attempt would fail, too. */
const permanent =
  /^(?:ERR_(?:SSL|TLS)_|EPROTO|PROXY_40[37]|UND_MOCK|(?:CERT|CRL|UNABLE_TO|ERROR_IN|DEPTH_ZERO|SELF_SIGNED)_)/

/** Whether the server's certificate was not accepted. */
function isOfCertificate(code: string): boolean {
  return /^(?:ERR_TLS_CERT_ALTNAME_INVALID|(?:CERT|CRL|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED)_)/.test(code)
}

/** How the message of a failure to reach the proxy begins. */
export const proxyFailure = 'no connection to the proxy: '

/** Whether another attempt may succeed: nothing was sent, and the failure may be temporary. */
export function isTransient({ requestSent, cause }: ConnectionError): boolean {
  return !requestSent && !permanent.test(kindOf(cause))
}

/** Whether the server ended TLS because of the client's certificate: it processed nothing, whatever was sent. */
export function isRefusedHandshake(error: unknown): boolean {
  return refusedCertificate.test(kindOf(innermost(error)))
}

/** @param requestSent - whether the request may have been sent, as the transport observed */
export function toConnectionError(
  error: unknown,
  { host, secrets }: { readonly host: string; readonly secrets: readonly string[] },
  requestSent: boolean,
): ConnectionError {
  const failure = innermost(error)
  const cause = copyWithout(secrets, failure)
  const status = thrownStatus(error)
  if (status !== undefined) {
    return new ConnectionError(
      `The request to ${host} was answered with status ${status}, but the client's \`fetch\` or \`dispatcher\` threw the answer: ` +
        'give the client one that returns it.',
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
  const kind = kindOf(failure)
  const next = advice[kind] ?? adviceByKind.find(([pattern]) => pattern.test(kind || '-'))?.[1]
  // OpenSSL writes places in its source around the reason.
  const said = cause.message
    .replace(/^\w+:error:\w+:[^:]*:[^:]*:([^:]+):.*$/s, 'TLS failed with "$1"')
    .replace(/^Proxy response \((\d+)\).*$/s, 'the proxy answered $1')
  return worded(
    (view) => `Could not reach ${host}: ${said}. ${typeof next === 'function' ? next(view) : next}`,
    (message) => new ConnectionError(message, { requestSent }, { cause }),
  )
}

/** The status of an answer that was thrown, as ky, axios and undici's interceptor `responseError` do. */
function thrownStatus(error: unknown): number | undefined {
  const { response, status, statusCode } = Object(error)
  return [Object(response).status, statusCode, status].find(isStatus)
}

/** Whether an error proves that nothing was sent: for `fetch` and foreign dispatchers, which do not report that. */
export function provesUnsent(error: unknown): boolean {
  const failure = innermost(error)
  const { syscall }: { syscall?: unknown } = Object(failure)
  if (syscall === 'connect' || syscall === 'getaddrinfo') return true
  // There was a connection: EHOSTUNREACH and similar codes then mean that the route was lost.
  if (syscall === 'read' || syscall === 'write') return false
  const kind = kindOf(failure)
  // A destroyed dispatcher also ends requests that were sent.
  if (kind in advice) return kind !== 'UND_ERR_DESTROYED'
  // Node.js has no code for a connection that ends before TLS.
  const isBeforeTls = wholeMessageOf(failure).includes('before secure TLS connection')
  return isBeforeTls || isOfCertificate(kind) || isRefusedHandshake(failure) || kind.startsWith('UND_MOCK')
}

/** The network's own error: fetch wraps it in a TypeError, and Node.js wraps one error per address that it tried. */
export function innermost(error: unknown): unknown {
  let found = error
  // A limit, because the error of a caller's `fetch` may be its own cause.
  for (let layer = 0; layer < 10; layer++) {
    const { cause, errors } = Object(found)
    const inner = Array.isArray(errors) ? errors[0] : codeOf(found) === undefined ? cause : undefined
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
  return code === undefined ? copy : Object.assign(copy, { code: redact(code, secrets) })
}

function codeOf(failure: unknown): string | undefined {
  const { code } = Object(failure)
  return typeof code === 'string' && code !== '' ? code : undefined
}

/** The code of a failure: for one of a proxy, which has no code, `PROXY` with the status of the proxy's answer, if any. */
function kindOf(failure: unknown): string {
  const message = wholeMessageOf(failure)
  const [, status] = /^Proxy response \((\d+)\)/.exec(message) ?? []
  if (status !== undefined) return `PROXY_${status}`
  return message.startsWith(proxyFailure) ? 'PROXY' : (codeOf(failure) ?? '')
}
