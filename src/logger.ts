/** Structured log lines, without secrets. */
import { callSafely } from './shared/calls.js'

/**
 * A log with the shape of `console` and pino: each method takes fields, then a message. Fields and messages never
 * hold a credential, a token or a parameter value.
 */
export interface Logger {
  /** One line for each request that was answered, and for each delivery. */
  debug(fields: object, message: string): void
  /** Ordinary events: a token was obtained, a request will be repeated. */
  info(fields: object, message: string): void
  /** Possible problems: a request got no answer, a callback was refused, a store failed. */
  warn(fields: object, message: string): void
  /** Problems that need a person: a handler failed, a body is no delivery. */
  error(fields: object, message: string): void
}

/** Writes a line. Never throws, because a broken log must not break a call. */
export type Log = (level: keyof Logger, fields: LogFields, message: string) => void

/** Every line has the name of its event (docs/observability.md, Events). */
export interface LogFields {
  readonly event: string
  readonly [field: string]: unknown
}

/** A log that writes to the caller's logger, if there is one. Errors of the logger are ignored: nothing could report them. */
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
 * For losses, such as a lost notification: logs to the caller's logger, or to `console.error` if the option was left out.
 * `false` turns both off. Only for lines whose callback, such as `onInvalid`, was not given or failed.
 */
export function lossLogOf(logger: Logger | false | undefined): Log {
  return logOf(logger ?? { debug: logToConsole, info: logToConsole, warn: logToConsole, error: logToConsole })
}

function logToConsole(fields: object, message: string): void {
  console.error(`notification-subscriber: ${message}`, fields)
}

const quietMs = 60_000

/**
 * As {@link lossLogOf}, for events that any sender or an outage can cause without limit: without a logger, at most one
 * line a minute, with the number of lines left out (`unreported`).
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
