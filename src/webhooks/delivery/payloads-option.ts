/** The option `payloads` of the parser and of the receiver. */
import * as z from 'zod'

/** Made when it is needed: parsing deliveries alone needs none of it. */
export function payloadsOptionSchema() {
  return z.record(
    z.string(),
    z.custom(isZodSchema, 'expected a zod 4 schema'),
    'expected zod schemas by notification type',
  )
}

/**
 * By zod 4's own mark, which classic and mini share and zod 3 does not have. Not instanceof: the user's zod may be
 * another copy.
 */
function isZodSchema(value: unknown): boolean {
  return typeof Object(value)._zod?.run === 'function'
}
