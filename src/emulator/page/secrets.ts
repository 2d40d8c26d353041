/**
 * Hides the values of marked places until the page asks for them: Authorization, parameters, credentials, access tokens and
 * the query of an address. A receiver may repeat a secret in its answer: that is not searched.
 */
import { withoutQuery } from '../../shared/addresses.js'
import { createFields } from '../../shared/routes.js'
import { parseJson } from '../../shared/validation.js'
import { isForm } from '../service/endpoint.js'

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

  /** Authorization keeps its scheme. */
  value(name: string, value: string): string {
    if (name === 'callback_url' || name === 'location') return this.url(value)
    if (this.areShown || value === '' || harmless.has(name)) return value
    return value.replace(/^((?:Basic|Bearer) )?.*$/is, `$1${dots}`)
  }

  /** Without its query, and without a password. */
  url(url: string): string {
    return this.areShown ? url : withoutQuery(url.replace(/\/\/[^/?#]*@/, `//${dots}@`))
  }

  /** The fields of a form. JSON may be sent as a form, and its text would count as the name of a field. */
  fields(headers: Pairs, body: string): Pairs | undefined {
    if (!isForm(new Headers(headers)) || typeof parseJson(body) === 'object') return undefined
    return this.pairs(Object.fromEntries(new URLSearchParams(body)))
  }

  /** An answer, without its access token. */
  answer(body: string): string {
    return this.areShown ? body : body.replace(/("access_token": ?")[^"]+/, `$1${dots}`)
  }
}
