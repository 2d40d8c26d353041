/** Checks what a caller gives to a method, before anything is sent. */
import type * as z from 'zod'
import { InvalidRequestError, type Issue } from '../errors.js'
import { compileOnce } from '../shared/compile-once.js'
import { formatIssues, issuesOf } from '../shared/issues.js'

/** @throws `InvalidRequestError` that lists everything that is wrong with the input. */
export function validated<Output, Input>(
  method: string,
  schema: z.ZodType<Output, Input>,
  input: Input,
): Output {
  const parsed = compileOnce(schema).safeParse(input)
  if (parsed.success) return parsed.data
  throw invalidRequest(method, issuesOf(parsed.error))
}

export function invalidRequest(method: string, issues: readonly Issue[]): InvalidRequestError {
  return new InvalidRequestError(`${method} sent nothing: ${formatIssues(issues)}.`, { issues })
}
