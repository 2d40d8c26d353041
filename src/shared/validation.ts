/** Values from outside: JSON, and validation by zod with its problems as the `issues` of an error and as text. */
import * as z from 'zod'
import { en } from 'zod/locales'
import { toDotPath } from 'zod/v4/core'
import { ConfigurationError, InvalidRequestError, type Issue } from '../errors.js'
import { excerpt } from './text.js'

/** The value of a JSON text; `undefined` for any other text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Decodes form encoding, in which a space is a plus sign; `undefined` if the text is not encoded so. */
export function decodeFormComponent(text: string): string | undefined {
  try {
    // Seven times as fast as `replaceAll` if there are many plus signs.
    return decodeURIComponent(text.split('+').join(' '))
  } catch {
    return undefined
  }
}

/** An id in text, as a number is spelled: `007` may be another id than 7. */
export const numericIdPattern = /^(?:0|-?[1-9]\d{0,15})$/

/** The number that is meant by an id in text; any other value unchanged. */
export function numericId(id: unknown): unknown {
  return typeof id === 'string' && numericIdPattern.test(id) ? Number(id) : id
}

const shownIssues = 5

/** Every error of this package about an invalid value comes from here. @throws what `invalid` makes of the issues */
export function validate<Output>(
  schema: z.ZodType<Output>,
  value: unknown,
  invalid: (issues: readonly Issue[]) => Error,
): Output {
  const result = schema.safeParse(value, ownMessages)
  if (result.success) return result.data
  throw invalid(issuesOf(result.error))
}

type ErrorFor<Made> = (issues: readonly Issue[], options?: { cause?: unknown }) => Made

/** For invalid options, variables and arguments of a constructor. @param what - what cannot be made or started */
export function configurationError(what: string): ErrorFor<ConfigurationError> {
  return (issues, options) => new ConfigurationError(`${what}: ${formatIssues(issues)}.`, { issues }, options)
}

/** For invalid arguments of a call. @param what - what was not done */
export function invalidRequest(what: string): ErrorFor<InvalidRequestError> {
  return (issues, options) =>
    new InvalidRequestError(`${what}: ${formatIssues(issues)}.`, { issues }, options)
}

/**
 * Zod's issues without its internals, and without the values, which may be secrets.
 *
 * @param error - of a parse with {@link ownMessages}
 * @param below - the path of the value that was parsed
 */
export function issuesOf(error: z.core.$ZodError, below: Issue['path'] = []): Issue[] {
  return error.issues.map(({ message, path }) => ({
    path: [...below, ...path],
    message: message.replace(/^(?:Invalid (?:input|option)|Too (?:small|big)): /, ''),
  }))
}

/** The first few issues on one line of bounded length: `` `usernames[1]` must not be empty; and 7 more ``. */
export function formatIssues(issues: readonly Issue[]): string {
  const shown = issues.slice(0, shownIssues).map(sentenceOf)
  if (issues.length > shownIssues) shown.push(`and ${issues.length - shownIssues} more`)
  return shown.join('; ')
}

/** A message that begins with one of these verbs follows the path directly; before any other is a colon. */
const beginsWithVerb = /^(?:is|are|has|must|cannot|contains|names|belongs|and) /

function sentenceOf({ path, message }: Issue): string {
  return path.length === 0
    ? excerpt(message, 500)
    : sentenceAbout(`\`${excerpt(toDotPath(path), 150)}\``, message)
}

/** The message of an issue as a whole sentence. */
export function sentenceAbout(subject: string, message: string): string {
  return `${subject}${beginsWithVerb.test(message) ? '' : ':'} ${excerpt(message, 500)}`
}

const { localeError } = en()

/** The options of every parse: zod's English words, because an app's `z.config()` might quote the value in its own. */
export const ownMessages = {
  error: (issue: z.core.$ZodRawIssue) =>
    issue.code === 'unrecognized_keys' ? unknownNames(issue) : localeError(issue),
}

const shownNames = 5

type UnknownNames = Extract<z.core.$ZodRawIssue, { code: 'unrecognized_keys' }>

/** The first unknown names, and all known ones. */
function unknownNames({ keys, inst, path = [] }: UnknownNames): string {
  const { shape = {} }: { shape?: object } = Object(inst?._zod.def)
  const quoted = (names: readonly string[]) => names.map((name) => `\`${excerpt(name, 100)}\``).join(', ')
  const known = Object.keys(shape)
  const more = keys.length > shownNames ? `, ${keys.length - shownNames} more` : ''
  const list = known.length > 0 ? ` (known: ${quoted(known)})` : ''
  return `${path.length === 0 ? '' : 'has '}unknown ${quoted(keys.slice(0, shownNames))}${more}${list}`
}

/** Arguments of `refine`, for a text or an address: the issue is the problem that is found, if there is one. */
export function issueFrom(problemOf: (text: string) => string | undefined) {
  const isUsable = (value: string | URL) => problemOf(String(value)) === undefined
  return [isUsable, { error: ({ input }: { readonly input?: unknown }) => problemOf(String(input)) }] as const
}

/** An object with these methods; `what` says what it must be. */
export function objectWith<Given = unknown>(methods: readonly string[], what: string) {
  return z.custom<Given>((value) => hasMethods(value, methods), `must be ${what}`)
}

export function functionFor<Given>(what: string) {
  return z.custom<Given>((value) => typeof value === 'function', `must be ${what}`)
}

/** The option `logger`: one, or `false` for none. */
export function loggerSchema<Given = unknown>() {
  return z
    .custom<Given>(
      (value) => value === false || hasMethods(value, ['debug', 'info', 'warn', 'error']),
      'must be a logger with debug, info, warn and error, or false',
    )
    .refine(
      (value) => !takesTextFirst(value),
      'takes a text first, as winston does, so events and errors would be lost: wrap it, see "Loggers" in docs/observability.md',
    )
}

/** Whether a logger is winston's, which has fields that no other logger has. */
function takesTextFirst(logger: unknown): boolean {
  const { exceptions, transports } = Object(logger)
  return exceptions !== undefined && transports !== undefined
}

/** By shape, not by `instanceof`: a signal may come from another realm or a polyfill. */
export function abortSignalSchema() {
  return z.custom<AbortSignal>(
    (value) => typeof Object(value).aborted === 'boolean' && hasMethods(value, ['addEventListener']),
    'must be an AbortSignal',
  )
}

function hasMethods(value: unknown, methods: readonly string[]): boolean {
  return methods.every((method) => typeof Object(value)[method] === 'function')
}
