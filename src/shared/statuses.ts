/** What each HTTP status means (RFC 9110 section 15; docs/service.md, Errors). No other file compares a status with a number. */

/** Whether a value is a status at all. */
export function isStatus(status: number): boolean {
  return Number.isInteger(status) && status >= 100
}

/** 1xx: the final answer follows. */
export function isInterim(status: number): boolean {
  return status < 200
}

/** Whether the request was carried out. */
export function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299
}

/** 200: a token was issued, or a proxy has made a tunnel. */
export function isOk(status: number): boolean {
  return status === 200
}

/** 201: a subscription was created. */
export function isCreated(status: number): boolean {
  return status === 201
}

/** Answers with these statuses have no body. */
export function isBodiless(status: number): boolean {
  return [204, 205, 304].includes(status)
}

export function isRedirect(status: number): boolean {
  return status >= 300 && status <= 399
}

/** 401: the credentials are not accepted. */
export function isUnauthorized(status: number): boolean {
  return status === 401
}

/** 403: the credentials do not permit this. */
export function isForbidden(status: number): boolean {
  return status === 403
}

/** 401 and 403: the answer is about the credentials. */
export function isAboutCredentials(status: number): boolean {
  return isUnauthorized(status) || isForbidden(status)
}

/** 400, 401 and 403 of a token endpoint: client ID, secret or domain are refused (RFC 6749 section 5.2). */
export function isTokenRefused(status: number): boolean {
  return status === 400 || isAboutCredentials(status)
}

/** 403 and 407 of a proxy: it makes no tunnel for this client. */
export function isProxyRefusal(status: number): boolean {
  return status === 407 || isForbidden(status)
}

/** 404: nothing is at this address. */
export function isAbsent(status: number): boolean {
  return status === 404
}

/** Whether the status may mean that the subscription does not exist. From any server it may mean an unknown path. */
export function isNotFound(status: number): boolean {
  return status === 410 || isAbsent(status)
}

/** 405: the route does not take the method. */
export function isWrongMethod(status: number): boolean {
  return status === 405
}

/** Whether the service has another route for the operation: method not allowed, not implemented, or a redirect. */
export function isNoRoute(status: number): boolean {
  return status === 501 || isWrongMethod(status) || isRedirect(status)
}

/** 409 on create: a subscription is in the way. */
export function isConflict(status: number): boolean {
  return status === 409
}

/** 400, 409 and 422: the service refuses the fields of the request. */
export function isInvalidInput(status: number): boolean {
  return status === 400 || status === 422 || isConflict(status)
}

/** 400, 413 and 415 of a receiver: the body was refused before the receiver had it. */
export function isBodyRefused(status: number): boolean {
  return [400, 413, 415].includes(status)
}

/** 429 and 503: the request was refused before it was processed, so repeating is safe for every method. */
export function isBusy(status: number): boolean {
  return status === 429 || status === 503
}

/** From 400 on. */
export function isError(status: number): boolean {
  return status >= 400
}

export function isServerError(status: number): boolean {
  return status >= 500
}

/** Server errors that say that the request was not processed (RFC 9110 section 15.6, RFC 6585 section 6). */
const unprocessed: readonly number[] = [501, 503, 505, 511]

/**
 * Whether the outcome is unknown: after every other server error. Proxies also have own statuses, such as 520 to 527 and
 * 599, some of them for a lost answer.
 */
export function isOutcomeOpen(status: number): boolean {
  return isServerError(status) && !unprocessed.includes(status)
}

/** Whether the status shows how the service treats the request: not its load, its state or the credentials. */
export function isAboutRequest(status: number): boolean {
  return (!isServerError(status) || status === 501) && ![401, 403, 408, 429].includes(status)
}
