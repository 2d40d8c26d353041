/** What the status of an answer says about the request. */

/** Whether the request was carried out. */
export function isSuccess(status: number): boolean {
  return status >= 200 && status <= 299
}

/** 429 and 503: the request was refused before it was processed, so repeating is safe for every method. */
export function isTurnedAway(status: number): boolean {
  return status === 429 || status === 503
}

/** Server errors that say that the request was not processed (RFC 9110 section 15.6, RFC 6585 section 6). */
const unprocessed: readonly number[] = [501, 503, 505, 511]

/**
 * Whether the outcome is unknown: after every other server error. Proxies also have own statuses, such as 520 to 527 and
 * 599, some of them for a lost answer.
 */
export function isOutcomeOpen(status: number): boolean {
  return status >= 500 && !unprocessed.includes(status)
}

/** Whether the status may mean that the subscription does not exist. From any server it may mean an unknown path. */
export function isNotFound(status: number): boolean {
  return status === 404 || status === 410
}
