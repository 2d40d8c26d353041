/** What the answers to the subscription calls mean (interface.md sections 3, 4.2 and 7). */
import * as z from 'zod'
import {
  ApiError,
  type ApiErrorDetails,
  ResponseValidationError,
  SubscriptionConflictError,
  SubscriptionNotFoundError,
  type SubscriptionRequestSummary,
} from '../errors.js'
import type { Answer, Progress } from '../http/send.js'
import { compileOnce } from '../shared/compile-once.js'
import { formatIssues, issuesOf } from '../shared/issues.js'
import { parseJson } from '../shared/parse-json.js'
import type { CreateSubscriptionInput } from './create-input.js'

/** The answer to a successful create (interface.md section 4.2). Fields beyond this one are dropped. */
export const createSubscriptionResponseSchema = z.object({
  /** Identifier of the new subscription. */
  subscription_id: z.int(),
})

/**
 * What errors may say about a create: neither parameters nor headers, whose values may be secrets.
 *
 * @param input - as validated, which copied the lists
 */
export function summaryOf(input: CreateSubscriptionInput): SubscriptionRequestSummary {
  const { callbackUrl, notificationTypes, recreateIfExists = false, usernames } = input
  return { notificationTypes, usernames, callbackUrl: String(callbackUrl), recreateIfExists }
}

/**
 * The new subscription's id, or the conflict that kept it from being created.
 *
 * @throws `ResponseValidationError` for a success without a usable id, `ApiError` for other error statuses.
 */
export function readCreateAnswer(
  answer: Answer,
  request: SubscriptionRequestSummary,
): number | SubscriptionConflictError {
  if (answer.status === 409) return conflictError(answer, request)
  if (!isSuccess(answer)) throw apiError(answer, 'create the subscription', false)
  const parsed = compileOnce(createSubscriptionResponseSchema).safeParse(parseJson(answer.body))
  if (parsed.success) return parsed.data.subscription_id
  const issues = answer.bodyComplete
    ? issuesOf(parsed.error)
    : [{ path: [], message: 'is incomplete or too long' }]
  throw new ResponseValidationError(
    `The service answered ${answer.status}, but the body holds no usable subscription_id (${formatIssues(issues)}). ` +
      'A subscription probably exists now: the body is in error.body, and creating again with ' +
      '`recreateIfExists: true` replaces the subscription and returns its id.',
    { status: answer.status, body: answer.redact(answer.body), issues },
  )
}

/** @throws `SubscriptionNotFoundError` on 404, `ApiError` for other error statuses, `ResponseValidationError` for a page. */
export function readSubscriptionAnswer(
  answer: Answer,
  subscriptionId: number,
  attempt: string,
  { lostAttempts }: Progress,
): void {
  if (isSuccess(answer)) {
    refuseForeignPage(answer, attempt)
    return
  }
  if (answer.status !== 404) throw apiError(answer, attempt, lostAttempts > 0)
  throw new SubscriptionNotFoundError(
    `There is no active subscription ${subscriptionId}: it was unsubscribed or replaced, or the service ended it ` +
      'after three failed callbacks in a row. Create a new one if notifications are still wanted.',
    { ...detailsOf(answer), subscriptionId },
  )
}

/** These answers need no body, so that any 2xx will do; but a page was written by something else than the service. */
function refuseForeignPage(answer: Answer, attempt: string): void {
  const { status, body } = answer
  if (!body.trimStart().startsWith('<')) return
  const issues = [{ path: [], message: 'is a page of HTML or XML' }]
  throw new ResponseValidationError(
    `Could not ${attempt}: something answered ${status} with a page, probably a proxy or a login in between, ` +
      'and not the service. Check `baseUrl` and the network.',
    { status, body: answer.redact(body), issues },
  )
}

function conflictError(answer: Answer, request: SubscriptionRequestSummary): SubscriptionConflictError {
  // With recreateIfExists an identical subscription would have been replaced, so only an overlap is left.
  const reason = request.recreateIfExists ? 'partial-overlap' : 'duplicate-or-overlap'
  const wanted = `${request.notificationTypes.join(', ')} for ${listed(request.usernames)} to ${request.callbackUrl}`
  return new SubscriptionConflictError(
    reason === 'partial-overlap'
      ? `An existing subscription covers part of ${wanted}, and recreateIfExists replaces identical ones only. ` +
          'Nothing was created or deleted. Unsubscribe the existing subscription first, or ask only for the users ' +
          'and types that it does not cover, or use another callback URL.'
      : `An existing subscription covers ${wanted}, wholly or in part. Nothing was created. ` +
          'If it is identical, set `recreateIfExists: true` to replace it and get its new id; ' +
          'if that is answered with 409 too, it overlaps only in part and must be unsubscribed first.',
    { ...detailsOf(answer), reason, request },
  )
}

function listed(usernames: readonly string[]): string {
  const shown = 3
  const rest = usernames.length - shown
  return usernames.slice(0, shown).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}

function apiError(answer: Answer, attempt: string, mayHaveTakenEffect: boolean): ApiError {
  const { status } = answer
  const doubt = mayHaveTakenEffect ? ' It may have taken effect all the same; repeating it is safe.' : ''
  return new ApiError(
    `Could not ${attempt}: the service answered ${status}. ${advice(answer)}${doubt}`,
    detailsOf(answer),
  )
}

function advice({ status, retryAfterMs }: Answer): string {
  if (status >= 300 && status <= 399) return 'Redirects are not followed: set `baseUrl` to the final address.'
  if (status === 401)
    return 'It does not accept the credentials: check `auth`, and that access was activated.'
  if (status === 403)
    return 'The credentials are known but do not permit this: ask for access to be extended.'
  if (status === 404) return 'Check `baseUrl`: there is no subscription service at that address.'
  if (status === 429 || status === 503) {
    const when = retryAfterMs === undefined ? 'later' : `in ${Math.ceil(retryAfterMs / 1_000)} s`
    return `It is busy: try again ${when}.`
  }
  if (status >= 500) return 'It failed: try again later.'
  return 'What it says about that is in error.body.'
}

function detailsOf(answer: Answer): ApiErrorDetails {
  return { status: answer.status, body: answer.redact(answer.body), retryAfterMs: answer.retryAfterMs }
}

function isSuccess({ status }: Answer): boolean {
  return status >= 200 && status <= 299
}
