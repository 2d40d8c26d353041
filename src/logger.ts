/** Structured log lines, without secrets. */

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
  return async (level, fields, message) => {
    try {
      if (logger) await logger[level](fields, message)
    } catch {}
  }
}

/**
 * For losses, such as a lost notification: logs to the caller's logger, or to `console.error` if the option was left out.
 * `false` turns both off. Only for lines whose callback, such as `onInvalid`, was not given or failed.
 */
export function consoleLogOf(logger: Logger | false | undefined): Log {
  return logOf(logger ?? { debug: logToConsole, info: logToConsole, warn: logToConsole, error: logToConsole })
}

function logToConsole(fields: object, message: string): void {
  console.error(`notification-subscriber: ${message}`, fields)
}

/** Calls a user's function at once, and resolves when its result is settled. Never rejects: an error is logged. */
export async function callLogged(
  log: Log,
  failure: LogFields,
  message: string,
  call: () => unknown,
): Promise<void> {
  try {
    await call()
  } catch (err) {
    log('error', { ...failure, err }, message)
  }
}

const quietMs = 60_000

/**
 * As {@link consoleLogOf}, for events that any sender or an outage can cause without limit: without a logger, at most one
 * line a minute, with the number of lines left out (`unreported`).
 */
export function sparseConsoleLogOf(logger: Logger | false | undefined): Log {
  const log = consoleLogOf(logger)
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
