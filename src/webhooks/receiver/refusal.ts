/** Callbacks that are refused because they do not come from the service, and who is told of them. */
import { type Logger, logOf, lossLogOf } from '../../logger.js'

/** A request that was refused, as `onRefused` gets it. */
export interface RefusedCallback {
  /**
   * 401: a secret is missing, wrong or there twice; 405: the method is not POST; 413: the body is larger than
   * `maxBodyBytes`.
   */
  readonly status: 401 | 405 | 413
  /** Why the request was refused, for people; never holds a value of a header. */
  readonly reason: string
  /** With a 401: the name of the header that decided, as it stands in `secrets`. */
  readonly header?: string | undefined
}

const minIntervalMs = 60_000

/**
 * A line for each refusal to the caller's logger. Where none was given, at most one a minute to `console.error`:
 * strangers can cause any number of them.
 */
export function refusalLogOf(logger: Logger | false | undefined): (refused: RefusedCallback) => void {
  const message = 'Callback refused'
  if (logger !== undefined) {
    const log = logOf(logger)
    return (refused) => log('warn', refused, message)
  }
  const log = lossLogOf(logger)
  let isQuietUntil = Number.NEGATIVE_INFINITY
  let unreported = 0
  return (refused) => {
    const now = performance.now()
    if (now < isQuietUntil) {
      unreported += 1
      return
    }
    log('warn', unreported > 0 ? { ...refused, unreported } : refused, message)
    isQuietUntil = now + minIntervalMs
    unreported = 0
  }
}
