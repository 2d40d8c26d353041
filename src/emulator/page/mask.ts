/** Masks all but known harmless text: a parameter of any name may be the receiver's secret (docs/service.md, Resources). */
import { inBase64, redactTokens } from '../../shared/redact.js'
import { decodeFormComponent } from '../../shared/text.js'
import { parseAuthorization } from '../service/requests.js'

const dots = '••••••••'

/** A shorter value is not looked for in answers: many texts contain it by chance. */
const shortestSecret = 4

/** Hides the secrets in a text; {@link plain} hides nothing. */
export type Mask = typeof masked

export const masked = {
  /** A value that is a secret; an empty one is none, and a fault that has to be seen. */
  value: (secret: string): string => (secret === '' ? '' : dots),

  variable: (name: string, value: string) => (harmlessVariables.has(name) ? value : masked.value(value)),

  /** The scheme of `authorization` stays readable. */
  header(name: string, value: string): string {
    const lowerName = name.toLowerCase()
    if (lowerName === 'location') return masked.url(value)
    if (harmlessHeaders.has(lowerName)) return value
    const [, scheme] = /^(basic|bearer) /i.exec(value) ?? []
    return lowerName === 'authorization' && scheme !== undefined ? `${scheme} ${dots}` : masked.value(value)
  },

  /** A password, or a possible secret in a query: a receiver may check either. */
  url(text: string): string {
    const withoutPassword = text.replace(/^([a-z][a-z\d+.-]*:\/\/)[^/?#@]*@/i, `$1${dots}@`)
    const [, path = '', query, fragment = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(withoutPassword) ?? []
    if (query === undefined) return path + fragment
    return `${path}?${maskPairs(query, (name, value) => (maySecret(name, value) ? dots : value))}${fragment}`
  },

  /** A form keeps its names and the values of the documented fields; a body of another kind is masked as a whole. */
  form(contentType: string | undefined, body: string): string {
    if (body === '') return ''
    if (!/^application\/x-www-form-urlencoded\b/i.test(contentType ?? '')) return dots
    return maskPairs(body, (name, value) => {
      if (name === 'callback_url') return encodeURIComponent(masked.url(decodeFormComponent(value) ?? dots))
      return harmlessFields.has(name) ? value : masked.value(value)
    })
  },

  /** Masks what an answer says, in its body or in a header: it may repeat a secret of the headers that were sent. */
  answerTo(sentHeaders: Readonly<Record<string, string>>): (text: string) => string {
    const repeated = new Set(secretsIn(sentHeaders).flatMap(spellingsOf))
    return (text) => [...repeated].reduce((rest, each) => rest.replaceAll(each, dots), redactTokens(text))
  },
}

export const plain: Mask = {
  value: (text) => text,
  variable: (_name, value) => value,
  header: (_name, value) => value,
  url: (text) => text,
  form: (_contentType, body) => body,
  answerTo: () => (text) => text,
}

/** The secret values, also without their scheme; of Basic credentials also the password. */
function secretsIn(headers: Readonly<Record<string, string>>): string[] {
  return Object.entries(headers)
    .filter(([name, value]) => masked.header(name, value) !== value)
    .flatMap(([, value]) => {
      const parsed = parseAuthorization(value)
      const password = parsed?.isBasic ? parsed.value.replace(/^[^:]*:/, '') : ''
      return [value, value.replace(/^\S+ /, ''), password]
    })
    .filter(({ length }) => length >= shortestSecret)
}

/** A secret as it is, and as JSON, a form or base64 has it. */
function spellingsOf(secret: string): string[] {
  return [secret, JSON.stringify(secret).slice(1, -1), encodeURIComponent(secret), ...inBase64(secret)]
}

/** A secret by its name, or because it is as long as a secret and no word. */
function maySecret(name: string, value: string): boolean {
  return (
    /key|token|secret|pass|pwd|auth|sig|code|credential|session|jwt/i.test(name) || /[\w-]{16}/.test(value)
  )
}

function wordsOf(text: string): ReadonlySet<string> {
  return new Set(text.trim().split(/\s+/))
}

const harmlessHeaders = wordsOf(`
  accept accept-encoding accept-language accept-ranges age allow cache-control connection
  content-encoding content-language content-length content-type date etag expect expires host
  keep-alive last-modified origin pragma retry-after sec-fetch-mode server te traceparent
  transfer-encoding user-agent vary via www-authenticate x-powered-by x-request-id`)

const harmlessVariables = wordsOf(`
  NOTIFICATION_BASE_URL NOTIFICATION_AUTH_URL NOTIFICATION_DOMAIN NOTIFICATION_CLIENT_ID
  NOTIFICATION_CA_FILE`)

const harmlessFields = wordsOf(
  'callback_url client_id grant_type notification_type recreateIfExists scope username',
)

function maskPairs(pairs: string, maskValue: (name: string, value: string) => string): string {
  return pairs
    .split('&')
    .map((pair) => {
      const equals = pair.indexOf('=')
      // A text without a name may be the secret itself.
      if (equals === -1) return pair === '' ? '' : dots
      const name = pair.slice(0, equals)
      return `${name}=${maskValue(decodeFormComponent(name) ?? name, pair.slice(equals + 1))}`
    })
    .join('&')
}
