/** Which addresses are accepted, and how errors show them (docs/service.md, Authentication). */
import * as z from 'zod'
import { excerpt } from './text.js'
import { issueFrom } from './validation.js'

export const loopbackHost = /^(?:localhost\.?|127(?:\.\d{1,3}){3}|\[::1\])\.?$/

/** Whether a URL has `http:` and a loopback host: then requests do not leave the machine. */
export function isInsecureLoopback({ protocol, hostname }: URL): boolean {
  return protocol === 'http:' && loopbackHost.test(hostname)
}

/** What is wrong with an address of a server, or `undefined`. */
export function urlProblem(value: string | URL): string | undefined {
  const usable = usableUrl(String(value))
  return typeof usable === 'string' ? usable : undefined
}

/** The schema of a server's address; gives a `URL`. @param added - the path that the client adds, and people paste, too */
export function addressSchema(added: RegExp) {
  function problemOf(text: string): string | undefined {
    const problem = urlProblem(text)
    if (problem !== undefined) return problem
    if (/[?#]/.test(text)) return 'must not contain a query or a fragment: paths are added to it'
    const [path] = added.exec(text) ?? []
    return path && `must end before \`${path}\`, which is added to it`
  }
  return z
    .union([z.string(), z.instanceof(URL)], 'must be a URL')
    .refine(...issueFrom(problemOf))
    .transform((address) => new URL(address))
}

/** What is wrong with a callback URL, or `undefined`. It must be spelled as `URL` does, because the service compares text. */
export function callbackUrlProblem(value: string | URL): string | undefined {
  const text = String(value)
  const usable = usableUrl(text)
  if (typeof usable === 'string') return usable
  if (text.includes('#')) return 'must not contain a fragment (#…): it is never sent to a server'
  if (usable.href === text) return undefined
  const shown = withoutQuery(usable.href)
  const spelling =
    shown === withoutQuery(text) ? 'with its query as `new URL(…).href` has it' : `\`${shown}\``
  return `must be written ${spelling}: in another spelling it would be another callback URL to the service`
}

/**
 * What is wrong with a callback URL for one service, or `undefined`. The service calls it: a loopback address there is the
 * service's own machine, which is this one only if the service is on loopback, too.
 *
 * @param baseUrl - the service's address, if it is known
 */
export function loopbackCallbackProblem(
  callbackUrl: string | URL,
  baseUrl: string | undefined,
): string | undefined {
  const callback = parsedUrl(String(callbackUrl))
  if (!callback || !isInsecureLoopback(callback)) return undefined
  const service = parsedUrl(baseUrl ?? '')
  if (!service || loopbackHost.test(service.hostname)) return undefined
  return `must be an https: URL: ${service.origin} would call its own machine (http: on loopback is for a service on loopback)`
}

/** An address as errors show it: with `?…` in place of its query, which may hold a secret. No request accepts `?…`. */
export function withoutQuery(url: string): string {
  const start = url.indexOf('?')
  return start === -1 ? url : `${url.slice(0, start)}?…`
}

/** The address that a `Location` names, or nothing: without its query and fragment, which may hold a secret. */
export function redirectTarget(location: string | undefined, from: string): string | undefined {
  const url = location && parsedUrl(location, from)
  return url ? excerpt(url.origin + url.pathname, 200) : undefined
}

/** `undefined` for a text that is no absolute URL. In Node.js 20 and 22, `URL.canParse` refuses every `ü` after a while. */
export function parsedUrl(text: string, base?: string): URL | undefined {
  try {
    return new URL(text, base)
  } catch {
    return undefined
  }
}

/** The parsed address, or what is wrong with it: the URL parser drops, replaces or misreads some characters without an error. */
function usableUrl(text: string): URL | string {
  // Checked first, because the other problems show parts of the text.
  if (hasUserInfo(text)) return 'must not contain a user name or password: addresses are shown in errors'
  if (placeholder.test(text)) return 'contains a placeholder, which was never filled in'
  if (/[\s\\\p{Cc}\p{Cs}]/u.test(text))
    return 'must not contain white space, control characters or a backslash'
  const url = parsedUrl(text)
  if (url === undefined) return 'must be an absolute URL, such as `https://app.example.com/path`'
  const { hostname, protocol } = url
  if (!/^https?:$/.test(protocol)) return 'must be an https: URL'
  // An IPv6 address has no labels.
  const labels = hostname.startsWith('[') ? [] : hostname.replace(/\.$/, '').split('.')
  const unfilled = labels.find((label) => !/^(?!undefined$|null$)[\w-]+$/.test(label))
  if (unfilled === '') return `has the host \`${hostname}\`, which has an empty part: was a variable not set?`
  if (unfilled !== undefined) {
    return `has the host \`${hostname}\`: was \`${unfilled}\` never replaced by its value?`
  }
  if (protocol === 'https:' || isInsecureLoopback(url)) return url
  return 'must be an https: URL (http: is allowed on loopback only)'
}

/** A `${…}`, `{{…}}`, `{word}` or `<word>` in an address; the URL parser writes a brace in a path as `%7B`. */
const placeholder = /\$(?:\{|%7B)|(?:\{|%7B){2}|^[^?#]*(?:\{[\w.-]+\}|<[\w.-]+>)/i

/** Whether there is an `@` between the scheme and the path, also in a text that is no URL. */
function hasUserInfo(text: string): boolean {
  return /^[^/\\?#]*@/.test(text.replace(/^[^/\\?#]*?:[/\\]*/, ''))
}

/** Not by the pattern `/\/+$/`, which takes quadratic time. */
export function withoutEndingSlashes(address: string): string {
  let end = address.length
  while (address[end - 1] === '/') end--
  return address.slice(0, end)
}
