/** Checks the configuration, the connection to each server, the token, and whether the service accepts the token. */
import { missingFrom } from '../../client/environment.js'
import { NotificationClient } from '../../client/notification-client.js'
import {
  ApiError,
  ConfigurationError,
  NotificationError,
  ResponseValidationError,
  SubscriptionNotFoundError,
  TokenRequestError,
} from '../../errors.js'
import { excerpt } from '../../shared/text.js'
import { formatIssues } from '../../shared/validation.js'
import { durationInWords } from '../terminal.js'
import { checkConnection } from './connection.js'
import { type Environment, failed, passed, type Step, skipped } from './step.js'

/** How long a call to the service may take. */
export const callTimeoutMs = 15_000

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
    const message = formatIssues(error.issues)
    return missingFrom(env).length > 0
      ? skipped(stepNames.configuration, message)
      : failed(stepNames.configuration, message, 'Correct these variables')
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

async function checkToken(client: NotificationClient): Promise<Step> {
  let token: string
  try {
    token = await client.getAccessToken()
  } catch (error) {
    return tokenProblem(error)
  }
  const claims = claimsOf(token)
  if (claims === undefined) {
    return passed(stepNames.token, 'issued, but not a JWT: only the service can read it')
  }
  if (claims.exp !== undefined && claims.exp * 1000 <= Date.now()) {
    return failed(
      stepNames.token,
      `it has expired already: ${describeClaims(claims)}`,
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
    const message = `the answer with status ${error.status} holds no token`
    return failed(stepNames.token, message, 'Check NOTIFICATION_AUTH_URL: is it an authorization server?')
  }
  return failed(stepNames.token, messageFor(error))
}

function nextAfter(status: number, code: string | undefined): string {
  if (code === 'invalid_scope') return 'Check NOTIFICATION_SCOPE'
  if (status === 404) return 'Check NOTIFICATION_DOMAIN and NOTIFICATION_AUTH_URL: there is no such domain'
  if (status === 401 || status === 400) {
    return (
      'Compare NOTIFICATION_CLIENT_ID and NOTIFICATION_CLIENT_SECRET with what you were given. If the secret has ' +
      'characters such as % or +, try NOTIFICATION_CREDENTIALS_ENCODING=form-urlencoded'
    )
  }
  return 'Ask the operator of the authorization server'
}

/** Unsubscribes subscription 0, which does not exist: a 404 shows that the service accepted the token. */
async function checkAuthorization(client: NotificationClient): Promise<Step> {
  const name = stepNames.authorization
  try {
    await client.unsubscribe(0)
    return passed(name, 'the service accepts the token')
  } catch (error) {
    if (error instanceof SubscriptionNotFoundError) {
      return passed(
        name,
        'the service accepts the token: it looked for subscription 0, which does not exist (404)',
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
          `the service answered ${error.status} to unsubscribing subscription 0, and not 404`,
          'Check NOTIFICATION_BASE_URL; if it is right, try again later',
        )
    }
  }
}

/** The message of an error of this package, which says what to do. No error that gets here shows the body of an answer. */
function messageFor(error: unknown): string {
  if (error instanceof NotificationError) return error.message
  throw error
}

/** What an access token says about itself (RFC 7519). Only the service verifies its signature. */
interface TokenClaims {
  /** The issuer. */
  readonly iss?: string
  /** The client that the token was issued to. */
  readonly azp?: string
  /** When the token ends, in seconds since 1970. */
  readonly exp?: number
  readonly scope?: string
}

/** The claims of a token, texts cut; nothing if the token is not a JWT. */
function claimsOf(token: string): TokenClaims | undefined {
  try {
    const payload: unknown = JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString('utf8'))
    const { iss, azp, exp, scope }: Record<string, unknown> = Object(payload)
    return {
      ...(typeof iss === 'string' && { iss: excerpt(iss, 200) }),
      ...(typeof azp === 'string' && { azp: excerpt(azp, 100) }),
      ...(typeof exp === 'number' && { exp }),
      ...(typeof scope === 'string' && { scope: excerpt(scope, 200) }),
    }
  } catch {
    return undefined
  }
}

function describeClaims({ iss, azp, exp, scope }: TokenClaims): string {
  return [
    `iss ${iss ?? 'missing'}`,
    `azp ${azp ?? 'missing'}`,
    exp === undefined ? 'exp missing' : expiry(exp * 1000 - Date.now()),
    `scope ${scope ?? 'none'}`,
  ].join(', ')
}

function expiry(remainingMs: number): string {
  return remainingMs > 0
    ? `expires in ${durationInWords(remainingMs)}`
    : `expired ${durationInWords(-remainingMs)} ago`
}
