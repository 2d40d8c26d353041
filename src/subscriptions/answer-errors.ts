/** The errors of subscription calls, each with what to do next (docs/service.md, States and Errors). */
import {
  ApiError,
  ConnectionError,
  type InvalidRequestError,
  type Issue,
  NotificationError,
  OutcomeUnknownError,
  ResponseValidationError,
  SubscriptionConflictError,
  SubscriptionNotFoundError,
  type SubscriptionRequestSummary,
  TimeoutError,
} from '../errors.js'
import { type Answer, unusableAnswer } from '../http/answer.js'
import { intermediaryAdvice } from '../http/intermediary.js'
import { isPage, reasonIn } from '../http/reason.js'
import type { RouteName } from '../shared/routes.js'
import {
  isBusy,
  isForbidden,
  isNoRoute,
  isNotFound,
  isOutcomeOpen,
  isRedirect,
  isServerError,
  isTooLarge,
  isUnauthorized,
  provesCreate,
} from '../shared/statuses.js'
import { formatIssues, invalidRequest, parseJson } from '../shared/validation.js'
import { messageIn, type View, type Words, worded } from '../shared/words.js'

/** The error for a value that cannot be sent with this client's options. */
export function unsendable(path: readonly string[], message: string): InvalidRequestError {
  return invalidRequest('Nothing was sent')([{ path, message }])
}

/** The error after a create that may have taken effect: an `OutcomeUnknownError`, unless `error` proves the outcome. */
export function outcomeUnknown(error: unknown, request: () => SubscriptionRequestSummary): unknown {
  // The reason of a caller's signal is thrown unchanged.
  if (!(error instanceof NotificationError)) return error
  // A 201 with an unusable body proves that a subscription exists; a page with another status proves nothing.
  if (error instanceof ResponseValidationError && provesCreate(error.status)) return error
  return worded(
    (view) =>
      'The request to create the subscription was sent, and its outcome is unknown: the subscription may exist. ' +
      `Create it again with ${view.recreateIfExists}: that replaces it if it exists, and returns the id either way. ` +
      `(${messageIn(view, error)})`,
    (message) => new OutcomeUnknownError(message, { request: request() }, { cause: error }),
  )
}

/** Whether a call that has thrown may take effect, now or later. */
export function mayHaveTakenEffect(error: unknown): boolean {
  // Any other error is of a keeper's custom client, and proves nothing about the request.
  if (!(error instanceof NotificationError)) return true
  if (error instanceof OutcomeUnknownError || error instanceof ResponseValidationError) return true
  if (error instanceof ConnectionError) return error.requestSent
  if (error instanceof TimeoutError) return error.phase === 'answer'
  return error instanceof ApiError && isOutcomeOpen(error.status)
}

/** The error for an answer to an unsubscribe or update that is no success. */
export function refusedChange(
  answer: Answer,
  change: {
    readonly operation: RouteName
    readonly subscriptionId: number
    /** Whether a 404 or 410 proves that the subscription has ended. */
    readonly provesEnded: boolean
    /** Whether an attempt was sent whose outcome is unknown. */
    readonly isLost: boolean
  },
): ApiError {
  const { isLost, operation, provesEnded, subscriptionId } = change
  const { intermediary, status } = answer
  const mayHaveEffect = isLost ? ' The call may still have taken effect; repeating it is safe.' : ''
  const route = operation === 'update' ? 'updateRoute' : 'unsubscribeRoute'
  if (!isNotFound(status) || intermediary !== undefined) {
    const toDo = adviceAfter(answer, route)
    return errorWith(answer, (view) => toDo(view) + mayHaveEffect)
  }
  const details = { ...answer.details, subscriptionId, provesEnded }
  const ended =
    `${answer.failure()}. ${provesEnded ? 'There' : 'Either there'} is no active subscription ${subscriptionId} (it was ` +
    'unsubscribed or replaced, or the service ended it after three failed callbacks in a row)'
  const after =
    isLost && operation === 'unsubscribe'
      ? ` An earlier attempt of this call got no answer: if it has ended the subscription, this ${status} is how success looks.`
      : mayHaveEffect
  const orElse = (view: View) =>
    provesEnded ? '' : `, or the service has another route for this: see ${view[route]}`
  return worded(
    (view) => `${ended}${orElse(view)}.${after}`,
    (message) => new SubscriptionNotFoundError(message, details),
  )
}

/** @param mayExist - whether a subscription may exist after this answer, or after an earlier one */
export function apiError(answer: Answer, mayExist = false): ApiError {
  const toDo = adviceAfter(answer)
  const existing = ({ recreateIfExists }: View) =>
    mayExist ? ` The subscription may exist: ${recreateIfExists} replaces it then.` : ''
  return errorWith(answer, (view) => toDo(view) + existing(view))
}

/** @param next - the rest of the message, which says what to do */
function errorWith(answer: Answer, next: Words): ApiError {
  const { details } = answer
  const what = answer.failure(reasonIn(answer).words)
  return worded(
    (view) => `${what}. ${next(view)}`.trim(),
    (message) => new ApiError(message, details),
  )
}

/** Does not keep the answer, whose body may be long. @param route - the setting of the route, if there is one */
function adviceAfter(
  { status, body, bodyComplete, intermediary, retryAfterMs }: Answer,
  route?: 'unsubscribeRoute' | 'updateRoute',
): Words {
  const isEmpty = body === '' && bodyComplete
  const when = retryAfterMs === undefined ? 'later' : `in ${Math.ceil(retryAfterMs / 1_000)} s`
  return (view) => {
    const { auth, seeBody, setting } = view
    const baseUrl = setting('baseUrl')
    const orRoute = route ? ` or ${view[route]}` : ''
    if (isRedirect(status))
      return `Redirects are not followed: set ${baseUrl}${orRoute} to the final address.`
    if (intermediary !== undefined) {
      return intermediaryAdvice(intermediary, 'subscriptions and credentials', baseUrl)
    }
    if (route && isNoRoute(status)) return `The service may have another route for this: see ${view[route]}.`
    if (isUnauthorized(status)) {
      return `The service does not accept the credentials: check ${auth}, and that access was activated.`
    }
    if (isForbidden(status)) return 'The service does not permit this: ask its operator for access.'
    if (isNotFound(status)) return `Check ${baseUrl}: there is no subscription service at this address.`
    if (isTooLarge(status)) return 'Send less: fewer users, or shorter parameters, headers or token.'
    if (isBusy(status)) return `The service is busy: try again ${when}.`
    if (isOutcomeOpen(status)) return 'The service failed: try again later.'
    if (isServerError(status)) {
      return `Another attempt will not help: check ${baseUrl}${orRoute}, or ask the operator of the service.`
    }
    return isEmpty ? 'The answer has no body.' : seeBody.trim()
  }
}

/** The error for a success with a page of HTML or XML, or with an error in JSON: neither comes from the service. */
export function falseSuccess(answer: Answer): ResponseValidationError | undefined {
  const hasPage = isPage(answer.body)
  if (!hasPage && !saysError(answer.body)) return undefined
  const what = hasPage ? 'a page of HTML or XML' : 'an error'
  const { words } = reasonIn(answer)
  const next = ({ seeBody, setting }: View) =>
    hasPage
      ? `which is not from the service, but perhaps from a login or a proxy. Check ${setting('baseUrl')}, and the network in between.`
      : `so nothing proves that it was done.${seeBody}`
  const beginning = `${answer.failure()} with ${what} (${words})`
  return unusableAnswer(answer, (view) => `${beginning}, ${next(view)}`, [
    { path: [], message: `is ${what}` },
  ])
}

/** Whether JSON says that something failed: some gateways answer everything with 200. */
function saysError(body: string): boolean {
  const { error, errors, fault, ok, success } = Object(parseJson(body))
  return Boolean(error || fault) || Object.keys(Object(errors)).length > 0 || [ok, success].includes(false)
}

export function noUsableId(answer: Answer, issues: readonly Issue[]): ResponseValidationError {
  const isEmpty = answer.body === ''
  const unusable = `with a body that holds no usable subscription_id (${formatIssues(issues)})`
  const what = `The service answered ${answer.status} ${isEmpty ? 'without a body' : unusable}.`
  return unusableAnswer(
    answer,
    ({ recreateIfExists, seeBody }) =>
      `${what}${isEmpty ? '' : seeBody} A subscription probably exists now: ` +
      `creating again with ${recreateIfExists} replaces the subscription and returns its id.`,
    issues,
  )
}

export function conflictError(
  answer: Answer,
  request: SubscriptionRequestSummary,
): SubscriptionConflictError {
  const { callbackUrl, notificationTypes, recreateIfExists, usernames } = request
  // With recreateIfExists the service would have replaced an identical subscription: this one overlaps in part.
  const reason = recreateIfExists ? 'partial-overlap' : 'duplicate-or-overlap'
  const more = usernames.length > 3 ? ` and ${usernames.length - 3} more` : ''
  const details = { ...answer.details, reason, request } as const
  const wanted = `${notificationTypes.join(', ')} for ${usernames.slice(0, 3).join(', ')}${more} to ${callbackUrl}`
  return worded(
    (view) =>
      recreateIfExists
        ? `An existing subscription covers part of ${wanted}, and ${view.recreateIfExists} replaces only an identical one. ` +
          'Nothing was created or deleted. Unsubscribe the existing subscription first, by the id in its deliveries, or ' +
          'leave out the users and types that it covers, or use another callback URL.'
        : `An existing subscription covers ${wanted}, wholly or in part. Nothing was created. ` +
          `If the existing one is identical, ${view.recreateIfExists} replaces it and returns the new id. ` +
          'If that fails with 409, too, the existing one overlaps only in part: unsubscribe it first, by the id in its deliveries.',
    (message) => new SubscriptionConflictError(message, details),
  )
}
