/** Checks DNS and TLS of a server. */
import { lookup } from 'node:dns/promises'
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import type { Environment } from '../../client/environment.js'
import { durationInWords } from '../../emulator/words.js'
import { toConnectionError } from '../../http/connection-error.js'
import { trustedWith } from '../../http/undici.js'
import { nextAfterConnection } from '../next-step.js'
import { type CheckStep, failed, passed, skipped } from './step.js'

const connectTimeoutMs = 10_000

/** Looks up the host, connects with TLS, and disconnects. */
export async function checkConnection(
  variable: string,
  url: URL,
  env: Environment,
  ca: string | undefined,
): Promise<CheckStep> {
  const name = `DNS and TLS of ${url.host}`
  try {
    const addresses = await lookup(url.hostname.replace(/^\[|\]$/g, ''), { all: true })
    const { protocol, validUntil } = await certificateOf(url, ca)
    const found = addresses.map(({ address }) => address)
    return passed(name, `${found.join(', ')}; ${protocol}, its certificate is valid until ${validUntil}`, {
      addresses: found,
      protocol,
      validUntil,
    })
  } catch (error) {
    const proxy = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'].find((each) => env[each])
    if (proxy !== undefined) {
      return skipped(name, `not reached directly, and ${proxy} is set: the next steps use that proxy`)
    }
    const failure = toConnectionError(error, { host: url.host, secrets: [] }, false)
    return failed(name, failure.message, nextAfterConnection(failure) ?? `Check ${variable}`)
  }
}

async function certificateOf(
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
      const message = `connect timeout after ${durationInWords(connectTimeoutMs)}`
      socket.destroy(Object.assign(new Error(message), { code: 'UND_ERR_CONNECT_TIMEOUT' }))
    })
    socket.once('error', reject)
  })
}
