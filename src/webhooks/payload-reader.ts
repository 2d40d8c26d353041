/** From a zod schema to a function that reads a value with it: compiled once, on first use. */
import { z } from 'zod'
import { issuesOf } from '../issues.js'
import { messageOf } from '../text.js'
import { Failure, failure } from './failure.js'

/** Reads one value, or throws a `Failure` whose paths start at that value. */
export type Reader<T = unknown> = (value: unknown) => T

/**
 * Reads with a schema of this package: synchronous and without transforms, so that the value itself is the
 * result and nothing is built. Where code generation is not allowed zod runs the schema uncompiled.
 */
export function validatingReader<Schema extends z.core.$ZodType>(schema: Schema): Reader<z.input<Schema>> {
  let compiled: Schema | undefined
  return (value) => {
    compiled ??= z.compile(schema)
    if (z.validate(compiled, value)) return value
    const { error } = z.safeParse(schema, value)
    throw error ? new Failure(issuesOf(error)) : failure('the body changed while it was read')
  }
}

/** Reads with a user's schema for the payload of `type`: the schema's output is the result. */
export function transformingReader(type: string, schema: z.core.$ZodType): Reader {
  const asyncFailure = (cause: unknown) =>
    failure(`the payload schema for "${type}" is asynchronous; a delivery is parsed synchronously`, cause)
  const resultOf = (value: unknown) => {
    try {
      compilation ??= compilationOf(schema)
      if (compilation.asyncError) throw asyncFailure(compilation.asyncError)
      return z.safeParse(compilation.schema, value)
    } catch (cause) {
      if (Failure.is(cause)) throw cause
      if (cause instanceof z.core.$ZodAsyncError) throw asyncFailure(cause)
      throw failure(`the payload schema for "${type}" threw (${messageOf(cause)})`, cause)
    }
  }
  let compilation: Compilation | undefined
  return (value) => {
    const { data, error } = resultOf(value)
    if (error) throw new Failure(issuesOf(error))
    return data
  }
}

interface Compilation {
  readonly schema: z.core.$ZodType
  /** The schema has an async function. It is never run: a rejection of its promise would have no handler. */
  readonly asyncError?: Error
}

function compilationOf(schema: z.core.$ZodType): Compilation {
  try {
    return { schema: z.compile(schema, { strict: true }) }
  } catch (error) {
    return error instanceof z.ZodCompileAsyncError ? { schema, asyncError: error } : { schema }
  }
}
