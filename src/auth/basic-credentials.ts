/** HTTP Basic credentials (RFC 7617), in the two readings that authorization servers have of them. */

/**
 * How client ID and secret are written before base64.
 *
 * - `raw`: as they are, joined by a colon, as the service asks (docs/service.md, Authentication).
 * - `form-urlencoded`: each encoded as `application/x-www-form-urlencoded` first, as RFC 6749 section 2.3.1
 *   asks. Certified OpenID providers decode them so, and refuse a raw secret that contains `%` or `+`.
 */
export type CredentialsEncoding = 'raw' | 'form-urlencoded'

/** The base64 part of `Authorization: Basic …`. */
export function basicCredentials(user: string, password: string, encoding: CredentialsEncoding): string {
  const encode = encoding === 'raw' ? (text: string) => text : formUrlEncode
  return Buffer.from(`${encode(user)}:${encode(password)}`, 'utf8').toString('base64')
}

function formUrlEncode(text: string): string {
  return new URLSearchParams([['', text]]).toString().slice(1)
}
