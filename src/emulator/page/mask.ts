/**
 * Takes the secrets out of what the page shows. What is known to be harmless stays, everything else is masked:
 * an associated parameter can have any name, and is how a receiver's secret travels (docs/service.md).
 */
import type { MaskedHeader } from './feed.js'

export const mask = '••••••••'

const harmlessHeaders = new Set([
  'accept',
  'accept-encoding',
  'accept-language',
  'cache-control',
  'connection',
  'content-encoding',
  'content-length',
  'content-type',
  'date',
  'expect',
  'host',
  'keep-alive',
  'origin',
  'pragma',
  'sec-fetch-mode',
  'te',
  'traceparent',
  'transfer-encoding',
  'user-agent',
  'x-request-id',
])

const harmlessFields = new Set([
  'callback_url',
  'client_id',
  'grant_type',
  'notification_type',
  'recreateIfExists',
  'scope',
  'username',
])

/** Masks every header that is not known to be harmless. The scheme of `authorization` stays readable. */
export function maskHeaders(headers: Readonly<Record<string, string>>): MaskedHeader[] {
  return Object.entries(headers).map(([name, value]) => ({ name, value: maskHeader(name, value) }))
}

function maskHeader(name: string, value: string): string {
  if (harmlessHeaders.has(name.toLowerCase())) return value
  const [, scheme] = /^(basic|bearer) /i.exec(value) ?? []
  return name.toLowerCase() === 'authorization' && scheme !== undefined ? `${scheme} ${mask}` : mask
}

/** Masks the values of every parameter. */
export function maskParameters(parameters: Readonly<Record<string, string>>): MaskedHeader[] {
  return Object.keys(parameters).map((name) => ({ name, value: mask }))
}

/** A form keeps its names and the values of the documented fields; a body of another kind is masked as a whole. */
export function maskRequestBody(contentType: string | undefined, body: string): string {
  if (body === '') return ''
  if (!/^application\/x-www-form-urlencoded\b/i.test(contentType ?? '')) return mask
  return maskPairs(body, (name, value) => {
    if (name === 'callback_url') return encodeURIComponent(maskUrl(decode(value) ?? mask))
    return harmlessFields.has(name) ? value : mask
  })
}

/** Masks a password and the values of a query: both can be how a receiver is unlocked. */
export function maskUrl(url: string): string {
  const withoutPassword = url.replace(/^([a-z][a-z\d+.-]*:\/\/)[^/?#@]*@/i, `$1${mask}@`)
  const [, path = '', query, fragment = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(withoutPassword) ?? []
  return query === undefined ? path + fragment : `${path}?${maskPairs(query, () => mask)}${fragment}`
}

function maskPairs(pairs: string, maskValue: (name: string, value: string) => string): string {
  return pairs
    .split('&')
    .map((pair) => {
      const equals = pair.indexOf('=')
      // A text without a name may be the secret itself.
      if (equals === -1) return pair === '' ? '' : mask
      const name = pair.slice(0, equals)
      return `${name}=${maskValue(decode(name) ?? name, pair.slice(equals + 1))}`
    })
    .join('&')
}

function decode(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}
