/** Compiles each schema once, when it is first needed. */
import { z } from 'zod'

const compiledSchemas = new WeakMap<z.ZodType, z.ZodType>()

export function compiled<Schema extends z.ZodType>(schema: Schema): Schema {
  const known =
    compiledSchemas.get(schema) ?? z.compile(schema instanceof z.ZodLazy ? schema.unwrap() : schema)
  compiledSchemas.set(schema, known as z.ZodType)
  return known as Schema
}
