/** Checks the configuration, the connection to each server, the token, and whether the service accepts the token. */
import type { Auth } from '../../auth/authorizer.js'
import { type Environment, isBasic, missingFrom, routeVariable } from '../../client/environment.js'
import { NotificationClient } from '../../client/notification-client.js'
import type { CallOptions, NotificationClientOptions } from '../../client/options.js'
import {
  ApiError,
  ConfigurationError,
  ConnectionError,
  NotificationError,
  OutcomeUnknownError,
  ResponseValidationError,
  TokenRequestError,
} from '../../errors.js'
import type { ResponseSummary } from '../../http/send.js'
import { type Operation, resolvedRoute } from '../../shared/routes.js'
import {
  isAboutCredentials,
  isBusy,
  isForbidden,
  isInvalidInput,
  isOutcomeOpen,
  isUnauthorized,
} from '../../shared/statuses.js'
import { excerpt } from '../../shared/text.js'
import { formatIssues } from '../../shared/validation.js'
import {
  compareClocks,
  correctProxy,
  lookAtIntermediary,
  nextAfterConnection,
  nextAfterTokenRefusal,
  notActivated,
  otherEnvironment,
} from '../next-step.js'
import { claimsOf, describeClaims, hasExpired } from '../token.js'
import { checkConnection } from './connection.js'
import { type CheckStep, failed, passed, skipped, unknown } from './step.js'

/** Each step shows the first answer. */
export const callOptions = { timeoutMs: 15_000, retry: false, logger: false } as const

const stepNames = { configuration: 'Configuration', token: 'Token', authorization: 'Authorization' } as const

/** @param ca - what `NOTIFICATION_CA_FILE` names, if it can be read */
export async function* checkService(env: Environment, ca: string | undefined): AsyncGenerator<CheckStep> {
  const made = clientOrProblem(env)
  if (!(made instanceof NotificationClient)) {
    yield made
    yield skipped(stepNames.token, 'not tried without a configuration')
    yield skipped(stepNames.authorization, 'not tried without a configuration')
    return
  }
  await using client = made
  const { NOTIFICATION_BASE_URL: baseUrl = '', NOTIFICATION_AUTH_URL, NOTIFICATION_DOMAIN: domain } = env
  yield passed(stepNames.configuration, domain ? `${baseUrl}, domain ${domain}` : baseUrl)
  for (const [variable, address] of serversOf({ NOTIFICATION_BASE_URL: baseUrl, NOTIFICATION_AUTH_URL })) {
    yield checkConnection(variable, address, env, ca)
  }
  const token = isBasic(env)
    ? skipped(stepNames.token, 'not needed with a user name and a password')
    : await checkToken(client, env)
  yield token
  if (token.outcome === 'failed') {
    yield skipped(stepNames.authorization, 'not tried without a token')
    return
  }
  const { NOTIFICATION_USERNAME: username = '', NOTIFICATION_PASSWORD: password = '' } = env
  const credentials = isBasic(env)
    ? { username, password }
    : { getAccessToken: () => client.getAccessToken() }
  yield authorizationStep((auth) => emptyCreate({ ...callOptions, baseUrl, ca, auth }), credentials)
}

/** The calls that only `--lifecycle` sends. */
export function routesStep(env: Environment): CheckStep {
  const shown = (operation: Operation) => {
    const { method, path } = resolvedRoute(operation)
    return `${operation} is ${env[routeVariable(operation)] || `${method} ${path} †`}`
  }
  const message = `${shown('unsubscribe')}, ${shown('update')}`
  return unknown('Routes', message, tryLifecycle)
}

function clientOrProblem(env: Environment): NotificationClient | CheckStep {
  try {
    return NotificationClient.fromEnv(callOptions, env)
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    const message = formatIssues(error.issues)
    return missingFrom(env).length > 0
      ? skipped(stepNames.configuration, message)
      : failed(stepNames.configuration, message, 'Correct these variables')
  }
}

/** Each server once, by the first variable that names it. */
function serversOf(addresses: Environment): [variable: string, address: URL][] {
  const servers = new Map<string, [string, URL]>()
  for (const [variable, address] of Object.entries(addresses)) {
    if (!address) continue
    const url = new URL(address)
    if (!servers.has(url.host)) servers.set(url.host, [variable, url])
  }
  return [...servers.values()]
}

async function checkToken(client: NotificationClient, env: Environment): Promise<CheckStep> {
  const token = await client.getAccessToken().catch(tokenProblem)
  if (typeof token !== 'string') return token
  const claims = claimsOf(token, env)
  if (claims === undefined) {
    return passed(stepNames.token, 'issued, but not a JWT: only the service can read it')
  }
  if (hasExpired(claims)) {
    return failed(stepNames.token, `it has expired already: ${describeClaims(claims)}`, compareClocks)
  }
  return passed(stepNames.token, describeClaims(claims), claims)
}

function tokenProblem(error: unknown): CheckStep {
  if (error instanceof TokenRequestError && error.intermediary !== undefined) {
    return notOfService(stepNames.token, error.intermediary, error.status, 'NOTIFICATION_AUTH_URL')
  }
  if (error instanceof TokenRequestError) {
    const { error: code, errorDescription, status } = error
    const reason = [code, errorDescription].filter((part) => part !== undefined).join(': ')
    const message = `the token endpoint answered ${status}${reason && ` (${excerpt(reason, 300)})`}`
    return failed(stepNames.token, message, nextAfterTokenRefusal(status, code))
  }
  if (error instanceof ResponseValidationError) {
    const message = `the answer with status ${error.status} holds no token`
    return failed(stepNames.token, message, 'Check NOTIFICATION_AUTH_URL: is it an authorization server?')
  }
  if (!(error instanceof NotificationError)) throw error
  return failed(stepNames.token, error.message, nextAfterNoAnswer(error, 'NOTIFICATION_AUTH_URL'))
}

/** @param variable - the one that names the server */
function nextAfterNoAnswer(error: NotificationError | undefined, variable: string): string {
  if (error instanceof ConfigurationError) return correctProxy
  return (error instanceof ConnectionError && nextAfterConnection(error)) || `Check ${variable}`
}

/** The answer of a proxy proves nothing. */
function notOfService(name: string, intermediary: string, status: number, variable: string): CheckStep {
  return failed(name, `${madeBy(intermediary)} answered ${status}`, lookAtIntermediary(variable))
}

/** The subject of a sentence. */
export function madeBy(intermediary: string): string {
  return `${intermediary}, and not the service,`
}

/** How a call to the service ended: the answer's status, what made it instead of the service, and the call's error. */
export type TriedCall = Awaited<ReturnType<typeof tryCall>>

export async function tryCall(call: (options: CallOptions) => Promise<unknown>) {
  let status: number | undefined
  const onResponse = (response: ResponseSummary) => {
    status = response.status
  }
  try {
    await call({ onResponse })
    return { status }
  } catch (error) {
    if (!(error instanceof NotificationError)) throw error
    const answer = error instanceof OutcomeUnknownError ? error.cause : error
    const intermediary = answer instanceof ApiError ? answer.intermediary : undefined
    return { status, intermediary, error }
  }
}

const tryLifecycle = 'Try it for real, with a user of your own for tests: --lifecycle'

/**
 * Sends a create without types, users and callback URL, which the service refuses, once with the credentials and once with
 * a made-up token. Only a service that checks the token answers them differently.
 */
async function authorizationStep(
  createWith: (auth: Auth) => Promise<TriedCall>,
  credentials: Auth,
): Promise<CheckStep> {
  const name = stepNames.authorization
  const { status, intermediary, error } = await createWith(credentials)
  if (status === undefined) {
    return failed(name, `${error?.message}`, nextAfterNoAnswer(error, 'NOTIFICATION_BASE_URL'))
  }
  if (intermediary !== undefined) return notOfService(name, intermediary, status, 'NOTIFICATION_BASE_URL')
  if (isUnauthorized(status)) {
    return failed(name, 'the service does not accept the credentials (401)', otherEnvironment)
  }
  if (isForbidden(status)) {
    return failed(name, 'the service does not permit subscriptions (403)', notActivated)
  }
  if (isBusy(status) || isOutcomeOpen(status)) {
    return failed(name, `the service answered ${status}`, 'Try again later')
  }
  const sent = 'POST /api/subscriptions without any field'
  if (!isInvalidInput(status)) {
    const message = `${sent} was answered ${status}, and not 400: this is not the service`
    return failed(name, message, 'Check host and path of NOTIFICATION_BASE_URL')
  }
  const refusal = await createWith({ getAccessToken: () => 'made-up-token' })
  const isTold = refusal.status !== undefined && isAboutCredentials(refusal.status)
  if (isTold && refusal.intermediary === undefined) {
    const message = `the service accepts the credentials: ${sent} is answered ${status}, and ${refusal.status} with a made-up token`
    return passed(name, message)
  }
  const other =
    refusal.status === undefined
      ? refusal.error?.message
      : `${refusal.intermediary === undefined ? 'the service' : madeBy(refusal.intermediary)} answers ${refusal.status} to a made-up token`
  return unknown(name, `${sent} is answered ${status}, but ${other}`, tryLifecycle)
}

/** The client refuses such a create, so it is sent as an unsubscribe on the route of create. */
async function emptyCreate(options: NotificationClientOptions): Promise<TriedCall> {
  const unsubscribe = { method: 'POST', path: '/api/subscriptions', idField: 'check' } as const
  await using client = new NotificationClient({ ...options, routes: { unsubscribe } })
  return await tryCall((options) => client.unsubscribe(0, options))
}
