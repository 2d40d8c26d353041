/** Problems found by zod, as the `issues` of an error and as text for a person. */
import type * as z from 'zod'
import { toDotPath } from 'zod/v4/core'
import type { Issue, NotificationError } from '../errors.js'
import { excerpt } from './excerpt.js'

const shownIssues = 5

/**
 * The value as the schema gives it out: the one way from zod's findings to an error of this package.
 *
 * @param refuse - makes the error from the issues, which are given as a list and as text
 * @throws the error that `refuse` makes
 */
export function validate<Output>(
  schema: z.ZodType<Output>,
  value: unknown,
  refuse: (issues: readonly Issue[], text: string) => NotificationError,
): Output {
  const result = schema.safeParse(value)
  if (result.success) return result.data
  const issues = issuesOf(result.error)
  throw refuse(issues, formatIssues(issues))
}

/** Zod's issues without its internals, and without the offending values, which may be secrets; `below` a path. */
export function issuesOf(error: z.core.$ZodError, below: Issue['path'] = []): Issue[] {
  return error.issues.map(({ path, message }) => ({
    path: [...below, ...path],
    message: message.replace(/^Invalid input: /, ''),
  }))
}

/** The first few issues on one line of bounded length: `usernames[1]: must not be empty; and 7 more`. */
export function formatIssues(issues: readonly Issue[]): string {
  const shown = issues.slice(0, shownIssues).map(sentenceOf)
  if (issues.length > shownIssues) shown.push(`and ${issues.length - shownIssues} more`)
  return shown.join('; ')
}

function sentenceOf({ path, message }: Issue): string {
  return (path.length > 0 ? `${excerpt(toDotPath(path), 150)}: ` : '') + excerpt(message, 300)
}
