/** Problems found by zod, as the `issues` of an error and as text for a person. */

import type * as z from 'zod'
import { toDotPath } from 'zod/v4/core'
import type { Issue } from '../errors.js'
import { excerpt } from './excerpt.js'

const shownIssues = 5

/** Zod's issues without its internals, and without the offending values, which may be secrets; `below` a path. */
export const issuesOf = (error: z.core.$ZodError, below: Issue['path'] = []): Issue[] => {
  return error.issues.map(({ path, message }) => ({
    path: [...below, ...path],
    message: message.replace(/^Invalid input: /, ''),
  }))
}

/** The first few issues on one line of bounded length: `usernames[1]: must not be empty; and 7 more`. */
export const formatIssues = (issues: readonly Issue[]): string => {
  const shown = issues.slice(0, shownIssues).map(sentenceOf)
  if (issues.length > shownIssues) shown.push(`and ${issues.length - shownIssues} more`)
  return shown.join('; ')
}

const sentenceOf = ({ path, message }: Issue) =>
  (path.length > 0 ? `${excerpt(toDotPath(path), 150)}: ` : '') + excerpt(message, 300)
