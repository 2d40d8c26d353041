/** Tries the configuration, the way to both servers, the token, and whether the service accepts it. */
import { lookup } from 'node:dns/promises'
import { NotificationClient } from '../../client/notification-client.js'
import {
  ApiError,
  ConfigurationError,
  NotificationError,
  ResponseValidationError,
  SubscriptionNotFoundError,
  TokenRequestError,
} from '../../errors.js'
import { formatIssues } from '../../shared/issues.js'
import { claimsOf, describeClaims, type TokenClaims } from './claims.js'
import { certificateOf, connectionProblem } from './connection.js'
import { failed, passed, type Step, skipped } from './step.js'

export type Environment = Readonly<Record<string, string | undefined>>

const callTimeoutMs = 15_000

const stepNames = {
  configuration: 'Configuration',
  token: 'Token',
  authorization: 'Authorization',
} as const

/** @param ca - what `NOTIFICATION_CA_FILE` names, if it can be read */
export async function* checkService(env: Environment, ca: string | undefined): AsyncGenerator<Step> {
  const client = clientOrProblem(env)
  if (!(client instanceof NotificationClient)) {
    yield client
    yield skipped(stepNames.token, 'not tried without a configuration')
    yield skipped(stepNames.authorization, 'not tried without a configuration')
    return
  }
  const { NOTIFICATION_BASE_URL = '', NOTIFICATION_AUTH_URL = '', NOTIFICATION_DOMAIN = '' } = env
  yield passed(stepNames.configuration, `${NOTIFICATION_BASE_URL}, domain ${NOTIFICATION_DOMAIN}`)
  for (const [variable, address] of serversOf({ NOTIFICATION_BASE_URL, NOTIFICATION_AUTH_URL })) {
    yield checkConnection(variable, address, env, ca)
  }
  try {
    const token = await checkToken(client)
    yield token
    yield token.outcome === 'passed'
      ? await checkAuthorization(client)
      : skipped(stepNames.authorization, 'not tried without a token')
  } finally {
    await client.close()
  }
}

function clientOrProblem(env: Environment): NotificationClient | Step {
  try {
    return NotificationClient.fromEnv({ timeoutMs: callTimeoutMs, retry: false, logger: false }, env)
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    return failed(
      stepNames.configuration,
      formatIssues(error.issues),
      'Set these variables, or name a file that does: --dotenv .env',
    )
  }
}

/** Each server once, by the first variable that names it. */
function serversOf(addresses: Readonly<Record<string, string>>): [variable: string, address: URL][] {
  const servers = new Map<string, [string, URL]>()
  for (const [variable, address] of Object.entries(addresses)) {
    const url = new URL(address)
    if (!servers.has(url.host)) servers.set(url.host, [variable, url])
  }
  return [...servers.values()]
}

async function checkConnection(
  variable: string,
  url: URL,
  env: Environment,
  ca: string | undefined,
): Promise<Step> {
  const name = `DNS and TLS of ${url.host}`
  try {
    const addresses = await lookup(url.hostname.replace(/^\[|\]$/g, ''), { all: true })
    const { protocol, validUntil } = await certificateOf(url, ca)
    const found = addresses.map(({ address }) => address)
    return passed(name, `${found.join(', ')}; ${protocol}, its certificate is valid until ${validUntil}`, {
      addresses: found,
      protocol,
      validUntil,
    })
  } catch (error) {
    const { message, next } = connectionProblem(error, url)
    const proxy = ['https_proxy', 'HTTPS_PROXY', 'http_proxy', 'HTTP_PROXY'].find((each) => env[each])
    if (proxy !== undefined) {
      return skipped(name, `not reached directly, and ${proxy} is set: the next step goes through that proxy`)
    }
    return failed(name, message, next ?? `Check ${variable}`)
  }
}

async function checkToken(client: NotificationClient): Promise<Step> {
  let token: string
  try {
    token = await client.getAccessToken()
  } catch (error) {
    return tokenProblem(error)
  }
  const claims = claimsOf(token)
  if (claims === undefined) {
    return passed(stepNames.token, 'issued, in a form that only the service can read')
  }
  if (claims.exp !== undefined && claims.exp * 1000 <= Date.now()) {
    return failed(
      stepNames.token,
      `it is over already: ${describeClaims(claims)}`,
      "Compare this machine's clock with that of the authorization server",
    )
  }
  return passed(stepNames.token, describeClaims(claims), claims satisfies TokenClaims)
}

/** The error codes of RFC 6749 section 5.2. Another one is not printed: it could be any text. */
const oauthErrors = [
  'invalid_request',
  'invalid_client',
  'invalid_grant',
  'unauthorized_client',
  'unsupported_grant_type',
  'invalid_scope',
]

function tokenProblem(error: unknown): Step {
  if (error instanceof TokenRequestError) {
    const code = oauthErrors.find((each) => each === error.error)
    const message = `the token endpoint answered ${error.status}${code === undefined ? '' : ` (${code})`}`
    return failed(stepNames.token, message, nextAfter(error.status, code))
  }
  if (error instanceof ResponseValidationError) {
    const message = `the answer with status ${error.status} has no token in it`
    return failed(stepNames.token, message, 'Check NOTIFICATION_AUTH_URL: is it an authorization server?')
  }
  return failed(stepNames.token, messageFor(error))
}

function nextAfter(status: number, code: string | undefined): string {
  if (code === 'invalid_scope') return 'Check NOTIFICATION_SCOPE'
  if (status === 404) return 'Check NOTIFICATION_DOMAIN and NOTIFICATION_AUTH_URL: there is no such realm'
  if (status === 401 || status === 400) {
    return (
      'Compare NOTIFICATION_CLIENT_ID and NOTIFICATION_CLIENT_SECRET with what was issued; with a secret that has ' +
      'characters such as % or +, try NOTIFICATION_CREDENTIALS_ENCODING=form-urlencoded'
    )
  }
  return 'Ask who runs the authorization server'
}

/** Unsubscribes subscription 0, which does not exist: only a caller who may unsubscribe is told so, by a 404. */
async function checkAuthorization(client: NotificationClient): Promise<Step> {
  const name = stepNames.authorization
  try {
    await client.unsubscribe(0)
    return passed(name, 'the service accepts the token')
  } catch (error) {
    if (error instanceof SubscriptionNotFoundError) {
      return passed(
        name,
        'the service accepts the token: subscription 0 does not exist (404), as it should be',
      )
    }
    if (!(error instanceof ApiError)) return failed(name, messageFor(error))
    switch (error.status) {
      case 401:
        return failed(
          name,
          'the service does not accept the token (401)',
          'Do NOTIFICATION_BASE_URL and NOTIFICATION_AUTH_URL belong to the same environment, lab or production?',
        )
      case 403:
        return failed(
          name,
          'the service accepts the token, but not for subscriptions (403)',
          'Ask your account contact to activate notifications for this client ID',
        )
      default:
        return failed(
          name,
          `the service answered ${error.status} when subscription 0 was unsubscribed, and not 404`,
          'Check NOTIFICATION_BASE_URL; if it is right, try again later',
        )
    }
  }
}

/** Errors of this package say what to do; none of those that get here has an answer's body in its message. */
function messageFor(error: unknown): string {
  if (error instanceof NotificationError) return error.message
  throw error
}
