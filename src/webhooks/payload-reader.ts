/** From a zod schema to a function that reads a value with it: compiled once, on first use. */
import { z } from 'zod'
import { issuesOf } from '../issues.js'
import { messageOf } from '../text.js'
import { Failure, failure } from './failure.js'

/** Reads one value, or throws. */
export type Reader<T = unknown> = (value: unknown) => T

/** Where payloads stand in a body. */
export const payloadPath = ['notification', 'payload']

/**
 * Reads with a schema of this package: synchronous and without transforms, so that the value itself is the
 * result and nothing is built. Where code generation is not allowed zod runs the schema uncompiled.
 */
export function validatingReader<Schema extends z.core.$ZodType>(
  schema: Schema,
  path?: readonly string[],
): Reader<z.input<Schema>> {
  let compiled: Schema | undefined
  return (value) => {
    compiled ??= z.compile(schema)
    if (z.validate(compiled, value)) return value
    const { error } = z.safeParse(schema, value)
    throw error ? new Failure(issuesOf(error, path)) : failure('the body changed while it was read')
  }
}

/** Reads with a user's schema for the payload of `type`: the schema's output is the result. */
export function transformingReader(type: string, schema: z.core.$ZodType): Reader {
  let compiled: z.core.$ZodType | undefined
  return (payload) => {
    let result: z.core.util.SafeParseResult<unknown>
    try {
      compiled ??= compiledIfPossible(schema)
      result = z.safeParse(compiled, payload)
    } catch (cause) {
      const isAsync = cause instanceof z.core.$ZodAsyncError || cause instanceof z.ZodCompileAsyncError
      const problem = isAsync
        ? 'is asynchronous; a delivery is parsed synchronously'
        : `threw (${messageOf(cause)})`
      throw failure(`the payload schema for "${type}" ${problem}`, cause, payloadPath)
    }
    if (result.error) throw new Failure(issuesOf(result.error, payloadPath))
    return result.data
  }
}

/** Throws for a schema with an async function, which must never run: nothing would handle its rejection. */
function compiledIfPossible(schema: z.core.$ZodType): z.core.$ZodType {
  try {
    return z.compile(schema, { strict: true })
  } catch (error) {
    if (error instanceof z.ZodCompileAsyncError) throw error
    return schema
  }
}
