/** Certificates that are wrong on purpose. */
import {
  authorityCertificate,
  keyOf,
  newHolder,
  serverCertificate,
} from '../../src/emulator/https/certificate.js'

const dayMs = 24 * 60 * 60 * 1000

export interface CertificateOptions {
  /** The only host that it is for. Default: `localhost`. */
  readonly host?: string
  /** In milliseconds since 1970. Default: a day ago. */
  readonly validFrom?: number
  /** In milliseconds since 1970. Default: 31 days after `validFrom`. */
  readonly validUntil?: number
  /** Signed with its own key, by no authority. Default: `false`. */
  readonly selfSigned?: boolean
}

export function createCertificate(options: CertificateOptions): {
  ca: string
  tls: { key: string; cert: string }
} {
  const { host = 'localhost', selfSigned = false, validFrom = Date.now() - dayMs } = options
  const { validUntil = validFrom + 31 * dayMs } = options
  const [authority, server] = [newHolder('Test CA'), newHolder(host)]
  const signer = selfSigned ? server : authority
  const cert = serverCertificate(signer, server, [host], [validFrom, validUntil])
  return { ca: authorityCertificate(authority), tls: { key: keyOf(server), cert } }
}
