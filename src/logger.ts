/** Structured log lines, without secrets. */
import { excerpt, wholeMessageOf, withoutPasswords } from './shared/text.js'

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

/** Writes a line. Never throws: a broken log must not break a call. A field's function is called only if there is a logger. */
export type Log = (level: keyof Logger, fields: LogFields, message: string) => void

/** Every line has the name of its event (docs/observability.md, Events). */
export interface LogFields {
  readonly event: string
  readonly [field: string]: unknown
}

/** A log that writes to the caller's logger, if there is one. Errors of the logger are ignored: nothing could report them. */
export function logOf(logger: Logger | false | undefined): Log {
  if (!logger) return () => {}
  return async (level, fields, message) => {
    try {
      const shown = Object.entries(fields).map(([name, field]) => {
        if (name === 'err') return [name, describeError(field)]
        return [name, withShortTexts(typeof field === 'function' ? field() : field)]
      })
      const given = shown.filter(([, value]) => value !== undefined)
      await logger[level](Object.fromEntries(given), excerpt(message, maxTextLength))
    } catch {}
  }
}

/** The longest text in a line: names come from senders, rosters and stores. */
const maxTextLength = 1_000

function withShortTexts(value: unknown): unknown {
  if (typeof value === 'string') return value.length > maxTextLength ? excerpt(value, maxTextLength) : value
  if (Array.isArray(value)) return value.map(withShortTexts)
  if (typeof value !== 'object' || value === null || value instanceof Date) return value
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, withShortTexts(field)]))
}

/** What a line has of an error, as `err`. */
interface ErrorDescription {
  readonly name: string
  readonly message: string
  readonly code?: string | number
  readonly stack?: string
  readonly cause?: ErrorDescription
  /** The first five of an `AggregateError`. */
  readonly errors?: readonly ErrorDescription[]
}

/** An error and its causes. Their other properties stay out: libraries put passwords, requests and bodies into them. */
export function describeError(thrown: unknown, depth = 0): ErrorDescription {
  const [name, code, stack, cause, errors] = ['name', 'code', 'stack', 'cause', 'errors'].map((property) => {
    try {
      const value = Object(thrown)[property]
      return property === 'errors' && !Array.isArray(value) ? undefined : value
    } catch {
      return undefined
    }
  })
  // Shorter with each level, so that the line stays short.
  const textOf = (value: unknown, maxLength: number) =>
    typeof value === 'string' ? withoutPasswords(value, maxLength >> depth) : undefined
  const [shownCode, shownStack] = [typeof code === 'number' ? code : textOf(code, 100), textOf(stack, 8_000)]
  const describe = (each: unknown, further: number) => describeError(each, depth + further)
  const isDeepest = depth >= 4
  const description = {
    name: textOf(name, 100) ?? typeof thrown,
    message: wholeMessageOf(thrown, 2_000 >> depth),
    ...(shownCode !== undefined && { code: shownCode }),
    ...(shownStack !== undefined && { stack: shownStack }),
    ...(cause !== undefined && !isDeepest && { cause: describe(cause, 1) }),
    ...(errors !== undefined &&
      !isDeepest && { errors: errors.slice(0, 5).map((each: unknown) => describe(each, 3)) }),
  }
  // pino names the type of an error by its constructor, and by `name` if there is none.
  return Object.defineProperty(description, 'constructor', { value: undefined })
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

/** As {@link consoleLogOf}, for events that any sender can cause without limit: sparse without a logger. */
export function sparseConsoleLogOf(logger: Logger | false | undefined): Log {
  const log = consoleLogOf(logger)
  return logger === undefined ? sparse(log) : log
}

/** At most one line a minute for each event and reason, with the number of lines left out (`unreported`). */
export function sparse(log: Log): Log {
  const lastLines = new Map<string, { readonly nextFrom: number; unreported: number }>()
  return (level, fields, message) => {
    // Reasons are sentences of this package: there are few.
    const kind = `${fields.event} ${fields.reason}`
    const last = lastLines.get(kind)
    const now = performance.now()
    if (last && now < last.nextFrom) {
      last.unreported += 1
      return
    }
    const shown = last && last.unreported > 0 ? { ...fields, unreported: last.unreported } : fields
    log(level, shown, `${message} (more within a minute are only counted)`)
    lastLines.set(kind, { nextFrom: now + quietMs, unreported: 0 })
  }
}
