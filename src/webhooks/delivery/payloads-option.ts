/** The option `payloads` of the parser and of the receiver. */
import * as z from 'zod'

/** The schema of `payloads`. Made when options are checked: parsing deliveries alone does not pay for it. */
export function payloadsOptionSchema() {
  return z.record(
    z.string(),
    z.custom(isZodSchema, 'must be a zod 4 schema'),
    'must be an object of zod schemas by notification type',
  )
}

/**
 * By zod 4's own mark, which classic and mini share and zod 3 does not have. Not by `instanceof`, because the user's zod
 * may be another copy.
 */
function isZodSchema(value: unknown): boolean {
  return typeof Object(value)._zod?.run === 'function'
}
