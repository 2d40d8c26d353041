/** Payload schemas by type: which ones are accepted, and how a payload is read with them. */
import * as z from 'zod'
import type { Issue } from '../errors.js'
import { documentedPayloads } from '../notification-types.js'
import { messageOf } from '../shared/text.js'
import { issuesOf, ownMessages } from '../shared/validation.js'
import type { PayloadSchemas } from './schemas.js'

/** The schema of the option `payloads`, made when options are validated, so that parsing alone does not pay for it. */
export function payloadsSchema() {
  const schema = z.custom(
    (value) => typeof Object(value)['~standard']?.validate === 'function',
    'must be a Standard Schema, such as one of zod, valibot or arktype',
  )
  return z.record(z.string(), schema, 'must be an object of schemas by notification type')
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

const payloadPath = ['notification', 'payload']

const documentedReaders = Object.entries(documentedPayloads).map(([type, { schema }]) => {
  const issuesOfPayload = issueFinder(schema, payloadPath)
  return { type, read: (payload: unknown) => ({ payload, issues: issuesOfPayload(payload) }) }
})

/**
 * Makes a function that finds what is wrong with a value. The schema is synchronous and has no transforms, so the value itself
 * is the result. Where code generation is not allowed, zod runs the schema uncompiled.
 */
export function issueFinder(
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
  return (payload) => {
    try {
      const result = schema['~standard'].validate(payload)
      if (result instanceof Promise) {
        result.catch(() => {})
        throw new TypeError('it returned a promise')
      }
      if (!result.issues) return { payload: result.value }
      const issues = result.issues.map(({ message, path = [] }) => ({
        path: [...payloadPath, ...path.map((key) => (typeof key === 'object' ? key.key : key))],
        message,
      }))
      return { issues }
    } catch (cause) {
      const message = `the schema for "${type}" is asynchronous or failed (${messageOf(cause)})`
      return { issues: [{ path: payloadPath, message }], cause }
    }
  }
}
