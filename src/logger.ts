/** What the client tells a log: one structured line per request, retry, refresh and failure, without secrets. */
import { callSafely } from './shared/call-safely.js'

/**
 * A log in the shape of `console` and of pino: each method takes fields, then a message.
 * Silent by default.
 */
export interface Logger {
  /** Every request that was answered. */
  debug(fields: object, message: string): void
  /** A token was obtained, a request will be repeated. */
  info(fields: object, message: string): void
  /** A request got no answer, a callback was refused, a token cache failed. */
  warn(fields: object, message: string): void
  /** What somebody should look at: a handler that failed, a body that is no delivery. */
  error(fields: object, message: string): void
}

/** Writes a line: a broken log must not break a call. */
export type Log = (level: keyof Logger, fields: object, message: string) => void

/** Wraps a caller's logger, or none. What it throws is ignored: nowhere is left to report it. */
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
 * `console.error`. `false` silences both. Only for lines whose callback, such as `onInvalid`, was not given either.
 */
export function lossLogOf(logger: Logger | false | undefined): Log {
  if (logger !== undefined) return logOf(logger)
  return (_level, fields, message) => console.error(`notification-subscriber: ${message}`, fields)
}
