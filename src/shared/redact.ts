/** Removes secrets and tokens from response text in errors (SECURITY.md). */

/** The most characters of a foreign text in an error. Only these are searched for secrets. */
const maxShownLength = 64 * 1024

/** Replaces a text that contains a secret. */
const blankText = '[redacted: it repeats a secret of the request]'

/** This many characters of a secret in a row count as the secret. */
const fragmentLength = 8

/** At the end of a text that was cut off, so many first characters of a secret count as the secret. */
const beginningLengths = [4, 5, 6, 7]

/** A shorter secret is not searched for in base64: many texts contain it by chance. */
const minEncodedLength = 4

/**
 * The first {@link maxShownLength} characters of a text, or a blank if they contain a secret: unchanged, in part, in
 * base64, or escaped as in JSON, forms or URLs. Takes linear time.
 *
 * @param cutOff - whether the text broke off
 */
export function redact(text: string, secrets: readonly string[], { cutOff = false } = {}): string {
  // A copy, because a slice keeps the whole text in memory for as long as the error lives.
  const shown = Buffer.from(text.slice(0, maxShownLength), 'utf16le').toString('utf16le')
  const sought = [...new Set(secrets.filter((secret) => secret.trim() !== '').flatMap(spellings))]
  const texts = readings(shown)
  if (showsAny(texts, sought)) return blankText
  const isCutOff = cutOff || shown.length < text.length
  return isCutOff && texts.some((each) => endsInside(each, sought)) ? blankText : shown
}

/** The values of a gateway's headers that may be keys. Many texts contain a shorter one, such as a version, by chance. */
export function gatewayKeys(headers: Readonly<Record<string, string>> = {}): string[] {
  return Object.values(headers).filter(({ length }) => length >= minEncodedLength)
}

/** Whether a text holds a short secret, or {@link fragmentLength} characters in a row of a longer one. */
function showsAny(texts: readonly string[], sought: readonly string[]): boolean {
  const short = sought.filter((each) => each.length < fragmentLength)
  if (texts.some((text) => short.some((each) => text.includes(each)))) return true
  const fragments = new Set<string>()
  for (const each of sought) for (const fragment of fragmentsOf(each)) fragments.add(fragment)
  for (const text of texts) for (const fragment of fragmentsOf(text)) if (fragments.has(fragment)) return true
  return false
}

function* fragmentsOf(text: string): Generator<string> {
  for (let end = fragmentLength; end <= text.length; end++) yield text.slice(end - fragmentLength, end)
}

/** Whether a text ends with the beginning of a secret, also if half an escape follows. */
function endsInside(text: string, sought: readonly string[]): boolean {
  const ends = [text, text.replace(/(?:%[0-9a-f]?|\\|u[0-9a-f]{0,3})$/i, '')]
  const beginnings = sought.flatMap((each) => beginningLengths.map((length) => each.slice(0, length)))
  return beginnings.some((beginning) => ends.some((end) => end.endsWith(beginning)))
}

/** The secret as {@link readings} shows it, and in base64. */
function spellings(secret: string): string[] {
  return secret.length < minEncodedLength ? [bytesOf(secret)] : [bytesOf(secret), ...inBase64(secret)]
}

/** A text in base64 and base64url, without what other bytes behind it change. */
export function inBase64(text: string): string[] {
  const bytes = Buffer.from(text)
  const end = bytes.length % 3 === 0 ? undefined : -1
  return (['base64', 'base64url'] as const).map((encoding) =>
    bytes.toString(encoding).replace(/=+$/, '').slice(0, end),
  )
}

/** The text as it is, and read as JSON and as a form or URL. One character for each byte of UTF-8. */
function readings(text: string): string[] {
  const bytes = bytesOf(text)
  const json = bytes.replace(/((?:\\u[0-9a-f]{4})+)|\\(.)/gis, (_escape, units?: string, letter = '') =>
    // Joined first, because two halves of a surrogate pair are one character.
    units === undefined ? (jsonEscapes[letter] ?? letter) : bytesOf(JSON.parse(`"${units}"`)),
  )
  const url = bytes.replace(/%([0-9a-f]{2})|\+/gi, (_escape, byte?: string) =>
    byte === undefined ? ' ' : String.fromCharCode(Number.parseInt(byte, 16)),
  )
  return [bytes, json, url]
}

const jsonEscapes: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }

function bytesOf(text: string): string {
  return Buffer.from(text).toString('latin1')
}

const blankToken = '[redacted]'

/** Blanks possible tokens in a token endpoint's answer, whole or broken, JSON or not. Takes linear time. */
export function redactTokens(text: string): string {
  return text
    .slice(0, maxShownLength)
    .replace(/("(?:access|refresh|id)_token"\s*:\s*")[^"\\]*(?:\\.[^"\\]*)*/gs, `$1${blankToken}`)
    .replace(/((?:access|refresh|id)_token=)[^&\s]*/g, `$1${blankToken}`)
    .replace(/[\w.-]+/g, withoutJwt)
}

/** Blanks a JSON Web Token, which begins with `eyJ` and has dots, in a text of token characters. */
function withoutJwt(text: string): string {
  const start = text.indexOf('eyJ')
  return start !== -1 && text.includes('.', start) ? text.slice(0, start) + blankToken : text
}
