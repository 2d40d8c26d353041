/** What the client tells a log: one structured line per request, retry, refresh and failure, without secrets. */

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

type Level = keyof Logger

/** A logger whose failures stay its own: a broken log must not break a call. */
export type SafeLogger = Readonly<Record<Level, (fields: object, message: string) => void>>

const ignore = () => {}

/** Wraps a caller's logger, or none. What it throws is ignored: nowhere is left to report it. */
export function safeLogger(logger: Logger | undefined): SafeLogger {
  const at = (level: Level) =>
    logger === undefined
      ? ignore
      : (fields: object, message: string) => contain(() => logger[level](fields, message), ignore)
  return { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') }
}

/** Calls a function of the caller's whose failure must not get out, now or later. */
export function contain(call: () => unknown, onFailure: (error: unknown) => void): void {
  try {
    const result = call()
    if (Object(result) === result) Promise.resolve(result).then(undefined, onFailure)
  } catch (error) {
    onFailure(error)
  }
}
