/** The reason that a server gives in an error answer. */
import { redirectTarget } from '../shared/addresses.js'
import { isRedirect } from '../shared/statuses.js'
import { excerpt } from '../shared/text.js'
import { parseJson } from '../shared/validation.js'
import type { Answer } from './answer.js'

/**
 * Reads the errors of OAuth (RFC 6749 section 5.2), also in `WWW-Authenticate` (RFC 6750 section 3), problem details
 * (RFC 9457), and any other text.
 *
 * @returns the error code, the text for people, and `words`: both on one line of at most 300 characters. For a redirect,
 * `words` is its target, and for a page the text of the page
 */
export function reasonIn(answer: Answer) {
  const json: Record<string, unknown> = Object(parseJson(answer.body))
  const { error, error_description, title, detail, message } = json
  // Redacted again, because JSON may hold a secret in escaped form.
  const redacted = (value: unknown) => (typeof value === 'string' && value ? answer.redact(value) : undefined)
  const code = redacted(error) ?? redacted(Object(error).code)
  const [, challenge] = /error_description="?([^"]+)/.exec(answer.header('www-authenticate') ?? '') ?? []
  const texts = [
    error_description,
    Object(error).message,
    detail,
    error === undefined ? title : message,
    challenge,
  ]
  const description = texts.map(redacted).find((text) => text !== undefined)
  const named = [code ?? redacted(title), description].filter(
    (part, index, all) => part && all.indexOf(part) === index,
  )
  // JSON with a list or an object, and with no more text than a code or a title, is shown as it is.
  const isComplete =
    (description ?? title) !== title || !Object.values(json).some((field) => field instanceof Object)
  const body = answer.text()
  const text =
    (isComplete && named.join(': ')) || (isPage(body) ? answer.redact(textOfPage(body)) : body.trim())
  const target = isRedirect(answer.status) && redirectTarget(answer.header('location'), answer.url)
  return { code, description, words: excerpt(target ? `to ${target}` : text, 300) }
}

/** What a person would read on the page. */
function textOfPage(body: string): string {
  const beginning = body.slice(0, 8 * 1024)
  const [, title = ''] = /<title[^<>]*>([^<]*)/i.exec(beginning) ?? []
  const text = beginning
    .replace(/<(head|script|style)\b[\s\S]*?(?:<\/\1>|$)/gi, ' ')
    .replace(/<[^<>]*(?:>|$)/g, ' ')
    .replace(/\s+/g, ' ')
  return (text.includes(title.trim()) ? text : `${title}: ${text}`).trim()
}

/** Whether a body is a page of HTML or XML. */
export function isPage(body: string): boolean {
  return body.trimStart().startsWith('<')
}
