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
export const logOf = (logger: Logger | undefined): Log => {
  return (level, fields, message) => {
    if (logger)
      callSafely(
        () => logger[level](fields, message),
        () => {},
      )
  }
}
