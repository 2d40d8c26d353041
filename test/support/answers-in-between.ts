/** Answers as products between client and service make them, and answers of services. */

export interface AnswerShape {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body: string
}

const html = { 'content-type': 'text/html' }
const text = { 'content-type': 'text/plain' }
const json = { 'content-type': 'application/json' }

/** The page of nginx for a status; products made of nginx have their own name, or none. */
const nginxPage = (title: string, name: string) =>
  `<html>\r\n<head><title>${title}</title></head>\r\n<body>\r\n<center><h1>${title}</h1></center>\r\n${name && `<hr><center>${name}</center>\r\n`}</body>\r\n</html>\r\n`

const apachePage = (title: string, words: string, signature = '') =>
  `<!DOCTYPE HTML PUBLIC "-//IETF//DTD HTML 2.0//EN">\n<html><head>\n<title>${title}</title>\n</head><body>\n<h1>${title.slice(4)}</h1>\n<p>${words}</p>\n${signature}</body></html>\n`

const haproxyPage = (title: string, words: string) =>
  `<html><body><h1>${title}</h1>\n${words}\n</body></html>\n`

/** By what they are; each with the product that an error names. */
export const madeInBetween: Readonly<Record<string, AnswerShape & { readonly product: string }>> = {
  'nginx, with its version': {
    product: 'nginx',
    status: 404,
    headers: { ...html, server: 'nginx/1.24.0' },
    body: nginxPage('404 Not Found', 'nginx/1.24.0'),
  },
  'nginx, without its version, for a conflict of WebDAV': {
    product: 'nginx',
    status: 409,
    headers: { ...html, server: 'nginx' },
    body: nginxPage('409 Conflict', 'nginx'),
  },
  'nginx, a client certificate that is missing': {
    product: 'nginx',
    status: 400,
    headers: html,
    body: '<html>\r\n<head><title>400 No required SSL certificate was sent</title></head>\r\n<body>\r\n<center><h1>400 Bad Request</h1></center>\r\n<center>No required SSL certificate was sent</center>\r\n<hr><center>nginx</center>\r\n</body>\r\n</html>\r\n',
  },
  openresty: {
    product: 'openresty',
    status: 403,
    headers: { ...html, server: 'openresty' },
    body: nginxPage('403 Forbidden', 'openresty/1.21.4.1'),
  },
  'a product made of nginx': {
    product: 'nginx',
    status: 404,
    headers: html,
    body: '<html>\r\n<head><title>404 Not Found</title></head>\r\n<body bgcolor="white">\r\n<center><h1>404 Not Found</h1></center>\r\n<hr/>Powered by Tengine<hr><center>tengine</center>\r\n</body>\r\n</html>\r\n',
  },
  'Apache httpd': {
    product: 'Apache httpd',
    status: 404,
    headers: html,
    body: apachePage(
      '404 Not Found',
      'The requested URL was not found on this server.',
      '<hr>\n<address>Apache/2.4.57 (Debian) Server at gw.example.com Port 443</address>\n',
    ),
  },
  'Apache httpd without a signature': {
    product: 'Apache httpd',
    status: 403,
    headers: html,
    body: apachePage('403 Forbidden', "You don't have permission to access this resource."),
  },
  'Apache httpd as a proxy': {
    product: 'Apache httpd',
    status: 502,
    headers: html,
    body: apachePage(
      '502 Proxy Error',
      'The proxy server received an invalid response from an upstream server.<br />',
    ),
  },
  'HAProxy without a server': {
    product: 'HAProxy',
    status: 503,
    headers: html,
    body: haproxyPage('503 Service Unavailable', 'No server is available to handle this request.'),
  },
  'HAProxy, a rule': {
    product: 'HAProxy',
    status: 403,
    headers: html,
    body: haproxyPage('403 Forbidden', 'Request forbidden by administrative rules.'),
  },
  'HAProxy without a backend': {
    product: 'HAProxy',
    status: 404,
    headers: html,
    body: haproxyPage('404 Not Found', 'The resource could not be found.'),
  },
  'Envoy, no connection': {
    product: 'Envoy',
    status: 503,
    headers: { ...text, server: 'envoy' },
    body: 'upstream connect error or disconnect/reset before headers. reset reason: connection failure',
  },
  'Istio, no route': {
    product: 'Envoy',
    status: 404,
    headers: { server: 'istio-envoy' },
    body: '',
  },
  'Istio, a policy': {
    product: 'Envoy',
    status: 403,
    headers: { ...text, server: 'istio-envoy' },
    body: 'RBAC: access denied',
  },
  'Istio, a token': {
    product: 'Envoy',
    status: 401,
    headers: { ...text, server: 'istio-envoy', 'www-authenticate': 'Bearer realm="https://x/"' },
    body: 'Jwt issuer is not configured',
  },
  'an AWS load balancer': {
    product: 'an AWS load balancer',
    status: 403,
    headers: { ...html, server: 'awselb/2.0' },
    body: nginxPage('403 Forbidden', ''),
  },
  'an AWS load balancer, a fixed response': {
    product: 'an AWS load balancer',
    status: 404,
    headers: { ...text, server: 'awselb/2.0' },
    body: 'no rule',
  },
  'AWS WAF, a challenge': {
    product: 'AWS WAF',
    status: 202,
    headers: { ...html, server: 'awselb/2.0', 'x-amzn-waf-action': 'challenge' },
    body: '',
  },
  'Amazon API Gateway, REST': {
    product: 'Amazon API Gateway',
    status: 403,
    headers: {
      ...json,
      'x-amzn-requestid': 'e5c8',
      'x-amzn-errortype': 'MissingAuthenticationTokenException',
    },
    body: '{"message":"Missing Authentication Token"}',
  },
  'Amazon API Gateway, HTTP': {
    product: 'Amazon API Gateway',
    status: 404,
    headers: { ...json, 'apigw-requestid': 'IyPuMg9uIAMEJqA=' },
    body: '{"message":"Not Found"}',
  },
  'Amazon CloudFront': {
    product: 'Amazon CloudFront',
    status: 403,
    headers: { ...html, server: 'CloudFront', 'x-cache': 'Error from cloudfront' },
    body: '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01 Transitional//EN" "http://www.w3.org/TR/html4/loose.dtd">\n<HTML><HEAD>\n<TITLE>ERROR: The request could not be satisfied</TITLE>\n</HEAD><BODY>\n<H1>403 ERROR</H1>\nRequest blocked.\n<PRE>\nGenerated by cloudfront (CloudFront)\nRequest ID: x==\n</PRE></BODY></HTML>',
  },
  'Azure Application Gateway': {
    product: 'Azure Application Gateway',
    status: 403,
    headers: { ...html, server: 'Microsoft-Azure-Application-Gateway/v2' },
    body: nginxPage('403 Forbidden', 'Microsoft-Azure-Application-Gateway/v2'),
  },
  'Azure API Management, no key': {
    product: 'Azure API Management',
    status: 401,
    headers: {
      ...json,
      'www-authenticate': 'AzureApiManagementKey realm="https://x/",name="key",type="header"',
    },
    body: '{ "statusCode": 401, "message": "Access denied due to missing subscription key. Make sure to include subscription key when making requests to an API." }',
  },
  'Azure API Management, no operation': {
    product: 'Azure API Management',
    status: 404,
    headers: json,
    body: '{ "statusCode": 404, "message": "Resource not found" }',
  },
  'Azure Front Door': {
    product: 'Azure Front Door',
    status: 404,
    headers: { ...html, 'x-azure-ref': '20240101T' },
    body: "<!DOCTYPE html><html><head><title>Page not found</title></head><body><h2>Our services aren't available right now</h2></body></html>",
  },
  'Cloudflare, a rule': {
    product: 'Cloudflare',
    status: 403,
    headers: { ...text, server: 'cloudflare', 'cf-ray': '8dd59dbf9d2e236d-SJC' },
    body: 'error code: 1020',
  },
  'Cloudflare, a name that does not resolve': {
    product: 'Cloudflare',
    status: 409,
    headers: { ...html, server: 'cloudflare' },
    body: '<!DOCTYPE html>\n<html><head><title>DNS resolution error | api.example.com | Cloudflare</title></head><body></body></html>',
  },
  'Cloudflare, a challenge': {
    product: 'Cloudflare',
    status: 403,
    headers: { ...html, server: 'cloudflare', 'cf-mitigated': 'challenge' },
    body: '<!DOCTYPE html><html lang="en-US"><head><title>Just a moment...</title></head></html>',
  },
  Akamai: {
    product: 'Akamai',
    status: 403,
    headers: { ...html, server: 'AkamaiGHost' },
    body: '<HTML><HEAD>\n<TITLE>Access Denied</TITLE>\n</HEAD><BODY>\n<H1>Access Denied</H1>\n \nYou don\'t have permission to access "http&#58;&#47;&#47;x&#47;" on this server.<P>\nReference&#32;&#35;18&#46;5c3\n</BODY>\n</HTML>\n',
  },
  'Kong, no route': {
    product: 'Kong',
    status: 404,
    headers: { ...json, server: 'kong/3.4.2', 'x-kong-response-latency': '0' },
    body: '{\n  "message":"no Route matched with those values",\n  "request_id":"a1"\n}',
  },
  'Kong, which hides its name': {
    product: 'Kong',
    status: 401,
    headers: { ...json, 'x-kong-response-latency': '1' },
    body: '{"message":"Unauthorized"}',
  },
  'Apache APISIX': {
    product: 'Apache APISIX',
    status: 404,
    headers: { ...json, server: 'APISIX/3.6.0' },
    body: '{"error_msg":"404 Route Not Found"}\n',
  },
  Apigee: {
    product: 'Apigee',
    status: 404,
    headers: json,
    body: '{"fault":{"faultstring":"Unable to identify proxy for host: default and url: /x","detail":{"errorcode":"messaging.adaptors.http.flow.ApplicationNotFound"}}}',
  },
  Tyk: {
    product: 'Tyk',
    status: 403,
    headers: { ...json, 'x-generator': 'tyk.io' },
    body: '{\n    "error": "Access to this API has been disallowed"\n}',
  },
  'WSO2 API Manager': {
    product: 'WSO2 API Manager',
    status: 403,
    headers: json,
    body: '{"fault":{"code":900908,"message":"Resource forbidden","description":"Access failure"}}',
  },
  'HTTP.sys of Windows': {
    product: 'HTTP.sys of Windows',
    status: 404,
    headers: { ...html, server: 'Microsoft-HTTPAPI/2.0' },
    body: '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.01//EN""http://www.w3.org/TR/html4/strict.dtd">\r\n<HTML><HEAD><TITLE>Not Found</TITLE></HEAD>\r\n<BODY><h2>Not Found</h2>\r\n<hr><p>HTTP Error 404. The requested resource is not found.</p>\r\n</BODY></HTML>\r\n',
  },
  'Google Cloud Armor': {
    product: 'Google Cloud Load Balancing',
    status: 403,
    headers: html,
    body: '<!doctype html><meta charset="utf-8"><meta name=viewport content="width=device-width, initial-scale=1"><title>403</title>403 Forbidden',
  },
  Traefik: {
    product: 'Traefik',
    status: 404,
    headers: { ...text, 'x-content-type-options': 'nosniff' },
    body: '404 page not found\n',
  },
  'the default backend of Kubernetes': {
    product: 'the default backend of Kubernetes',
    status: 404,
    headers: text,
    body: 'default backend - 404',
  },
  'Google Cloud Load Balancing': {
    product: 'Google Cloud Load Balancing',
    status: 404,
    headers: { ...html, via: '1.1 google' },
    body: '<!DOCTYPE html>\n<html lang=en>\n  <meta charset=utf-8>\n  <title>Error 404 (Not Found)!!1</title>\n',
  },
  Varnish: {
    product: 'Varnish',
    status: 503,
    headers: { ...html, server: 'Varnish', 'x-varnish': '32770', via: '1.1 varnish' },
    body: '<!DOCTYPE html>\n<html>\n  <head>\n    <title>503 Backend fetch failed</title>\n  </head>\n  <body>\n    <h1>Error 503 Backend fetch failed</h1>\n    <p>Backend fetch failed</p>\n    <h3>Guru Meditation:</h3>\n    <p>XID: 32770</p>\n    <hr>\n    <p>Varnish cache server</p>\n  </body>\n</html>\n',
  },
  Squid: {
    product: 'Squid',
    status: 403,
    headers: { ...html, server: 'squid/5.7', 'x-squid-error': 'ERR_ACCESS_DENIED 0' },
    body: '<html><head><title>ERROR: The requested URL could not be retrieved</title></head></html>',
  },
  Zscaler: {
    product: 'Zscaler',
    status: 403,
    headers: { ...html, server: 'Zscaler/6.2' },
    body: '<html><head><title>Internet Security by Zscaler</title></head><body>Not allowed</body></html>',
  },
  'F5 BIG-IP': {
    product: 'F5 BIG-IP',
    status: 403,
    headers: html,
    body: '<html><head><title>Request Rejected</title></head><body>The requested URL was rejected. Please consult with your administrator.<br><br>Your support ID is: 123</body></html>',
  },
  'Imperva, whose challenge is a success': {
    product: 'Imperva',
    status: 200,
    headers: { ...html, 'x-iinfo': '8-1234-0 0NNN RT(1700000000000 0)' },
    body: '<html style="height:100%"><head><META NAME="ROBOTS" CONTENT="NOINDEX, NOFOLLOW"></head><body><iframe src="/_Incapsula_Resource?SWUDNSAI=9&xinfo=8" frameborder=0>Request unsuccessful. Incapsula incident ID: 123-456</iframe></body></html>',
  },
  'Zscaler, whose page is a success': {
    product: 'Zscaler',
    status: 200,
    headers: html,
    body: '<html><head><title>Zscaler makes the internet safe for businesses</title></head><body></body></html>',
  },
  'a proxy with Proxy-Status (RFC 9209)': {
    product: 'a proxy that names itself in Proxy-Status',
    status: 404,
    headers: { 'proxy-status': 'edge.example; error=destination_not_found' },
    body: '',
  },
  'Heroku without an app': {
    product: 'the router of Heroku',
    status: 404,
    headers: { ...html, server: 'Heroku' },
    body: '<!DOCTYPE html>\n<html><body><iframe src="//www.herokucdn.com/error-pages/no-such-app.html"></iframe></body></html>',
  },
  'Cloud Foundry without a route': {
    product: 'the router of Cloud Foundry',
    status: 404,
    headers: { ...text, 'x-cf-routererror': 'unknown_route' },
    body: "404 Not Found: Requested route ('api.example.com') does not exist.\n",
  },
  'Linkerd, a policy': {
    product: 'Linkerd',
    status: 403,
    headers: { 'l5d-proxy-error': 'unauthorized request on route' },
    body: '',
  },
  'Identity-Aware Proxy of Google': {
    product: 'Google Identity-Aware Proxy',
    status: 401,
    headers: { ...html, 'x-goog-iap-generated-response': 'true' },
    body: 'Invalid IAP credentials: empty token',
  },
  'OAuth2 Proxy': {
    product: 'OAuth2 Proxy',
    status: 403,
    headers: html,
    body: '<!DOCTYPE html><html><head><title>Sign In</title></head><body>Secured with <a href="https://github.com/oauth2-proxy/oauth2-proxy#oauth2_proxy">OAuth2 Proxy</a></body></html>',
  },
  'Azure App Service, a stopped app': {
    product: 'Azure App Service',
    status: 403,
    headers: html,
    body: '<!DOCTYPE html><html><head><title>Web App - Unavailable</title></head><body>Error 403 - This web app is stopped.</body></html>',
  },
  'IBM API Connect': {
    product: 'IBM API Connect',
    status: 404,
    headers: json,
    body: '{ "httpCode":"404", "httpMessage":"Not Found", "moreInformation":"No resources match requested URI" }',
  },
  MuleSoft: {
    product: 'MuleSoft',
    status: 404,
    headers: text,
    body: 'No listener for endpoint: /api/subscriptions',
  },
  Gravitee: {
    product: 'Gravitee',
    status: 404,
    headers: json,
    body: '{"message":"No context-path matches the request URI.","http_status_code":404}',
  },
  '3scale': { product: '3scale', status: 404, headers: text, body: 'No Mapping Rule matched' },
  'Palo Alto, a category': {
    product: 'a web filter',
    status: 403,
    headers: html,
    body: '<html><head><title>Web Page Blocked</title></head><body>in accordance with company policy</body></html>',
  },
  'Blue Coat, a policy': {
    product: 'a web filter',
    status: 403,
    headers: html,
    body: '<HTML><HEAD><TITLE>Access Denied</TITLE></HEAD><BODY>Access Denied (policy_denied)</BODY></HTML>',
  },
  'Envoy, the keys of an issuer': {
    product: 'Envoy',
    status: 401,
    headers: { ...text, server: 'envoy' },
    body: 'Jwks remote fetch is failed',
  },
}

const problem = '{"type":"about:blank","title":"Conflict","status":409,"detail":"The subscription exists."}'

/** Bodies of a service: each counts with every status, also behind a product that passes it on. */
export const madeByServices: Readonly<Record<string, Omit<AnswerShape, 'status'>>> = {
  'nothing at all': { body: '' },
  'plain text': { headers: text, body: 'a subscription exists' },
  'JSON behind nginx': { headers: { ...json, server: 'nginx/1.24.0' }, body: '{"message":"exists"}' },
  'problem details': { headers: { 'content-type': 'application/problem+json' }, body: problem },
  Tomcat: {
    headers: { 'content-type': 'text/html;charset=utf-8' },
    body: '<!doctype html><html lang="en"><head><title>HTTP Status 409 – Conflict</title></head><body><h1>HTTP Status 409 – Conflict</h1><hr class="line" /><p><b>Type</b> Status Report</p><h3>Apache Tomcat/10.1.18</h3></body></html>',
  },
  Jetty: {
    headers: { ...html, server: 'Jetty(11.0.18)' },
    body: '<html>\n<head>\n<meta http-equiv="Content-Type" content="text/html;charset=ISO-8859-1"/>\n<title>Error 409 Conflict</title>\n</head>\n<body><h2>HTTP ERROR 409 Conflict</h2>\n<hr/><a href="https://eclipse.org/jetty">Powered by Jetty:// 11.0.18</a><hr/>\n</body>\n</html>\n',
  },
  Spring: {
    headers: json,
    body: '{"timestamp":"2026-01-01T00:00:00.000+00:00","status":409,"error":"Conflict","path":"/api/subscriptions"}',
  },
  "Spring's page": {
    headers: html,
    body: '<html><body><h1>Whitelabel Error Page</h1><p>This application has no explicit mapping for /error.</p></body></html>',
  },
  'ASP.NET': {
    headers: { 'content-type': 'application/problem+json; charset=utf-8', server: 'Kestrel' },
    body: '{"type":"https://tools.ietf.org/html/rfc9110#section-15.5.10","title":"Conflict","status":409,"traceId":"00-a-b-00"}',
  },
  Express: {
    headers: { 'content-type': 'text/html; charset=utf-8', 'x-powered-by': 'Express' },
    body: '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>Error</title>\n</head>\n<body>\n<pre>Conflict</pre>\n</body>\n</html>\n',
  },
  'a page of its own': {
    headers: html,
    body: '<html><body><h1>409 Conflict</h1>\nThe subscription exists.\n</body></html>',
  },
  Flask: {
    headers: html,
    body: '<!doctype html>\n<html lang=en>\n<title>409 Conflict</title>\n<h1>Conflict</h1>\n',
  },
  WebLogic: {
    headers: html,
    body: '<!DOCTYPE HTML PUBLIC "-//W3C//DTD HTML 4.0 Draft//EN">\n<HTML>\n<HEAD>\n<TITLE>Error 409--Conflict</TITLE>\n</HEAD></HTML>',
  },
  NestJS: { headers: json, body: '{"message":"exists","error":"Conflict","statusCode":409}' },
  'JSON behind Cloudflare': {
    headers: {
      ...json,
      server: 'cloudflare',
      'cf-ray': '8dd59dbf9d2e236d-SJC',
      'cf-cache-status': 'DYNAMIC',
    },
    body: '{"message":"exists"}',
  },
  'JSON behind CloudFront': {
    headers: {
      ...json,
      'x-cache': 'Error from cloudfront',
      via: '1.1 x.cloudfront.net (CloudFront)',
      'x-amz-cf-id': 'x',
    },
    body: '{"message":"exists"}',
  },
  'nothing behind Istio': {
    headers: { server: 'istio-envoy', 'x-envoy-upstream-service-time': '4' },
    body: '',
  },
  'JSON behind Kong': {
    headers: { ...json, via: '1.1 kong/3.4.2', 'x-kong-upstream-latency': '4', 'x-kong-proxy-latency': '1' },
    body: '{"message":"exists"}',
  },
  'JSON behind Amazon API Gateway': {
    headers: { ...json, 'apigw-requestid': 'IyPuMg9uIAMEJqA=', 'x-amzn-requestid': 'e5c8' },
    body: '{"message":"A subscription exists"}',
  },
  'JSON behind Azure Front Door': {
    headers: { ...json, 'x-azure-ref': '2024', 'x-cache': 'CONFIG_NOCACHE' },
    body: problem,
  },
  'text behind Varnish and Squid': {
    headers: {
      ...text,
      via: '1.1 varnish, 1.1 proxy (squid/5.7)',
      'x-varnish': '2',
      'x-cache': 'MISS from proxy',
    },
    body: 'exists',
  },
  'an answer with Proxy-Status and no error': {
    headers: { ...json, 'proxy-status': 'edge.example; received-status=409' },
    body: '{"message":"exists"}',
  },
}
