/** Which certificate authorities the client's own connections trust, if a private one is added. */
import { readFileSync } from 'node:fs'

/**
 * The authorities that Node.js trusts, and one more: a list that is given to TLS replaces the defaults.
 *
 * @param ca - certificates in PEM
 */
export async function trustedWith(ca: string): Promise<string[]> {
  // Loaded here: importing the package alone does not pay for TLS.
  const { rootCertificates } = await import('node:tls')
  return [...rootCertificates, ...extraCertificates(), ca]
}

/** What NODE_EXTRA_CA_CERTS names. Node.js warns by itself of a file that it cannot read, and goes on without. */
function extraCertificates(): string[] {
  const file = process.env.NODE_EXTRA_CA_CERTS
  if (!file) return []
  try {
    return [readFileSync(file, 'utf8')]
  } catch {
    return []
  }
}
