/** A connection for a look at the certificate, and what may be wrong with one. */
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import { addressBelow } from '../../http/address.js'
import { trustedWith } from '../../http/authorities.js'
import { toConnectionError } from '../../http/connection-error.js'

const connectTimeoutMs = 10_000

/** Connects with TLS and hangs up. Rejects with the network's error. */
export async function certificateOf(
  url: URL,
  ca: string | undefined,
): Promise<{ protocol: string; validUntil: string }> {
  const trusted = ca === undefined ? {} : { ca: await trustedWith(ca) }
  const host = url.hostname.replace(/^\[|\]$/g, '')
  return new Promise((resolve, reject) => {
    const socket = connect({
      host,
      port: Number(url.port || 443),
      timeout: connectTimeoutMs,
      // A server name is a host name, never an IP address (RFC 6066 section 3).
      ...(isIP(host) === 0 && { servername: host }),
      ...trusted,
    })
    socket.once('secureConnect', () => {
      const validUntil = new Date(socket.getPeerCertificate().valid_to).toISOString().slice(0, 10)
      resolve({ protocol: socket.getProtocol() ?? 'TLS', validUntil })
      socket.destroy()
    })
    socket.once('timeout', () => {
      const message = `connect timeout after ${connectTimeoutMs} ms`
      socket.destroy(Object.assign(new Error(message), { code: 'UND_ERR_CONNECT_TIMEOUT' }))
    })
    socket.once('error', reject)
  })
}

const untrusted = new Set([
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
])

/** What happened, as the client would say it, and what to do about it on the command line. */
export function connectionProblem(error: unknown, url: URL): { message: string; next?: string } {
  const request = { address: addressBelow(url, ''), secrets: () => [] }
  const { message, cause } = toConnectionError(error, request, false)
  const { code = '' }: { code?: string } = Object(cause)
  return untrusted.has(code)
    ? {
        message,
        next: 'Set NOTIFICATION_CA_FILE to a file with the certificate of the authority that signed it',
      }
    : { message }
}
