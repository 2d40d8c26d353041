/**
 * Zod as the mutation tests see it: what is behind `z.lazy` is built once for each test, not once for all. Stryker
 * runs the tests that reach a mutant; a schema built once would be reached by the first test alone.
 */
import * as zod from 'zod/v4'

export * from 'zod/v4'

let test = 0

export function beginTest(): void {
  test++
}

export function lazy<Schema extends zod.ZodType>(build: () => Schema): zod.ZodLazy<Schema> {
  const schema = zod.lazy(build)
  let built: Schema | undefined
  let builtFor: number | undefined
  Object.defineProperty(schema._zod, 'innerType', {
    get() {
      if (builtFor !== test) {
        builtFor = test
        built = build()
      }
      return built
    },
  })
  return schema
}

/** Compiled, a schema would keep what is behind it. */
export function compile<Schema>(schema: Schema): Schema {
  return schema
}

export const z = { ...zod, lazy, compile }
