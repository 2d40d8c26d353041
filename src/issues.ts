/** Problems found by zod, as the `issues` of an error and as text for a person. */
import type { z } from 'zod'
import type { Issue } from './errors.js'

/** Zod's issues without its internals, and without the offending values, which may be secrets. */
export function issuesOf(error: z.core.$ZodError): Issue[] {
  return error.issues.map(({ path, message }) => ({ path, message }))
}

/** `usernames[1]: must not be empty; callbackUrl: …`. */
export function formatIssues(issues: readonly Issue[]): string {
  return issues
    .map(({ path, message }) => (path.length > 0 ? `${formatPath(path)}: ${message}` : message))
    .join('; ')
}

function formatPath(path: readonly PropertyKey[]): string {
  return path.reduce<string>((text, key) => {
    if (typeof key === 'string' && /^[A-Za-z_$][\w$]*$/.test(key)) return text === '' ? key : `${text}.${key}`
    return `${text}[${typeof key === 'string' ? JSON.stringify(key) : String(key)}]`
  }, '')
}
