/** Authenticates callbacks, which have no signature, by secrets in their headers (docs/service.md, Authentication). */
import type { Issue } from '../errors.js'
import type { Log } from '../logger.js'
import { headerNameProblem, headerValueProblem } from '../shared/headers.js'
import { placeholderProblem } from '../shared/mistakes.js'
import { configurationError } from '../shared/validation.js'
import { type HeadersLike, headerOf, sentHeader } from './headers.js'

/**
 * Whether a request carries the right secrets: for a route without a receiver (docs/service.md, Authentication). Takes the
 * same time for all values.
 *
 * @param headers - a plain object with names in any case, or anything with `get`, such as `Headers`
 * @returns whether every header of `secrets` was sent once, with one of its accepted values
 * @throws `ConfigurationError` if there is no secret, or one that is empty or cannot be the value of a header
 *
 * @example
 * ```ts
 * async function onCallback(request: Request): Promise<Response> {
 *   if (!verifySecrets(request.headers, { token: currentToken })) return new Response(null, { status: 401 })
 *   const { data, error } = safeParseDelivery(await request.text())
 *   console.log(data?.notification.type ?? error)
 *   return new Response(null, { status: 204 })
 * }
 * ```
 */
export function verifySecrets(headers: HeadersLike, secrets: Secrets): boolean {
  const issues = secretsIssues(secrets, 'secrets')
  if (issues.length > 0) throw configurationError('verifySecrets cannot verify anything')(issues)
  return authenticator(secrets)(headers) === undefined
}

/** Accepted values by the name of a header. */
export type Secrets = Readonly<Record<string, string | readonly string[]>>

/** Returns the header whose secret is wrong, and why, without its value; `undefined` if all secrets are right. */
export type Authenticator = (
  headers: unknown,
) => { readonly status: 401; readonly reason: string; readonly header?: string } | undefined

/** Takes a time that depends only on the length of the presented value. @param secrets - {@link secretsIssues} found nothing */
export function authenticator(secrets: Secrets): Authenticator {
  const wanted = Object.entries(secrets).map(([header, accepted]) => ({
    header,
    accepted: [accepted].flat(),
  }))
  return (headers) => {
    let refused: string | undefined
    for (const { header, accepted } of wanted) {
      // No accepted value is empty, so that a missing header matches none.
      const presented = headerOf(headers, header) ?? ''
      let isAccepted = false
      for (const value of accepted) isAccepted = areEqual(value, presented) || isAccepted
      if (!isAccepted) refused ??= header
    }
    if (refused === undefined) return undefined
    return { status: 401, header: refused, reason: reasonFor(headers, refused) }
  }
}

function reasonFor(headers: unknown, name: string): string {
  const value = sentHeader(headers, name)
  const subject = `the header "${name}"`
  if (value === undefined) return `${subject} is missing`
  if (Array.isArray(value) && value.length > 1) return `${subject} is there twice`
  // `Headers`, Node.js and proxies join what was sent twice.
  const [first, ...more] = typeof value === 'string' ? value.split(/,\s*/) : []
  const isDoubled = more.length > 0 && more.every((part) => part === first)
  return isDoubled ? `${subject} is there twice, joined by a comma` : `${subject} is wrong`
}

/** Compares every character. Not `timingSafeEqual` of `node:crypto`, which is slow to load, and which not every runtime has. */
function areEqual(accepted: string, presented: string): boolean {
  let difference = accepted.length ^ presented.length
  for (let index = 0; index < presented.length; index += 1) {
    // A shorter accepted value repeats: reading beyond its end would take a different time.
    difference |= accepted.charCodeAt(index % accepted.length) ^ presented.charCodeAt(index)
  }
  return difference === 0
}

/** What is wrong with the secrets at the path `below`. No message holds a value. */
export function secretsIssues(secrets: unknown, ...below: string[]): Issue[] {
  const issues: Issue[] = []
  const add = (message: string | undefined, ...path: PropertyKey[]) => {
    if (message !== undefined) issues.push({ path: [...below, ...path], message })
  }
  const headers = Array.isArray(secrets) || typeof secrets !== 'object' ? [] : Object.entries(Object(secrets))
  if (headers.length === 0) add('must hold accepted values by header name')
  for (const [name, accepted] of headers) {
    add(headerNameProblem(name), name)
    if (!Array.isArray(accepted)) add(secretProblem(accepted), name)
    else if (accepted.length === 0) add('has no accepted value', name)
    else for (const [index, value] of accepted.entries()) add(secretProblem(value), name, index)
  }
  return issues
}

/** The values in the examples of the pages. */
const example = /^(?:a-long-random-value|change-?me)$/i

const advice = 'make one with `node -p "crypto.randomUUID()"`'

function secretProblem(value: unknown): string | undefined {
  if (value === undefined) return 'is missing (is its environment variable set?)'
  if (typeof value !== 'string') return 'must be text'
  if (value === '') return 'is empty (is its environment variable set?)'
  if (placeholderProblem(value) !== undefined || example.test(value))
    return `is a placeholder, which anyone can guess: ${advice}`
  return headerValueProblem(value)
}

/** Logs that the secrets can be guessed: no header has only values of 16 and more characters. */
export function logShortSecrets(secrets: Secrets, log: Log): void {
  const isShort = (accepted: string | readonly string[]) =>
    [accepted].flat().some(({ length }) => length < 16)
  if (!Object.values(secrets).every(isShort)) return
  const headers = Object.keys(secrets)
  log('warn', { event: 'secret.short', headers }, `A secret has fewer than 16 characters: ${advice}`)
}
