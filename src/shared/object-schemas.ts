/** Schemas of objects that are known by their methods: a logger, a store, a parser, whatever class they are of. */
import * as z from 'zod'

/** An object with these methods; `what` says what it must be. */
export function objectWith<Given = unknown>(methods: readonly string[], what: string) {
  return z.custom<Given>((value) => hasMethods(value, methods), `must be ${what}`)
}

/** The option `logger`: one, or `false` for none. */
export function loggerSchema<Given = unknown>() {
  return z.custom<Given>(
    (value) => value === false || hasMethods(value, ['debug', 'info', 'warn', 'error']),
    'must be a logger with debug, info, warn and error, or false',
  )
}

/** By shape and not by `instanceof`: a signal may come from another realm, or from a polyfill. */
export function abortSignalSchema() {
  return z.custom<AbortSignal>(
    (value) => typeof Object(value).aborted === 'boolean' && hasMethods(value, ['addEventListener']),
    'must be an AbortSignal',
  )
}

function hasMethods(value: unknown, methods: readonly string[]): boolean {
  return methods.every((method) => typeof Object(value)[method] === 'function')
}
