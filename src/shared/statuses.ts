/** What each HTTP status means (RFC 9110 section 15; docs/service.md, Errors). No other file compares a status with a number. */

type Meaning = (status: number) => boolean

// So that bundlers leave out what nothing uses.
/* @__NO_SIDE_EFFECTS__ */
const oneOf =
  (...statuses: readonly number[]): Meaning =>
  (status) =>
    statuses.includes(status)

/* @__NO_SIDE_EFFECTS__ */
const between =
  (first: number, last: number): Meaning =>
  (status) =>
    status >= first && status <= last

export const isStatus: Meaning = (status) => Number.isInteger(status) && between(100, 999)(status)

/** The final answer follows. */
export const isInterim = between(100, 199)

export const isSuccess = between(200, 299)

export const isOk = oneOf(200)

/**
 * Only the service answers so, and it has created something: pages of a login or a proxy have other statuses, such as 200.
 * With 200 here, such a page would become a subscription.
 */
export const provesCreate = oneOf(201)

export const isBodiless = oneOf(204, 205, 304)

export const isRedirect = between(300, 399)

export const isError: Meaning = (status) => status >= 400

export const isUnauthorized = oneOf(401)

export const isForbidden = oneOf(403)

/** The answer is about the credentials. */
export const isAboutCredentials = oneOf(401, 403)

/** Codes of OAuth for a failure of the server, which some token endpoints also answer with 400. */
const temporaryErrors = ['temporarily_unavailable', 'server_error', 'internal_failure']

/** A token endpoint refuses client ID, secret or domain (RFC 6749 section 5.2). */
export const isTokenRefused = (status: number, error = '') =>
  oneOf(400, 401, 403)(status) && !temporaryErrors.includes(error)

/** There is no such subscription, or nothing at this path. */
export const isNotFound = oneOf(404, 410)

export const isWrongMethod = oneOf(405)

/** The service has another route for the operation: method not allowed, not implemented, or a redirect. */
export const isNoRoute: Meaning = (status) => oneOf(405, 501)(status) || isRedirect(status)

/** A subscription is in the way of a create. */
export const isConflict = oneOf(409)

export const isInvalidInput = oneOf(400, 409, 422)

/** Something in front of the receiver refused the body of a callback. */
export const isBodyRefused = oneOf(400, 413, 415)

/** The request as a whole, its address or its headers are larger than the server allows. */
export const isTooLarge = oneOf(413, 414, 431)

/** The server has no time, or not yet: another attempt may succeed. */
export const isBusy = oneOf(408, 425, 429, 503)

export const isServerError: Meaning = (status) => status >= 500

/** Server errors of which each says that the request was not processed (RFC 9110 section 15.6, RFC 6585 section 6). */
const isUnprocessed = oneOf(501, 505, 511)

/**
 * The outcome is unknown: every other server error, and 408, by which platforms end work that takes too long. Proxies answer
 * 503, and statuses of their own, such as 520 to 527 and 599, also after they have forwarded the request.
 */
export const isOutcomeOpen: Meaning = (status) =>
  oneOf(408)(status) || (isServerError(status) && !isUnprocessed(status))
