/** Checks what a caller gives to a method, before anything is sent. */
import type * as z from 'zod'
import { InvalidRequestError } from '../errors.js'
import { compileOnce } from '../shared/compile-once.js'
import { validate } from '../shared/issues.js'

/** @throws `InvalidRequestError` that lists everything that is wrong with the input */
export function validInput<Output>(method: string, schema: z.ZodType<Output>, input: unknown): Output {
  return validate(
    compileOnce(schema),
    input,
    (issues, text) => new InvalidRequestError(`${method} sent nothing: ${text}.`, { issues }),
  )
}
