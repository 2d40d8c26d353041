/** Which addresses may be used (docs/service.md, Authentication): HTTPS, and HTTP on loopback where that is allowed. */

const loopbackHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/** What of a template is left when nobody filled it in; `%7B` is how the URL parser writes a brace in a path. */
const templateMark = /\$\{|\{\{|\$%7B|%7B%7B/i
const templateLabels = new Set(['undefined', 'null'])

/** What is wrong with an address that requests are to go to, or `undefined`. */
export function urlProblem(value: string | URL, allowInsecureLoopback: boolean): string | undefined {
  const text = String(value)
  return problemOfText(text) ?? problemOfUrl(parsed(text), allowInsecureLoopback)
}

/**
 * The same for an address that the service compares with others: there must be one way only to write it, so that a
 * text and a `URL` of the same address name the same subscription.
 */
export function callbackUrlProblem(value: string | URL, allowInsecureLoopback: boolean): string | undefined {
  const problem = urlProblem(value, allowInsecureLoopback)
  if (problem !== undefined) return problem
  const text = String(value)
  if (text.includes('#')) return 'must not contain a fragment (#…): it is never sent to a server'
  const { href } = new URL(text)
  return href === text
    ? undefined
    : `must be written \`${href}\`: in another spelling it would be another callback URL to the service`
}

/** What the URL parser would drop, replace or misread without a word. */
function problemOfText(text: string): string | undefined {
  if (/[\s\p{Cc}\p{Cs}]/u.test(text)) {
    return text.isWellFormed()
      ? 'must not contain white space or control characters'
      : 'must not contain half a surrogate pair: it cannot be encoded'
  }
  if (text.includes('\\'))
    return 'must not contain a backslash: is it what is left of an escape such as `\\n`?'
  if (templateMark.test(text)) return 'contains a template that was never filled in: a placeholder in braces'
  if (/^https?:/i.test(text)) {
    if (!/^https?:\/\/[^/]/i.test(text)) return 'must have two slashes and a host after `https:`'
    if (/^https?:\/\/https?:/i.test(text)) return 'has `https:` twice'
  }
  return undefined
}

function problemOfUrl(url: URL | undefined, allowInsecureLoopback: boolean): string | undefined {
  if (url === undefined) return 'must be an absolute URL, such as `https://app.example.com/path`'
  const { protocol, hostname, username, password } = url
  if (username !== '' || password !== '')
    return 'must not contain a user name or password: addresses are shown in errors'
  if (protocol !== 'https:' && protocol !== 'http:') return 'must be an https: URL'
  const hostProblem = problemOfHost(hostname)
  if (hostProblem !== undefined || protocol === 'https:') return hostProblem
  if (allowInsecureLoopback && loopbackHost.test(hostname)) return undefined
  return allowInsecureLoopback
    ? 'must be an https: URL: http: is allowed on loopback only'
    : 'must be an https: URL (for tests on loopback, set `allowInsecureLoopback`)'
}

function problemOfHost(hostname: string): string | undefined {
  // An address in numbers has no labels.
  if (hostname.startsWith('[')) return undefined
  const labels = hostname.replace(/\.$/, '').split('.')
  if (labels.includes('')) return `has a host with an empty label: \`${hostname}\``
  const template = labels.find((label) => templateLabels.has(label) || !/^[\w-]+$/.test(label))
  return template === undefined
    ? undefined
    : `has the host \`${hostname}\`: was \`${template}\` never replaced by its value?`
}

function parsed(text: string): URL | undefined {
  return URL.canParse(text) ? new URL(text) : undefined
}
