/** What a person does next after a call failed, in words of the command line. */
import { routeVariable } from '../client/environment.js'
import type { AnyNotificationError, ApiError, ConnectionError } from '../errors.js'
import { isOfProxy, verificationError } from '../http/connection-error.js'
import type { Operation } from '../shared/routes.js'
import {
  isAbsent,
  isBusy,
  isForbidden,
  isInvalidInput,
  isNoRoute,
  isOutcomeOpen,
  isTokenRefused,
  isUnauthorized,
} from '../shared/statuses.js'

export type CalledOperation = 'token' | 'create' | Operation

const recreate =
  'run it again with --recreate-if-exists: that leaves exactly one subscription, and prints its ID'

const itsId = 'its ID, the `subscriptionId` of its deliveries'

/** What a call whose answer is missing may have done, and what to do. */
export const afterNoAnswer: Readonly<Record<CalledOperation, string>> = {
  token: 'Run it again',
  create: `The subscription may exist. To be sure, ${recreate}`,
  update: 'The values may have changed. Running it again is safe',
  unsubscribe: 'The subscription may have ended. Running it again is safe',
}

/** `undefined` if the cause is elsewhere: `check` finds it. */
export function nextStepAfter(error: AnyNotificationError, operation: CalledOperation): string | undefined {
  switch (error.code) {
    case 'TOKEN_REQUEST':
      return error.intermediary !== undefined
        ? lookAtIntermediary('NOTIFICATION_AUTH_URL')
        : nextAfterTokenRefusal(error.status, error.error)
    case 'SUBSCRIPTION_CONFLICT':
      return error.reason === 'partial-overlap'
        ? `Unsubscribe the other subscription by ${itsId}, or leave out the users and types that it has`
        : `If the other subscription is identical, add --recreate-if-exists; otherwise unsubscribe it by ${itsId}`
    case 'SUBSCRIPTION_NOT_FOUND':
      return operation === 'update'
        ? `If the subscription has ended, create it again with subscribe. If it still delivers, ${anotherRoute(operation)}`
        : `Compare the ID with what subscribe printed. If the subscription still delivers, ${anotherRoute('unsubscribe')}`
    case 'API':
      return nextAfterAnswer(error, operation)
    case 'CONNECTION':
      return nextAfterConnection(error)
    case 'TIMEOUT':
      return error.phase === 'answer' ? afterNoAnswer[operation] : undefined
    case 'RESPONSE_VALIDATION':
    case 'OUTCOME_UNKNOWN':
      return operation === 'token' ? undefined : afterNoAnswer[operation]
    default:
      return undefined
  }
}

/** After an answer that a proxy or gateway has made. @param variable - with the server's address */
export function lookAtIntermediary(variable: string): string {
  return `Check ${variable}, and the rules, routes and log of what answered`
}

function nextAfterAnswer({ intermediary, status }: ApiError, operation: CalledOperation): string | undefined {
  if (intermediary !== undefined) return lookAtIntermediary('NOTIFICATION_BASE_URL')
  if (isUnauthorized(status)) return advice.otherEnvironment
  if (isForbidden(status)) return advice.notActivated
  if (isOutcomeOpen(status) && operation === 'create') return afterNoAnswer.create
  if (isBusy(status) || isOutcomeOpen(status)) return 'Try again later'
  if (isNoRoute(status) && (operation === 'update' || operation === 'unsubscribe')) {
    return `The service may have another route for this: ${anotherRoute(operation)}`
  }
  return isInvalidInput(status)
    ? 'The service refused a value of the call: its answer may say which'
    : undefined
}

function anotherRoute(operation: Operation): string {
  return `set ${routeVariable(operation)}`
}

export const advice = {
  /** After a 401 to a call with a token that was just issued, or with a user name and password. */
  otherEnvironment:
    'Do the credentials belong to the same environment as NOTIFICATION_BASE_URL, lab or production?',
  /** After a 403 to a call. */
  notActivated: 'Ask your account contact to activate notifications for these credentials',
  /** After a token that has expired when it was issued. */
  compareClocks: "Compare this machine's clock with that of the authorization server",
  correctProxy:
    'Correct the variable that names the proxy or, if this machine reaches the host directly, list the host in NO_PROXY',
}

/** @param error - the code of RFC 6749 section 5.2, if there was one */
export function nextAfterTokenRefusal(status: number, error: string | undefined): string {
  if (error === 'invalid_scope') return 'Check NOTIFICATION_SCOPE'
  if (isAbsent(status)) return 'Check NOTIFICATION_DOMAIN and NOTIFICATION_AUTH_URL: there is no such domain'
  if (isTokenRefused(status, error)) {
    return (
      'Compare NOTIFICATION_CLIENT_ID and NOTIFICATION_CLIENT_SECRET with what you were given. If the secret has ' +
      'characters such as % or +, try NOTIFICATION_CREDENTIALS_ENCODING=form-urlencoded or NOTIFICATION_CLIENT_AUTHENTICATION=body; ' +
      'if it has a #, put it in quotes in the file of --dotenv'
    )
  }
  return 'Try again later. If it stays so, ask the operator of the authorization server'
}

/** What is wrong with the certificate of a server, if that is the cause. */
export function certificateProblem(error: ConnectionError): 'untrusted' | 'wrong' | undefined {
  const { code = '' }: { code?: string } = Object(error.cause)
  if (/SELF_SIGNED|UNABLE_TO/.test(code)) return 'untrusted'
  return code === 'ERR_TLS_CERT_ALTNAME_INVALID' || verificationError.test(code) ? 'wrong' : undefined
}

/** What to do after a failed connection, if a proxy or the server's certificate is the cause. */
export function nextAfterConnection(error: ConnectionError): string | undefined {
  if (isOfProxy(error)) return advice.correctProxy
  return certificateProblem(error) === 'untrusted'
    ? "If you trust the server, name a file with its authority's certificate: NOTIFICATION_CA_FILE"
    : undefined
}
