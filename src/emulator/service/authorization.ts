/** Reads an Authorization header (RFC 9110 section 11.6.2). */

/** What the header holds: for Basic the decoded credentials (RFC 7617), for Bearer the token (RFC 6750). */
export type Authorization =
  | { readonly scheme: 'basic'; readonly credentials: string }
  | { readonly scheme: 'bearer'; readonly token: string }

/** Nothing if there is no header, or one of another form. */
export function parseAuthorization(header: string | null): Authorization | undefined {
  const [, scheme = '', value = ''] = /^(\S+) +(\S+)$/.exec(header ?? '') ?? []
  switch (scheme.toLowerCase()) {
    case 'basic':
      return { scheme: 'basic', credentials: Buffer.from(value, 'base64').toString('utf8') }
    case 'bearer':
      return { scheme: 'bearer', token: value }
    default:
      return undefined
  }
}
