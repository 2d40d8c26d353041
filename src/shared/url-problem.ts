/** Which addresses may be used: HTTPS, and HTTP on loopback where that is allowed (interface.md section 5.5). */

const loopbackHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/** What is wrong with an address that requests are to go to, or `undefined`. */
export function urlProblem(value: string | URL, allowInsecureLoopback: boolean): string | undefined {
  const text = String(value)
  // The URL parser would drop or replace these without a word, and the address sent would not be the one given.
  if (/[\s\p{Cc}\p{Cs}]/u.test(text))
    return text.isWellFormed()
      ? 'must not contain white space or control characters'
      : 'must not contain half a surrogate pair: it cannot be encoded'
  const url = parsed(text)
  if (url === undefined) return 'must be an absolute URL'
  const { protocol, hostname, username, password } = url
  if (username !== '' || password !== '')
    return 'must not contain a user name or password: addresses are shown in errors'
  if (protocol === 'https:') return undefined
  if (protocol !== 'http:') return 'must be an https: URL'
  if (allowInsecureLoopback && loopbackHost.test(hostname)) return undefined
  return allowInsecureLoopback
    ? 'must be an https: URL: http: is allowed on loopback only'
    : 'must be an https: URL (for tests on loopback, set `allowInsecureLoopback`)'
}

function parsed(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
