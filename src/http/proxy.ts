/** The proxy that the environment names (docs/client.md, Proxies and private authorities). Undici reads `NO_PROXY`. */
import type { buildConnector, EnvHttpProxyAgent, Pool } from 'undici'
import { configurationError } from '../shared/validation.js'
import { innermost, proxyFailure } from './connection-error.js'

/** The variables that name a proxy for `https:` addresses, in the order of undici. */
const variables = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'] as const

/** The variable that names the proxy. An empty one counts as not set. */
export function proxyVariable(): string | undefined {
  return variables.find((name) => process.env[name])
}

/**
 * The options that make undici use the proxy.
 *
 * @param text - the value of the variable
 * @throws any error, if it is no address
 */
function proxyOptions(text: string): EnvHttpProxyAgent.Options {
  // As in curl, an address without a scheme is one of `http:`.
  const url = new URL(/^[a-z][a-z\d+.-]*:\/\//i.test(text) ? text : `http://${text}`)
  if (!/^https?:$/.test(url.protocol)) throw new Error('undici has no proxies of this kind')
  const credentials = [url.username, url.password].map(decodeURIComponent).join(':')
  const { NO_PROXY = '', no_proxy } = process.env
  return {
    httpProxy: '',
    httpsProxy: url.href,
    // Undici sends no user without a password.
    ...(credentials !== ':' && { token: `Basic ${Buffer.from(credentials).toString('base64')}` }),
    // In undici an empty variable hides the one in capital letters.
    ...(no_proxy === '' && { noProxy: NO_PROXY }),
  }
}

/** An agent for the proxy that `variable` names. @throws `ConfigurationError` if the value is no usable address */
export function proxyAgent(
  undici: { EnvHttpProxyAgent: typeof EnvHttpProxyAgent; Pool: typeof Pool },
  variable: string,
  options: EnvHttpProxyAgent.Options,
): EnvHttpProxyAgent {
  try {
    return new undici.EnvHttpProxyAgent({
      ...options,
      ...proxyOptions(process.env[variable] ?? ''),
      clientFactory: (origin: URL, { connect }: { connect: buildConnector.connector }) =>
        new undici.Pool(origin, { connect: namingProxy(connect) }),
    })
  } catch {
    // The address is not shown, because it may hold a password.
    const message =
      'must be the address of an HTTP proxy, such as `http://proxy.example.com:3128`, with each of `#%/?@\\` in user or password percent-encoded: `%23` for a `#`'
    throw configurationError('The proxy that the environment names cannot be used')([
      { path: [variable], message },
    ])
  }
}

/** A connector whose failures are those of the proxy, and not of the service. */
function namingProxy(connect: buildConnector.connector): buildConnector.connector {
  return (options, callback) =>
    connect(options, (...result) => {
      if (result[0] === null) return callback(...result)
      const { code, message } = Object(innermost(result[0]))
      callback(Object.assign(new Error(proxyFailure + message), { code }), null)
    })
}
