/** From a zod schema to a function that reads a value with it: compiled once, on first use. */
import * as z from 'zod'
import { messageOf } from '../../shared/excerpt.js'
import { issuesOf } from '../../shared/issues.js'
import { inOurWords } from '../../shared/wording.js'
import { Failure } from './failure.js'

/** Reads one value, or throws a {@link Failure}. */
export type Reader<T = unknown> = (value: unknown) => T

/** Where payloads stand in a body. */
export const payloadPath = ['notification', 'payload']

/**
 * Makes a reader from a schema of this package: synchronous and without transforms, so that the value itself is the
 * result and nothing is built. Where code generation is not allowed, zod runs the schema uncompiled.
 */
export function validatingReader<Schema extends z.core.$ZodType>(
  schema: Schema,
  path?: readonly string[],
): Reader<z.input<Schema>> {
  let compiled: Schema | undefined
  return (value) => {
    compiled ??= z.compile(schema)
    const error = z.validate(compiled, value) ? undefined : z.safeParse(schema, value, inOurWords).error
    if (error) throw new Failure(issuesOf(error, path))
    return value as z.input<Schema>
  }
}

/** Makes a reader from a user's schema for the payload of `type`: the schema's output is the result. */
export function transformingReader(type: string, schema: z.core.$ZodType): Reader {
  let compiled: z.core.$ZodType | undefined
  return (payload) => {
    let result: z.core.util.SafeParseResult<unknown>
    try {
      compiled ??= compiledIfPossible(schema)
      result = z.safeParse(compiled, payload, inOurWords)
    } catch (cause) {
      const message = `the schema for "${type}" is asynchronous or failed (${messageOf(cause)})`
      throw new Failure([{ path: payloadPath, message }], cause)
    }
    if (result.error) throw new Failure(issuesOf(result.error, payloadPath))
    return result.data
  }
}

/** @throws for a schema with an async function, which must never run, because nothing would handle its rejection */
function compiledIfPossible(schema: z.core.$ZodType): z.core.$ZodType {
  try {
    return z.compile(schema, { strict: true })
  } catch (error) {
    if (error instanceof z.ZodCompileAsyncError) throw error
    return schema
  }
}
