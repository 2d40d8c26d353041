/** What the package tells a log: structured lines, without secrets. */
import { callSafely } from './shared/call-safely.js'

/**
 * A log in the shape of `console` and of pino: each method takes fields, then a message. Neither ever holds a
 * credential, a token or a parameter value.
 */
export interface Logger {
  /** For every request that was answered, and every delivery. */
  debug(fields: object, message: string): void
  /** For what is worth knowing: a token was obtained, a request will be repeated. */
  info(fields: object, message: string): void
  /** For what may be a trouble: a request got no answer, a callback was refused, a store failed. */
  warn(fields: object, message: string): void
  /** For what somebody should look at: a handler failed, a body is no delivery. */
  error(fields: object, message: string): void
}

/** Writes a line. Never throws, because a broken log must not break a call. */
export type Log = (level: keyof Logger, fields: object, message: string) => void

/** Wraps a caller's logger, or none. What the logger throws is ignored: there is no place left to report it. */
export function logOf(logger: Logger | false | undefined): Log {
  return (level, fields, message) => {
    if (!logger) return
    callSafely(
      () => logger[level](fields, message),
      () => {},
    )
  }
}

/**
 * For what must not go unheard, such as a lost notification: to the caller's logger, and where none was given to
 * `console.error`. `false` silences both. Only for lines whose callback, such as `onInvalid`, was not given or failed.
 */
export function lossLogOf(logger: Logger | false | undefined): Log {
  if (logger !== undefined) return logOf(logger)
  return (_level, fields, message) => console.error(`notification-subscriber: ${message}`, fields)
}

const quietMs = 60_000

/**
 * As {@link lossLogOf}, for what strangers or an outage can cause any number of times: without a logger, at most one
 * line a minute, with the number of those in between.
 */
export function sparseLossLogOf(logger: Logger | false | undefined): Log {
  const log = lossLogOf(logger)
  if (logger !== undefined) return log
  let isQuietUntil = Number.NEGATIVE_INFINITY
  let unreported = 0
  return (level, fields, message) => {
    const now = performance.now()
    if (now < isQuietUntil) {
      unreported += 1
      return
    }
    const shown = unreported > 0 ? { ...fields, unreported } : fields
    log(level, shown, `${message} (more within a minute are only counted)`)
    isQuietUntil = now + quietMs
    unreported = 0
  }
}
