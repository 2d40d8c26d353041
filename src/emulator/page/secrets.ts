/**
 * Hides the values of marked places until the page asks for them: Authorization, parameters, credentials, access tokens and
 * the query of an address. A receiver may repeat a secret in its answer: that is not searched.
 */
import { createFields } from '../../shared/routes.js'
import { parseJson } from '../../shared/validation.js'

const dots = '••••••••'

/** Names whose values are harmless; a parameter of any other name may be the receiver's secret. */
const harmless = new Set([
  ...createFields,
  ...`accept accept-encoding accept-language age allow cache-control client_id connection content-encoding content-language
  content-length content-type date etag expires grant_type host id keep-alive last-modified pragma retry-after scope server
  subscriptionId subscription_id traceparent transfer-encoding user-agent vary via www-authenticate x-powered-by x-request-id NOTIFICATION_BASE_URL NOTIFICATION_AUTH_URL NOTIFICATION_DOMAIN
  NOTIFICATION_CLIENT_ID NOTIFICATION_CA_FILE`.split(/\s+/),
])

export type Pairs = Readonly<Record<string, string>>

export class Secrets {
  constructor(readonly areShown: boolean) {}

  pairs(pairs: Pairs): Pairs {
    return Object.fromEntries(Object.entries(pairs).map(([name, value]) => [name, this.value(name, value)]))
  }

  value(name: string, value: string): string {
    if (name === 'callback_url' || name === 'location') return this.url(value)
    if (value === '' || harmless.has(name)) return value
    return this.#hidden(value)
  }

  /** The names in a query stay, its values do not, and neither does a password. */
  url(url: string): string {
    if (this.areShown) return url
    const [before = '', query] = url.replace(/\/\/[^/?#]*@/, `//${dots}@`).split(/\?(.*)/s)
    if (query === undefined) return before
    const pairs = query.split('&').map((pair) => {
      const valueFrom = pair.indexOf('=') + 1
      return pair.slice(0, valueFrom) + (valueFrom < pair.length ? dots : '')
    })
    return `${before}?${pairs.join('&')}`
  }

  /** The fields of a body, if it is JSON, whatever its headers say, or a form. */
  fields(headers: Pairs, body: string): Pairs | undefined {
    const json = parseJson(body)
    if (json !== null && typeof json === 'object') {
      return this.pairs(
        Object.fromEntries(Object.entries(json).map(([name, value]) => [name, String(value)])),
      )
    }
    const isForm = /^application\/x-www-form-urlencoded\b/i.test(headers['content-type'] ?? '')
    return isForm ? this.pairs(Object.fromEntries(new URLSearchParams(body))) : undefined
  }

  /** An answer, without its access token. */
  answer(body: string): string {
    return this.areShown ? body : body.replace(/("access_token": ?")[^"]+/, `$1${dots}`)
  }

  /** Authorization keeps its scheme. */
  #hidden(value: string): string {
    const [, scheme = ''] = /^((?:Basic|Bearer) )/i.exec(value) ?? []
    return this.areShown ? value : scheme + dots
  }
}
