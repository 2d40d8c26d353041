/** Recognizes answers that something between client and service has made (docs/errors.md, Answers of intermediaries). */
import { excerpt } from '../shared/text.js'
import type { HttpResponse } from './exchange.js'

/** Headers that only the maker of an answer sets, and never a proxy that passes one on, such as `via` or `server: nginx`. */
const ownHeaders = [
  'cf-mitigated',
  'l5d-proxy-error',
  'ngrok-error-code',
  'x-amzn-errortype',
  'x-amzn-waf-action',
  'x-azure-externalerror',
  'x-cf-routererror',
  'x-goog-iap-generated-response',
  'x-squid-error',
]

/** The values of `server` by which products name themselves in their own answers alone. */
const ownServer =
  /^(?:awselb|CloudFront|AmazonS3|AkamaiGHost|Microsoft-Azure-Application-Gateway|kong|Zscaler)\b/i

/** Names in a page of HTML, and the headings of nginx and HTTP.sys. */
const pageName =
  /nginx|openresty|cloudflare|cloudfront|azure|application gateway|varnish|guru med|squid|zscaler|haproxy|fortiguard|netskope|mcafee|websense|imperva|incapsula|heroku|google|oauth2-proxy|edgesuite|<hr><p>HTTP Error|<center><h1>\d{3}/i

/** How texts begin that the ingresses of Kubernetes answer. */
const ingressText =
  /^(?:404 page not found|no available server|default backend - 404|upstream (?:connect error|request timeout)|no healthy upstream|RBAC: access denied|Jwt )/

/** The beginning of a body that is searched. */
const searchedLength = 8 * 1024

/** What made an answer instead of the service, or `undefined`. */
export function intermediaryOf({ body, header }: Pick<HttpResponse, 'body' | 'header'>): string | undefined {
  const marked = ownHeaders.find((name) => header(name) !== undefined)
  if (marked !== undefined) return `a gateway that sets \`${marked}\``
  if (header('proxy-status')?.includes('error=')) return 'a proxy that names itself in Proxy-Status'
  const [server] = ownServer.exec(header('server') ?? '') ?? []
  if (server !== undefined) return server
  const beginning = body.slice(0, searchedLength).trimStart()
  const [name] = (beginning.startsWith('<') ? pageName : ingressText).exec(beginning) ?? []
  return name && `something that answers \`${excerpt(name, 40)}\``
}

/** What to do after the answer of an intermediary. @param setting - the option with the server's address */
export function intermediaryAdvice(product: string, subject: string, setting: string): string {
  return (
    `The answer was made by ${product}, not by the service, and proves nothing about ${subject}. Either ${setting} leads ` +
    'elsewhere, or what made it refuses the request or does not reach the service: see its rules, routes and log.'
  )
}
