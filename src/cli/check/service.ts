/** Checks the configuration, the connection to each server, the token, and whether the service accepts the token. */
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { isIP } from 'node:net'
import { connect } from 'node:tls'
import type { Auth } from '../../auth/authorizer.js'
import { type Environment, isBasic, missingFrom, routeVariable } from '../../client/environment.js'
import { NotificationClient } from '../../client/notification-client.js'
import type { CallOptions, NotificationClientOptions } from '../../client/options.js'
import { durationInWords } from '../../emulator/words.js'
import {
  ApiError,
  ConfigurationError,
  ConnectionError,
  NotificationError,
  OutcomeUnknownError,
  ResponseValidationError,
  TokenRequestError,
} from '../../errors.js'
import { toConnectionError } from '../../http/connection-error.js'
import { proxyVariables } from '../../http/proxy.js'
import type { ResponseSummary } from '../../http/send.js'
import { tlsOptions } from '../../http/undici.js'
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
import { advice, lookAtIntermediary, nextAfterConnection, nextAfterTokenRefusal } from '../next-step.js'
import { claimsOf, describeClaims, hasExpired } from '../token.js'
import { type CheckStep, failed, passed, type StepResult, skipped, unknown } from './step.js'

/** Each step shows the first answer. */
export const callOptions = { timeoutMs: 15_000, retry: false, logger: false } as const

/** @param ca - what `NOTIFICATION_CA_FILE` names, if it can be read */
export async function* checkService(env: Environment, ca: string | undefined): AsyncGenerator<CheckStep> {
  const made = clientOrProblem(env)
  if (!(made instanceof NotificationClient)) {
    const untried = skipped('not tried without a configuration')
    yield { name: 'Configuration', ...made }
    yield { name: 'Token', ...untried }
    yield { name: 'Authorization', ...untried }
    return
  }
  await using client = made
  const { NOTIFICATION_BASE_URL: baseUrl = '', NOTIFICATION_AUTH_URL, NOTIFICATION_DOMAIN: domain } = env
  yield { name: 'Configuration', ...passed(domain ? `${baseUrl}, domain ${domain}` : baseUrl) }
  for (const [variable, address] of serversOf({ NOTIFICATION_BASE_URL: baseUrl, NOTIFICATION_AUTH_URL })) {
    const name = `DNS and TLS of ${address.host}`
    yield { name, ...(await checkConnection(variable, address, env, ca)) }
  }
  const token = isBasic(env)
    ? skipped('not needed with a user name and a password')
    : await checkToken(client, env)
  yield { name: 'Token', ...token }
  if (token.outcome === 'failed') {
    yield { name: 'Authorization', ...skipped('not tried without a token') }
    return
  }
  const { NOTIFICATION_USERNAME: username = '', NOTIFICATION_PASSWORD: password = '' } = env
  const credentials = isBasic(env)
    ? { username, password }
    : { getAccessToken: () => client.getAccessToken() }
  const createWith = (auth: Auth) => emptyCreate({ ...callOptions, baseUrl, ca, auth })
  yield { name: 'Authorization', ...(await checkAuthorization(createWith, credentials)) }
}

/** The calls that only `--lifecycle` sends. */
export function routesStep(env: Environment): CheckStep {
  const shown = (operation: Operation) => {
    const { method, path } = resolvedRoute(operation)
    return `${operation} is ${env[routeVariable(operation)] || `${method} ${path} †`}`
  }
  return { name: 'Routes', ...unknown(`${shown('unsubscribe')}, ${shown('update')}`, tryLifecycle) }
}

function clientOrProblem(env: Environment): NotificationClient | StepResult {
  try {
    return NotificationClient.fromEnv(callOptions, env)
  } catch (error) {
    if (!(error instanceof ConfigurationError)) throw error
    const message = formatIssues(error.issues)
    return missingFrom(env).length > 0 ? skipped(message) : failed(message, 'Correct these variables')
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

const connectTimeoutMs = 10_000

/** Looks up the host, connects with TLS, and disconnects. */
async function checkConnection(
  variable: string,
  url: URL,
  env: Environment,
  ca: string | undefined,
): Promise<StepResult> {
  try {
    const host = url.hostname.replace(/^\[|\]$/g, '')
    const found = await lookup(host, { all: true })
    const { protocol, validUntil } = await certificateOf(host, Number(url.port || 443), ca)
    const addresses = found.map(({ address }) => address)
    const message = `${addresses.join(', ')}; ${protocol}, its certificate is valid until ${validUntil}`
    return passed(message, { addresses, protocol, validUntil })
  } catch (error) {
    const proxy = proxyVariables.find((each) => env[each])
    if (proxy !== undefined) {
      return skipped(`not reached directly, and ${proxy} is set: the next steps use that proxy`)
    }
    const failure = toConnectionError(error, { host: url.host, secrets: [] }, false)
    return failed(failure.message, nextAfterConnection(failure) ?? `Check ${variable}`)
  }
}

async function certificateOf(host: string, port: number, ca: string | undefined) {
  const socket = connect({
    host,
    port,
    timeout: connectTimeoutMs,
    // A server name is a host name, never an IP address (RFC 6066 section 3).
    ...(isIP(host) === 0 && { servername: host }),
    ...(await tlsOptions(ca)),
  })
  socket.once('timeout', () => {
    const message = `connect timeout after ${durationInWords(connectTimeoutMs)}`
    socket.destroy(Object.assign(new Error(message), { code: 'UND_ERR_CONNECT_TIMEOUT' }))
  })
  try {
    await once(socket, 'secureConnect')
    const validUntil = new Date(socket.getPeerCertificate().valid_to).toISOString().slice(0, 10)
    return { protocol: socket.getProtocol() ?? 'TLS', validUntil }
  } finally {
    socket.destroy()
  }
}

async function checkToken(client: NotificationClient, env: Environment): Promise<StepResult> {
  const token = await client.getAccessToken().catch(tokenProblem)
  if (typeof token !== 'string') return token
  const claims = claimsOf(token, env)
  if (claims === undefined) return passed('issued, but not a JWT: only the service can read it')
  const described = describeClaims(claims)
  if (hasExpired(claims)) return failed(`it has expired already: ${described}`, advice.compareClocks)
  return passed(described, claims)
}

function tokenProblem(error: unknown): StepResult {
  if (error instanceof TokenRequestError) {
    const { error: code, errorDescription, intermediary, status } = error
    if (intermediary !== undefined) return notOfService(intermediary, status, 'NOTIFICATION_AUTH_URL')
    const reason = [code, errorDescription].filter((part) => part !== undefined).join(': ')
    const message = `the token endpoint answered ${status}${reason && ` (${excerpt(reason, 300)})`}`
    return failed(message, nextAfterTokenRefusal(status, code))
  }
  if (error instanceof ResponseValidationError) {
    const message = `the answer with status ${error.status} holds no token`
    return failed(message, 'Check NOTIFICATION_AUTH_URL: is it an authorization server?')
  }
  if (!(error instanceof NotificationError)) throw error
  return failed(error.message, nextAfterNoAnswer(error, 'NOTIFICATION_AUTH_URL'))
}

/** @param variable - the one that names the server */
function nextAfterNoAnswer(error: NotificationError | undefined, variable: string): string {
  if (error instanceof ConfigurationError) return advice.correctProxy
  return (error instanceof ConnectionError && nextAfterConnection(error)) || `Check ${variable}`
}

/** The answer of a proxy proves nothing. */
function notOfService(intermediary: string, status: number, variable: string): StepResult {
  return failed(`${madeBy(intermediary)} answered ${status}`, lookAtIntermediary(variable))
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

/** Only a service that checks the token answers an empty create differently to the credentials and to a made-up token. */
async function checkAuthorization(
  createWith: (auth: Auth) => Promise<TriedCall>,
  credentials: Auth,
): Promise<StepResult> {
  const { status, intermediary, error } = await createWith(credentials)
  if (status === undefined) {
    return failed(`${error?.message}`, nextAfterNoAnswer(error, 'NOTIFICATION_BASE_URL'))
  }
  if (intermediary !== undefined) return notOfService(intermediary, status, 'NOTIFICATION_BASE_URL')
  if (isUnauthorized(status))
    return failed('the service does not accept the credentials (401)', advice.otherEnvironment)
  if (isForbidden(status))
    return failed('the service does not permit subscriptions (403)', advice.notActivated)
  if (isBusy(status) || isOutcomeOpen(status)) {
    return failed(`the service answered ${status}`, 'Try again later')
  }
  const sent = 'POST /api/subscriptions without any field'
  if (!isInvalidInput(status)) {
    const message = `${sent} was answered ${status}, and not 400: this is not the service`
    return failed(message, 'Check host and path of NOTIFICATION_BASE_URL')
  }
  const refusal = await createWith({ getAccessToken: () => 'made-up-token' })
  const isTold = refusal.status !== undefined && isAboutCredentials(refusal.status)
  if (isTold && refusal.intermediary === undefined) {
    const proof = `${sent} is answered ${status}, and ${refusal.status} with a made-up token`
    return passed(`the service accepts the credentials: ${proof}`)
  }
  const other =
    refusal.status === undefined
      ? refusal.error?.message
      : `${refusal.intermediary === undefined ? 'the service' : madeBy(refusal.intermediary)} answers ${refusal.status} to a made-up token`
  return unknown(`${sent} is answered ${status}, but ${other}`, tryLifecycle)
}

/** The client refuses such a create, so it is sent as an unsubscribe on the route of create. */
async function emptyCreate(options: NotificationClientOptions): Promise<TriedCall> {
  const unsubscribe = { method: 'POST', path: '/api/subscriptions', idField: 'check' } as const
  await using client = new NotificationClient({ ...options, routes: { unsubscribe } })
  return await tryCall((options) => client.unsubscribe(0, options))
}
