/** What the answer to a create means (docs/service.md, States, Endpoints and Errors). */
import * as z from 'zod'
import {
  type Issue,
  ResponseValidationError,
  SubscriptionConflictError,
  type SubscriptionRequestSummary,
} from '../errors.js'
import type { Answer } from '../http/send.js'
import { compileOnce } from '../shared/compile-once.js'
import { formatIssues, validate } from '../shared/issues.js'
import { parseJson } from '../shared/parse-json.js'
import { apiError, detailsOf, isSuccess, refuseForeignPage } from './any-answer.js'
import type { CreateSubscriptionInput } from './create-input.js'
import type { CreateSubscriptionResult } from './create-result.js'

/** The answer to a successful create (docs/service.md, Endpoints). Fields beyond this one are dropped. */
export const createSubscriptionResponseSchema = z.object({
  /** Identifier of the new subscription. */
  subscription_id: z.int(),
})

/**
 * What errors may say about a create: neither parameters nor headers, whose values may be secrets.
 *
 * @param input - validated, so that its lists are copies which the caller cannot change
 */
export function summaryOf(input: CreateSubscriptionInput): SubscriptionRequestSummary {
  const { callbackUrl, notificationTypes, recreateIfExists = false, usernames } = input
  return { notificationTypes, usernames, callbackUrl: String(callbackUrl), recreateIfExists }
}

/** What was tried, as the rest of a sentence. */
export const toCreate = 'create the subscription'

/**
 * The subscription that an answer tells of, or the conflict.
 *
 * @throws `ResponseValidationError` for a success without a usable id, `ApiError` for error statuses but 409
 */
export function readCreateAnswer(
  answer: Answer,
  request: SubscriptionRequestSummary,
): CreateSubscriptionResult {
  if (answer.status === 409) return { created: false, conflict: conflictError(answer, request) }
  if (!isSuccess(answer)) throw apiError(answer, toCreate)
  if (answer.status !== 201) refuseForeignPage(answer, toCreate)
  const schema = compileOnce(createSubscriptionResponseSchema)
  const body = validate(schema, parseJson(answer.body), (issues) => noUsableId(answer, issues))
  return { created: true, subscriptionId: body.subscription_id }
}

function noUsableId(answer: Answer, found: readonly Issue[]): ResponseValidationError {
  const { status, url } = answer
  const issues = answer.bodyComplete ? found : [{ path: [], message: 'is incomplete or too long' }]
  return new ResponseValidationError(
    `The service answered ${status}, but the body holds no usable subscription_id (${formatIssues(issues)}). ` +
      'A subscription probably exists now: the body is in error.body, and creating again with ' +
      '`recreateIfExists: true` replaces the subscription and returns its id.',
    { status, url, body: answer.redact(answer.body), issues },
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
