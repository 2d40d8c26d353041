/** Reads an `application/x-www-form-urlencoded` body strictly: what is wrong in it is told, not guessed at. */
import { Refusal } from './refusal.js'

/** Whether a Content-Type is that of a form; parameters such as a charset do not matter. */
export function isFormContentType(contentType: string | null): boolean {
  return contentType?.split(';')[0]?.trim().toLowerCase() === 'application/x-www-form-urlencoded'
}

/**
 * The fields of a form.
 *
 * @throws `Refusal` (400) for bad percent-encoding, a missing name, or a name that is there twice
 */
export function parseForm(body: string): Map<string, string> {
  const fields = new Map<string, string>()
  for (const pair of body.split('&')) {
    if (pair === '') continue
    const equals = pair.indexOf('=')
    const name = decodeFormComponent(equals === -1 ? pair : pair.slice(0, equals))
    const value = decodeFormComponent(equals === -1 ? '' : pair.slice(equals + 1))
    if (name === undefined || value === undefined) throw badForm('it is not percent-encoded UTF-8')
    if (name === '') throw badForm('a field has no name')
    if (fields.has(name)) throw badForm(`the field ${name} is given more than once`)
    fields.set(name, value)
  }
  return fields
}

/** Undoes form encoding, in which a space is a plus sign; nothing if the text is not so encoded. */
export function decodeFormComponent(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '))
  } catch {
    return undefined
  }
}

function badForm(reason: string): Refusal {
  return new Refusal(400, 'invalid_request', `The form cannot be read: ${reason}`)
}
