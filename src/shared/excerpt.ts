/** Sentences about values from outside: bounded in length, on one line, and never throwing. */

const ellipsis = '…'

/** The text on one line, cut to `maxLength` characters. */
export function excerpt(text: string, maxLength: number): string {
  // Cut before replacing: the text may be as long as a body.
  const line = text.slice(0, maxLength + 1).replace(/[\p{Cc}\s]+/gu, ' ')
  return text.length > maxLength ? line.slice(0, maxLength) + ellipsis : line
}

/** The message of something thrown. Anything can be thrown, also what cannot be turned into a string. */
export function messageOf(thrown: unknown): string {
  try {
    return excerpt(String(Object(thrown).message ?? thrown), 200)
  } catch {
    return 'no message'
  }
}
