/** Recognizes answers that something between client and service has made (docs/errors.md, Answers of intermediaries). */
import { excerpt } from '../shared/text.js'
import type { HttpResponse } from './exchange.js'

/** Headers, with values, that only the maker of an answer sets, and never a proxy that passes one on. */
const makerHeaders: Readonly<Record<string, RegExp>> = {
  'cf-mitigated': /./,
  'l5d-proxy-error': /./,
  'ngrok-error-code': /./,
  'proxy-status': /\berror=/,
  server: /^kong\b/i,
  'x-amzn-errortype': /^(?:AccessDenied|Forbidden|InternalServer|MissingAuthenticationToken)/,
  'x-amzn-waf-action': /./,
  'x-azure-externalerror': /./,
  'x-cf-routererror': /./,
  'x-goog-iap-generated-response': /./,
  'x-squid-error': /./,
}

/** Values of `server` that name the maker of an answer, unless the answer is JSON: these products make pages only. */
const pageServer = /^(?:awselb|CloudFront|AmazonS3|AkamaiGHost)\b/i

const pageName =
  /nginx|openresty|cloudflare|cloudfront|azure|application gateway|varnish|guru med|squid|zscaler|haproxy|fortiguard|netskope|mcafee|websense|imperva|incapsula|heroku|google|oauth2-proxy|edgesuite/i

/** The headings of pages of nginx and HTTP.sys, which name no product. */
const pageHeading = /<hr><p>HTTP Error|<center><h1>\d{3}/i

/** How texts begin that the ingresses of Kubernetes answer. */
const ingressText =
  /^(?:404 page not found|no available server|default backend - 404|upstream (?:connect error|request timeout)|no healthy upstream|RBAC: access denied|Jwt )/

/** What made an answer instead of the service, or `undefined`. JSON is the service's, unless a header says otherwise. */
export function intermediaryOf({ body, header }: Pick<HttpResponse, 'body' | 'header'>): string | undefined {
  const maker = Object.keys(makerHeaders).find((name) => makerHeaders[name]?.test(header(name) ?? ''))
  if (maker !== undefined) return `a gateway that answers \`${maker}: ${excerpt(header(maker) ?? '', 60)}\``
  const beginning = body.slice(0, 8 * 1024).trimStart()
  if (/^[{[]/.test(beginning)) return undefined
  const [server] = pageServer.exec(header('server') ?? '') ?? []
  const marks = beginning.startsWith('<') ? [pageName, pageHeading] : [ingressText]
  const name = marks.map((mark) => mark.exec(beginning)?.[0]).find(Boolean)
  return server ?? (name && `something that answers \`${excerpt(name, 40)}\``)
}

/** What to do after the answer of an intermediary. @param setting - the option with the server's address */
export function intermediaryAdvice(product: string, subject: string, setting: string): string {
  const made = `The answer was made by ${product}, not by the service, and proves nothing about ${subject}.`
  return `${made} Either ${setting} leads elsewhere, or what answered refuses the request or does not reach the service: see its rules, routes and log.`
}
