/** The steps of `check` about the service: configuration, token, authorization. */
import type { Auth } from '../auth/credentials.js'
import { type Environment, fromEnvironment, isBasic, missingFrom } from '../client/environment.js'
import { NotificationClient } from '../client/notification-client.js'
import { ApiError, OutcomeUnknownError, TimeoutError } from '../errors.js'
import { intermediaryAdvice } from '../http/intermediary.js'
import { endpoints } from '../shared/routes.js'
import {
  isAboutCredentials,
  isBusy,
  isForbidden,
  isInvalidInput,
  isOutcomeOpen,
  isUnauthorized,
} from '../shared/statuses.js'
import { formatIssues } from '../shared/validation.js'
import { Finding, type Steps, skipped } from './step-report.js'
import { compareClocks, readToken } from './token.js'

/** Each step shows the first answer. */
export const callOptions = { timeoutMs: 15_000, retry: false, logger: false } as const

/** Resolves with whether the service accepts the credentials. */
export async function checkService(steps: Steps, env: Environment): Promise<boolean> {
  let client: NotificationClient | undefined
  await steps.run('Configuration', async () => {
    const missing = missingFrom(env)
    if (missing.length > 0) throw skipped(formatIssues(missing))
    client = NotificationClient.fromEnv(callOptions, env)
    return `${env.NOTIFICATION_BASE_URL} ${env.NOTIFICATION_DOMAIN ?? ''}`.trimEnd()
  })
  if (client === undefined) return false
  await using open = client
  const hasToken = isBasic(env) || (await steps.run('Token', () => checkToken(open)))
  return hasToken && steps.run('Authorization', () => checkAuthorization(env))
}

async function checkToken(client: NotificationClient): Promise<string> {
  const { description, hasExpired } = readToken(await client.getAccessToken())
  if (!hasExpired) return description
  throw new Finding(`it has expired already: ${description}`, compareClocks)
}

const emptyPostIs = `POST ${endpoints.create.path} without any field is`
const checkAddress = 'Check host, port and path of NOTIFICATION_BASE_URL'

/** Only a service that checks credentials answers an empty create with them differently from one with a made-up token. */
async function checkAuthorization(env: Environment): Promise<string> {
  const status = await emptyCreate(env)
  const refused = `the service answered ${status}`
  if (isUnauthorized(status))
    throw new Finding(
      refused,
      'Are the credentials for the environment of NOTIFICATION_BASE_URL, lab or production?',
    )
  if (isForbidden(status))
    throw new Finding(refused, 'Ask your account contact to activate notifications for these credentials')
  if (isBusy(status) || isOutcomeOpen(status)) throw new Finding(refused, 'Try again later')
  if (!isInvalidInput(status)) {
    throw new Finding(`${emptyPostIs} answered ${status}, and not 400: this is not the service`, checkAddress)
  }
  const forged = await emptyCreate(env, { getAccessToken: () => 'made-up-token' })
  const answered = `${emptyPostIs} answered ${status}, and ${forged} with a made-up token`
  if (isAboutCredentials(forged)) return `the service accepts the credentials: ${answered}`
  const next = 'Try it for real, with a user of your own for tests: --lifecycle'
  throw new Finding(answered, next, 'unknown')
}

/**
 * The status of the answer. The client refuses such a create, so it is sent as an unsubscribe on the route of create.
 *
 * @throws why there is no answer of the service
 */
async function emptyCreate(env: Environment, auth?: Auth): Promise<number> {
  const routes = { unsubscribe: { method: 'POST', path: endpoints.create.path, idField: 'check' } } as const
  const options = fromEnvironment((options) => options, callOptions, env)
  await using client = new NotificationClient({ ...options, routes, ...(auth && { auth }) })
  let status = 0
  const onResponse = (response: { status: number }) => {
    status = response.status
  }
  await client.unsubscribe(0, { onResponse }).catch((error) => {
    const reason = error instanceof OutcomeUnknownError ? error.cause : error
    const intermediary = reason instanceof ApiError ? reason.intermediary : undefined
    if (reason instanceof TimeoutError) throw new Finding(`${emptyPostIs} not answered in time`, checkAddress)
    if (intermediary !== undefined) {
      const next = intermediaryAdvice(intermediary, 'the credentials', 'NOTIFICATION_BASE_URL')
      throw new Finding(`${emptyPostIs} answered ${status}`, next)
    }
    if (status === 0) throw reason
  })
  return status
}
