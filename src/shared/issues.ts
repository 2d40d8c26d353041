/** Problems found by zod, as the `issues` of an error and as text for a person. */
import type * as z from 'zod'
import { toDotPath } from 'zod/v4/core'
import type { Issue, NotificationError } from '../errors.js'
import { excerpt } from './excerpt.js'
import { inOurWords } from './wording.js'

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
  const result = schema.safeParse(value, inOurWords)
  if (result.success) return result.data
  const issues = issuesOf(result.error)
  throw refuse(issues, formatIssues(issues))
}

/**
 * Zod's issues without its internals, and without the values, which may be secrets.
 *
 * @param error - of a check that was made {@link inOurWords}
 * @param below - is put before each path
 */
export function issuesOf(error: z.core.$ZodError, below: Issue['path'] = []): Issue[] {
  return error.issues.map((issue) => ({
    path: [...below, ...issue.path],
    message:
      'input' in issue && issue.input === undefined
        ? issue.message.replace(/^must be /, 'is missing: it must be ')
        : issue.message.replace(/^Invalid input: /, ''),
  }))
}

/** The first few issues on one line of bounded length: `` `usernames[1]` must not be empty; and 7 more ``. */
export function formatIssues(issues: readonly Issue[]): string {
  const shown = issues.slice(0, shownIssues).map(sentenceOf)
  if (issues.length > shownIssues) shown.push(`and ${issues.length - shownIssues} more`)
  return shown.join('; ')
}

/** How messages of this package begin, which go on after the place. One of a user's schema stands after a colon. */
const goesOn = /^(?:is|are|has|must|cannot|contains|names|belongs|and) /

function sentenceOf({ path, message }: Issue): string {
  const words = excerpt(message, 300)
  if (path.length === 0) return words
  return `\`${excerpt(toDotPath(path), 150)}\`${goesOn.test(message) ? '' : ':'} ${words}`
}
