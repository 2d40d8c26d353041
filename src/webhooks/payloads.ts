/** Payload schemas by type: which ones are accepted, and how a payload is read with them. */
import * as z from 'zod'
import type { Issue } from '../errors.js'
import { documentedPayloads } from '../notification-types.js'
import { messageOf } from '../shared/text.js'
import { issuesOf, ownMessages } from '../shared/validation.js'
import { anyDeliverySchema, type PayloadSchemas } from './schemas.js'

/** The schema of the option `payloads`, made when options are checked, so that parsing alone does not cost it. */
export function payloadsSchema() {
  const schema = z.unknown().superRefine((value, context) => {
    const message = schemaProblem(Object(value))
    if (message !== undefined) context.addIssue({ code: 'custom', message })
  })
  return z.record(z.string(), schema, 'must be an object of schemas by notification type')
}

/** A schema may still turn out to be asynchronous later: see {@link readerOf}. */
function schemaProblem(schema: PayloadSchemas[string]): string | undefined {
  if (typeof schema['~standard']?.validate !== 'function') {
    return 'must be a Standard Schema, such as one of zod, valibot or arktype'
  }
  try {
    if (isOwnZodSchema(schema)) z.compile(schema, { strict: true })
    // One call. Zod 3 also answers what a schema throws with a promise.
    else if (schema['~standard'].vendor !== 'zod') standardReader(schema)({})
  } catch (error) {
    if (error instanceof z.ZodCompileAsyncError || error instanceof AsynchronousError) {
      return 'must be synchronous, because a callback is parsed before it is answered: await in the handler instead'
    }
  }
  return undefined
}

/** By the mark of zod 4, classic and mini. Not by `instanceof`, because the user's zod may be another copy. */
function isZodSchema(schema: object): schema is z.core.$ZodType {
  return '_zod' in schema
}

/** Whether a schema may be compiled: the compiler knows only the schemas of its own version. */
function isOwnZodSchema(schema: object): schema is z.core.$ZodType {
  const versionOf = ({ _zod }: z.core.$ZodType) => Object.values(_zod.version).join('.')
  return isZodSchema(schema) && versionOf(schema) === versionOf(anyDeliverySchema)
}

/** Reads a payload of one type: returns the parsed payload, or what is wrong with it. */
type PayloadReader = (payload: unknown) => {
  readonly payload?: unknown
  readonly issues?: readonly Issue[] | undefined
  readonly cause?: unknown
}

/** The readers of the types whose payloads are known, as a list: the first of a type counts. */
export function payloadReaders(payloads: PayloadSchemas): readonly { type: string; read: PayloadReader }[] {
  const own = Object.entries(payloads).map(([type, schema]) => ({ type, read: readerOf(type, schema) }))
  return [...own, ...documentedReaders]
}

/** The path of payloads in a body. */
const payloadPath = ['notification', 'payload']

const documentedReaders = Object.entries(documentedPayloads).map(([type, { schema }]) => {
  const issuesOfPayload = checkOf(schema, payloadPath)
  return { type, read: (payload: unknown) => ({ payload, issues: issuesOfPayload(payload) }) }
})

/**
 * Makes a check from a schema of this package: synchronous and without transforms, so that the value itself is the
 * result and nothing is built. Where code generation is not allowed, zod runs the schema uncompiled.
 */
export function checkOf(
  schema: z.core.$ZodType,
  path?: readonly string[],
): (value: unknown) => Issue[] | undefined {
  let compiled: z.core.$ZodType | undefined
  return (value) => {
    compiled ??= z.compile(schema)
    const error = z.validate(compiled, value) ? undefined : z.safeParse(schema, value, ownMessages).error
    return error && issuesOf(error, path)
  }
}

/** Makes a reader from a user's schema for the payload of `type`: the schema's output is the result. */
function readerOf(type: string, schema: PayloadSchemas[string]): PayloadReader {
  const read = isZodSchema(schema) ? zodReader(schema) : standardReader(schema)
  return (payload) => {
    try {
      return read(payload)
    } catch (cause) {
      const message = `the schema for "${type}" is asynchronous or failed (${messageOf(cause)})`
      return { issues: [{ path: payloadPath, message }], cause }
    }
  }
}

/** Not by the standard: with that, zod answers what a transform throws with a promise, as if it were asynchronous. */
function zodReader(schema: z.core.$ZodType): PayloadReader {
  let compiled: z.core.$ZodType | undefined
  return (payload) => {
    compiled ??= isOwnZodSchema(schema) ? z.compile(schema) : schema
    const { data, error } = z.safeParse(compiled, payload, ownMessages)
    return { payload: data, issues: error && issuesOf(error, payloadPath) }
  }
}

class AsynchronousError extends TypeError {}

function standardReader(schema: PayloadSchemas[string]): PayloadReader {
  return (payload) => {
    const result = schema['~standard'].validate(payload)
    if ('then' in result) {
      result.catch(() => {})
      throw new AsynchronousError('it returned a promise')
    }
    if (!result.issues) return { payload: result.value }
    const issues = result.issues.map(({ message, path = [] }) => ({
      path: [...payloadPath, ...path.map((key) => (typeof key === 'object' ? key.key : key))],
      message,
    }))
    return { issues }
  }
}
