/** The reason that a server gives in an error answer. */
import { excerpt } from '../shared/text.js'
import { parseJson } from '../shared/validation.js'
import type { Answer } from './exchange.js'

export interface Reason {
  /** An error code, such as that of OAuth (RFC 6749 section 5.2). */
  readonly code: string | undefined
  /** Text for people. */
  readonly description: string | undefined
  /** All of that on one line, for a message: at most 300 characters, empty for a page of HTML. */
  readonly words: string
}

/**
 * Reads the errors of OAuth, problem details (RFC 9457), an `error` that is an object, and any other text. Shows no secret:
 * what is parsed is redacted again, because JSON may hold a secret in escaped form.
 */
export function reasonIn(answer: Answer): Reason {
  const { error, error_description, title, detail, message } = Object(parseJson(answer.body))
  const shown = (value: unknown) => (typeof value === 'string' && value ? answer.redact(value) : undefined)
  const code = shown(error) ?? shown(Object(error).code)
  const texts = [error_description, Object(error).message, detail, error === undefined ? title : message]
  const description = texts.map(shown).find((text) => text !== undefined)
  const parts = [code ?? shown(title), description].filter(
    (part, index, all) => part && all.indexOf(part) === index,
  )
  const body = answer.text()
  const text = parts.join(': ') || (isPage(body) ? '' : body.trim())
  return { code, description, words: excerpt(text, 300) }
}

/** Whether a body is a page of HTML or XML. */
export function isPage(body: string): boolean {
  return body.trimStart().startsWith('<')
}
