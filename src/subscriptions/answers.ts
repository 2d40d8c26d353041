/** What the answers to subscription calls mean (docs/service.md, States, Endpoints and Errors). */
import * as z from 'zod'
import {
  ApiError,
  type Issue,
  NotificationError,
  OutcomeUnknownError,
  ResponseValidationError,
  SubscriptionConflictError,
  SubscriptionNotFoundError,
  type SubscriptionRequestSummary,
} from '../errors.js'
import { type Answer, readJson } from '../http/answer.js'
import type { Call } from '../http/send.js'
import { withoutQuery } from '../shared/http-syntax.js'
import type { Operation } from '../shared/routes.js'
import { isSuccess, isTurnedAway } from '../shared/status.js'
import { excerpt, numericId } from '../shared/text.js'
import { formatIssues } from '../shared/validation.js'
import { type CreateSubscriptionInput, compileOnce } from './schemas.js'

/** A subscription that now exists (docs/service.md, Resources). */
export interface CreatedSubscription {
  /** The service's identifier; needed to unsubscribe and to update, so keep it. */
  readonly subscriptionId: number
}

/** The result of `tryCreateSubscription`: comparing `created` narrows it. */
export type CreateSubscriptionResult =
  | {
      /** A subscription now exists. */
      readonly created: true
      /** The service's identifier; needed to unsubscribe and to update, so keep it. */
      readonly subscriptionId: number
    }
  | {
      /** Nothing was created or deleted. */
      readonly created: false
      /** The error that `createSubscription` would have thrown. */
      readonly conflict: SubscriptionConflictError
    }

/** The answer to a successful create (docs/service.md, Endpoints). Fields beyond this one are dropped. */
export const createSubscriptionResponseSchema = z.object({
  /** Identifier of the new subscription: an integer, also if it is written as text. */
  subscription_id: z.preprocess(numericId, z.int()),
})

/**
 * The part of a create that errors show: without parameters, headers and the callback URL's query, which may be secrets.
 *
 * @param input - validated, so that its lists are copies which the caller cannot change
 */
export function summaryOf(input: CreateSubscriptionInput): SubscriptionRequestSummary {
  const { callbackUrl, notificationTypes, recreateIfExists = false, usernames } = input
  return { notificationTypes, usernames, callbackUrl: withoutQuery(String(callbackUrl)), recreateIfExists }
}

/**
 * The subscription that an answer reports, or the conflict.
 *
 * @throws `ResponseValidationError` for a success without a usable id, `ApiError` for error statuses except 409
 */
export function readCreateAnswer(
  answer: Answer,
  request: SubscriptionRequestSummary,
): CreateSubscriptionResult {
  if (answer.status === 409) return { created: false, conflict: conflictError(answer, request) }
  if (!isSuccess(answer.status)) throw apiError(answer)
  if (answer.status !== 201) refuseForeignPage(answer)
  const schema = compileOnce(createSubscriptionResponseSchema)
  const { subscription_id } = readJson(answer, schema, (issues) => noUsableId(answer, issues))
  return { created: true, subscriptionId: subscription_id }
}

/**
 * The error to throw for a create that failed with `error`: an `OutcomeUnknownError` if an attempt may have created the
 * subscription, and no later answer proved the outcome.
 */
export function createFailure(
  error: unknown,
  request: SubscriptionRequestSummary,
  { lostAttempts }: Pick<Call, 'lostAttempts'>,
): unknown {
  if (lostAttempts === 0) return error
  // The reason of a caller's signal is thrown unchanged.
  if (!(error instanceof NotificationError)) return error
  // A 201 with an unusable body proves that a subscription exists; a page with another status proves nothing.
  if (error instanceof ResponseValidationError && error.status === 201) return error
  return new OutcomeUnknownError(
    'The request to create the subscription was sent, but its answer was lost: the subscription may exist. ' +
      'Create it again with `recreateIfExists: true`: that replaces it if it exists, and returns the id either way. ' +
      `(${error.message})`,
    { request },
    { cause: error },
  )
}

/**
 * Returns if the answer to an unsubscribe or update is a success.
 *
 * @throws `SubscriptionNotFoundError` on 404 and 410, `ApiError` for other error statuses, `ResponseValidationError` for
 * a page
 */
export function readSubscriptionAnswer(
  answer: Answer,
  operation: Operation,
  subscriptionId: number,
  { lostAttempts }: Pick<Call, 'lostAttempts'>,
): void {
  const { status, url } = answer
  if (isSuccess(status)) {
    refuseForeignPage(answer)
    return
  }
  const mayHave = lostAttempts > 0 ? ' The call may still have taken effect; repeating it is safe.' : ''
  if (!isNotFound(status))
    throw apiError(answer, `${routeAdvice(answer, operation) ?? advice(answer)}${mayHave}`)
  throw new SubscriptionNotFoundError(
    `Could not ${answer.purpose}: ${url} answered ${status}. Either there is no active subscription ${subscriptionId} (it was ` +
      'unsubscribed or replaced, or the service ended it after three failed callbacks in a row), or the service has ' +
      `another route for this: see the option \`routes.${operation}\`.${mayHave}`,
    { ...detailsOf(answer), subscriptionId },
  )
}

/** Whether the status may mean that the subscription does not exist. From any server it may mean an unknown path. */
export function isNotFound(status: number): boolean {
  return status === 404 || status === 410
}

/** The advice after a status that suggests a wrong route. */
function routeAdvice({ status }: Answer, operation: Operation): string | undefined {
  const setting = `the option \`routes.${operation}\``
  if (isRedirect(status)) return `Redirects are not followed: check \`baseUrl\` and ${setting}.`
  if (status !== 405 && status !== 501) return undefined
  return `The service may have another route for this: see ${setting}.`
}

/** @param next - the rest of the message, which says what to do */
export function apiError(answer: Answer, next = advice(answer)): ApiError {
  const { purpose, status, url } = answer
  const details = detailsOf(answer)
  const words = wordsIn(details.body)
  return new ApiError(
    `Could not ${purpose}: ${url} answered ${status}${words && ` (${words})`}. ${next}`,
    details,
  )
}

/** The service's reason for a refusal, on one line; empty for a page, which begins with markup. */
function wordsIn(body: string): string {
  return isPage(body) ? '' : excerpt(body.trim(), 300)
}

function isPage(body: string): boolean {
  return body.trimStart().startsWith('<')
}

function advice({ status, body, bodyComplete, retryAfterMs }: Answer): string {
  if (isRedirect(status)) return 'Redirects are not followed: set `baseUrl` to the final address.'
  if (status === 401)
    return 'It does not accept the credentials: check `auth`, and that access was activated.'
  if (status === 403)
    return 'The credentials are valid but do not permit this: ask the operator of the service for access.'
  if (status === 404) return 'Check `baseUrl`: there is no subscription service at this address.'
  if (isTurnedAway(status)) {
    const when = retryAfterMs === undefined ? 'later' : `in ${Math.ceil(retryAfterMs / 1_000)} s`
    return `It is busy: try again ${when}.`
  }
  if (status >= 500) return 'It failed: try again later.'
  return body === '' && bodyComplete ? 'The answer has no body.' : 'The whole answer is in error.body.'
}

function isRedirect(status: number): boolean {
  return status >= 300 && status <= 399
}

/** @throws `ResponseValidationError` for a page of HTML or XML, which cannot come from the service */
function refuseForeignPage(answer: Answer): void {
  const { body, purpose, requestId, status, url } = answer
  if (!isPage(body)) return
  const issues = [{ path: [], message: 'is a page of HTML or XML' }]
  throw new ResponseValidationError(
    `Could not ${purpose}: ${url} answered ${status} with a page of HTML or XML, which is not from the service, ` +
      'but perhaps from a login or a proxy. Check `baseUrl`, and the network in between.',
    { status, url, requestId, body: answer.redact(body), issues },
  )
}

function noUsableId(answer: Answer, issues: readonly Issue[]): ResponseValidationError {
  const { requestId, status, url } = answer
  return new ResponseValidationError(
    `The service answered ${status}, but the body holds no usable subscription_id (${formatIssues(issues)}). ` +
      'A subscription probably exists now: the body is in error.body, and creating again with ' +
      '`recreateIfExists: true` replaces the subscription and returns its id.',
    { status, url, requestId, body: answer.redact(answer.body), issues },
  )
}

function conflictError(answer: Answer, request: SubscriptionRequestSummary): SubscriptionConflictError {
  // With recreateIfExists the service would have replaced an identical subscription: this one overlaps in part.
  const reason = request.recreateIfExists ? 'partial-overlap' : 'duplicate-or-overlap'
  const wanted = `${request.notificationTypes.join(', ')} for ${listed(request.usernames)} to ${request.callbackUrl}`
  return new SubscriptionConflictError(
    reason === 'partial-overlap'
      ? `An existing subscription covers part of ${wanted}, and \`recreateIfExists\` replaces only an identical one. ` +
          'Nothing was created or deleted. Unsubscribe the existing subscription first, or leave out the users and ' +
          'types that it covers, or use another callback URL.'
      : `An existing subscription covers ${wanted}, wholly or in part. Nothing was created. ` +
          'If the existing one is identical, `recreateIfExists: true` replaces it and returns the new id. ' +
          'If that fails with 409, too, the existing one overlaps only in part: unsubscribe it first.',
    { ...detailsOf(answer), reason, request },
  )
}

function listed(usernames: readonly string[]): string {
  const shown = 3
  const rest = usernames.length - shown
  return usernames.slice(0, shown).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}

/** The fields that every error about an answer has. */
function detailsOf(answer: Answer) {
  const { body, requestId, retryAfterMs, status, url } = answer
  return { status, url, requestId, body: answer.redact(body), retryAfterMs }
}
