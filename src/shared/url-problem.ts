/** Which addresses may be used (docs/service.md, Authentication): HTTPS, and HTTP on loopback where that is allowed. */
import { excerpt } from './excerpt.js'

const loopbackHost = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/

/** `${…}` or `{{…}}` that nobody filled in; `%7B` is how the URL parser writes a brace in a path. */
const template = /(?:\$(?:\{|%7B)|(?:\{|%7B){2})(?:(?!\}|%7D).)*(?:\}|%7D){0,2}/i

/** `{word}` or `<word>` in host or path, where the URL parser writes no such sign: the parser's spelling is let through. */
const placeholder = /^[^?#]*?(\{[\w.-]+\}|<[\w.-]+>)/

/** A label of the host such as `YOUR_HOST`. The URL parser would write it in small letters. */
const nameInCapitals = /^[Hh][Tt]{2}[Pp][Ss]?:\/\/(?:[^/?#:@]*\.)?([A-Z][A-Z\d]*_[A-Z\d_]*)(?=[./?#:]|$)/
const templateLabels = new Set(['undefined', 'null'])

/** A host that raises no question: an IPv6 address, or labels none of which is `undefined`, `null` or empty. */
const usualHost = /^\[|^(?!(?:.+\.)?(?:undefined|null)(?:\.|$))(?:[\w-]+\.)*[\w-]+\.?$/

/** What is wrong with an address that requests are to go to, or `undefined`. */
export function urlProblem(value: string | URL, allowInsecureLoopback: boolean): string | undefined {
  const usable = usableUrl(String(value), allowInsecureLoopback)
  return typeof usable === 'string' ? usable : undefined
}

/**
 * What is wrong with a callback URL, or `undefined`. Beyond {@link urlProblem}, there must be one way only to write it:
 * the service compares callback URLs as text, so a text and a `URL` of the same address must name the same subscription.
 */
export function callbackUrlProblem(value: string | URL, allowInsecureLoopback: boolean): string | undefined {
  const text = String(value)
  const usable = usableUrl(text, allowInsecureLoopback)
  if (typeof usable === 'string') return usable
  if (text.includes('#')) return 'must not contain a fragment (#…): it is never sent to a server'
  return usable.href === text
    ? undefined
    : `must be written \`${usable.href}\`: in another spelling it would be another callback URL to the service`
}

/** The parsed address, or what is wrong with it. */
function usableUrl(text: string, allowInsecureLoopback: boolean): URL | string {
  const url = parsed(text)
  return (
    problemOfText(text) ??
    (url && problemOfUrl(url, allowInsecureLoopback)) ??
    url ??
    'must be an absolute URL, such as `https://app.example.com/path`'
  )
}

/** What the URL parser would drop, replace or misread without a word. */
function problemOfText(text: string): string | undefined {
  const unfilled = template.exec(text)?.[0] ?? placeholder.exec(text)?.[1]
  if (unfilled !== undefined) {
    const written = unfilled.replace(/%7B/gi, '{').replace(/%7D/gi, '}')
    const hint = written.startsWith('$') ? ' (quotes instead of backticks?)' : ''
    return `contains \`${excerpt(written, 60)}\`, which was never filled in${hint}`
  }
  if (/[\s\p{Cc}\p{Cs}]/u.test(text)) {
    return text.isWellFormed()
      ? 'must not contain white space or control characters'
      : 'must not contain half a surrogate pair: it cannot be encoded'
  }
  if (text.includes('\\'))
    return 'must not contain a backslash: is it what is left of an escape such as `\\n`?'
  const name = nameInCapitals.exec(text)?.[1]
  if (name !== undefined) return `has \`${name}\` in its host: was it never replaced by its value?`
  if (/^https?:/i.test(text)) {
    if (!/^https?:\/\/[^/]/i.test(text)) return 'must have two slashes and a host after `https:`'
    if (/^https?:\/\/https?:/i.test(text)) return 'has `https:` twice'
  }
  return undefined
}

function problemOfUrl(url: URL, allowInsecureLoopback: boolean): string | undefined {
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
  if (usualHost.test(hostname)) return undefined
  const labels = hostname.replace(/\.$/, '').split('.')
  if (labels.includes('')) return `has a host with an empty label: \`${hostname}\``
  const template = labels.find((label) => templateLabels.has(label) || !/^[\w-]+$/.test(label))
  return `has the host \`${hostname}\`: was \`${template}\` never replaced by its value?`
}

function parsed(text: string): URL | undefined {
  try {
    return new URL(text)
  } catch {
    return undefined
  }
}
