/** Compiles each schema once, when it is first needed. */
import * as z from 'zod'

const compiledSchemas = new WeakMap<z.ZodType, z.ZodType>()

export function compileOnce<Schema extends z.ZodType>(schema: Schema): Schema {
  const known = compiledSchemas.get(schema)
  if (known !== undefined) return known as Schema
  const made = z.compile(schema instanceof z.ZodLazy ? schema.unwrap() : schema)
  compiledSchemas.set(schema, made as z.ZodType)
  return made as Schema
}
