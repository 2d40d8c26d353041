/** Checks DNS and TLS of a server. */
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import type { Environment } from '../../client/environment.js'
import { durationInWords } from '../../emulator/words.js'
import { toConnectionError } from '../../http/connection-error.js'
import { proxyVariables } from '../../http/proxy.js'
import { tlsOptions } from '../../http/undici.js'
import { nextAfterConnection } from '../next-step.js'
import { failed, passed, type StepResult, skipped } from './step.js'

const connectTimeoutMs = 10_000

/** Looks up the host, connects with TLS, and disconnects. */
export async function checkConnection(
  variable: string,
  url: URL,
  env: Environment,
  ca: string | undefined,
): Promise<StepResult> {
  try {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const found = await lookup(host, { all: true })
    const { protocol, validUntil } = await certificateOf(host, Number(url.port || 443), ca)
    const addresses = found.map(({ address }) => address)
    const message = `${addresses.join(', ')}; ${protocol}, its certificate is valid until ${validUntil}`
    return passed(message, { addresses, protocol, validUntil })
  } catch (error) {
    const proxy = proxyVariables.find((each) => env[each])
    if (proxy !== undefined) {
      return skipped(`not reached directly, and ${proxy} is set: the next steps use that proxy`)
    }
    const failure = toConnectionError(error, { host: url.host, secrets: [] }, false)
    return failed(failure.message, nextAfterConnection(failure) ?? `Check ${variable}`)
  }
}

async function certificateOf(host: string, port: number, ca: string | undefined) {
  const socket = connect({
    host,
    port,
    timeout: connectTimeoutMs,
    // A server name is a host name, never an IP address (RFC 6066 section 3).
    ...(isIP(host) === 0 && { servername: host }),
    ...(await tlsOptions(ca)),
  })
  socket.once('timeout', () => {
    const message = `connect timeout after ${durationInWords(connectTimeoutMs)}`
    socket.destroy(Object.assign(new Error(message), { code: 'UND_ERR_CONNECT_TIMEOUT' }))
  })
  try {
    await once(socket, 'secureConnect')
    const validUntil = new Date(socket.getPeerCertificate().valid_to).toISOString().slice(0, 10)
    return { protocol: socket.getProtocol() ?? 'TLS', validUntil }
  } finally {
    socket.destroy()
  }
}
