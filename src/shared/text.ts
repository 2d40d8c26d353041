/** Texts of others in messages: excerpts, and what was thrown. */

const ellipsis = '…'

/** The text on one line, cut to `maxLength` characters, without characters that control a terminal. */
export function excerpt(text: string, maxLength: number): string {
  // Cut before replacing: the text may be as long as a body.
  const line = text.slice(0, maxLength + 1).replace(/[\p{Cc}\p{Bidi_Control}\s]+/gu, ' ')
  return text.length > maxLength ? line.slice(0, maxLength) + ellipsis : line
}

/** The message of a thrown value, on one line. */
export function messageOf(thrown: unknown): string {
  return excerpt(wholeMessageOf(thrown, 201), 200)
}

/** How far behind the cut a text is searched: a secret that begins before the cut may end there. */
const searchedBehindCut = 1_000

/**
 * The beginning of a text. Hides passwords in addresses, also one that holds an unencoded slash, and what looks like a secret:
 * the value of a name such as `token` in a query, a connection string, JSON, a header or a command line, an Authorization
 * header, a JSON Web Token, and what Redis repeats of a command that it does not know, such as `HELLO 3 AUTH`.
 *
 * @param maxLength - where the text is cut: before it is searched, because it may be as long as a body
 */
export function withoutPasswords(text: string, maxLength: number): string {
  return text
    .slice(0, maxLength + searchedBehindCut)
    .replace(/\b(?!https?:)([a-z][a-z\d+.-]{0,20}:\/\/[^\s/:@]{0,200}:)\S{0,500}@/gi, '$1…@')
    .replace(/\b([a-z][a-z\d+.-]{0,20}:\/\/)[^\s/?#]{0,500}@/gi, '$1…@')
    .replace(/\b(?:((?:Bearer|Basic)\s+)(?=\S{0,99}\d)[\w.~+/=-]{8,}|eyJ[\w-]+\.[\w.-]+)/gi, '$1…')
    .replace(
      /((?:pass|pwd|secret|token|key|sig|auth)[\w.-]{0,20}(?:=["']?|["']?\s{0,9}:\s{0,9}["']))[^\s&#"',;]{1,2000}/gi,
      '$1…',
    )
    .replace(
      /((?:\bx-|--)[\w-]{0,30}(?:pass|secret|token|key|auth)[\w-]{0,20}[:\s]\s{0,9})\S{1,2000}/gi,
      '$1…',
    )
    .replace(/(with args beginning with: ).{1,2000}/g, '$1…')
    .slice(0, maxLength)
}

/** The message of a thrown value, which may be anything, even one that cannot become a string; without passwords. */
export function wholeMessageOf(thrown: unknown, maxLength = 10_000): string {
  try {
    const { cause, message } = Object(thrown)
    if (message === '' && cause !== undefined) return wholeMessageOf(cause, maxLength)
    return withoutPasswords(String(message ?? thrown), maxLength)
  } catch {
    return 'no message'
  }
}

/** The message of what a function throws; `undefined` if it throws nothing. */
export function thrownBy(run: () => unknown): string | undefined {
  try {
    run()
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}
