/** Removes secrets and tokens from response text in errors (SECURITY.md). */

/** The most characters of a foreign text in an error. Only these are searched for secrets. */
const maxShownLength = 64 * 1024

/** Replaces a text that contains a secret. */
const blankText = '[redacted: it repeats a secret of the request]'

/** This many characters of a secret in a row count as the secret. */
const fragmentLength = 8

/** At the end of a text that was cut off, so many first characters of a secret count as the secret. */
const beginningLengths = [4, 5, 6, 7]

/** A shorter secret is not searched for in base64 or hex: many texts contain it by chance. */
const minEncodedLength = 4

/** Nested escapes, such as HTML in JSON in a URL, are undone to this depth. */
const maxNesting = 8

/**
 * The first {@link maxShownLength} characters of a text, or a blank if they contain a secret: unchanged, in part, in
 * base64 or hex, or escaped once or several times as in JSON, forms, URLs or HTML. Takes linear time.
 *
 * @param cutOff - whether the text broke off
 */
export function redact(text: string, secrets: readonly string[], { cutOff = false } = {}): string {
  // A copy, because a slice keeps the whole text in memory for as long as the error lives.
  const shown = Buffer.from(text.slice(0, maxShownLength), 'utf16le').toString('utf16le')
  const sought = [...new Set(secrets.flatMap(spellings))]
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
  const brokenEscape = /(?:%[0-9a-f]?|&[#\w;]{0,9}|u[0-9a-f]{0,3})$/i.exec(text.slice(-16))?.[0].length ?? 0
  const ends = [text, text.slice(0, text.length - brokenEscape)]
  const beginnings = sought.flatMap((each) => beginningLengths.map((length) => each.slice(0, length)))
  return beginnings.some((beginning) => ends.some((end) => end.endsWith(beginning)))
}

/** The spellings of a secret that {@link readings} does not undo. */
function spellings(secret: string): string[] {
  const asGiven = readings(secret).filter((reading) => reading.trim() !== '')
  return secret.length < minEncodedLength ? asGiven : [...asGiven, ...encodingsOf(secret).flatMap(readings)]
}

/** A text in base64, base64url and hex; in base64 also as a part of a longer text. */
export function encodingsOf(text: string): string[] {
  const bytes = Buffer.from(text)
  const hex = bytes.toString('hex')
  const base64url = [0, 1, 2].map((bytesBefore) => base64urlWithin(bytes, bytesBefore))
  const base64 = base64url.map((encoded) => encoded.replaceAll('-', '+').replaceAll('_', '/'))
  return [...base64, ...base64url, hex, hex.toUpperCase()]
}

/** The base64url characters that depend only on these bytes, after `bytesBefore` other bytes. */
function base64urlWithin(bytes: Uint8Array, bytesBefore: number): string {
  const text = Buffer.concat([Buffer.alloc(bytesBefore), bytes]).toString('base64url')
  const isLastShared = (bytesBefore + bytes.length) % 3 !== 0
  return text.slice(Math.ceil((bytesBefore * 8) / 6), isLastShared ? -1 : undefined)
}

/** The text, and the text after undoing each further layer of escapes. One character for each byte of UTF-8. */
function readings(text: string): string[] {
  const found = [bytesOf(text)]
  for (let depth = 0; depth < maxNesting; depth++) {
    const last = found[depth] ?? ''
    const unescaped = last.replace(escapePattern, charactersOf)
    if (unescaped === last) break
    found.push(unescaped)
  }
  return found
}

/** JSON's `\u0022`, a byte in a URL, HTML's `&#34;`, `&#x22;` and `&quot;`; a backslash is removed, a plus is a space. */
const escapePattern =
  /((?:\\+u[0-9a-f]{4})+)|%([0-9a-f]{2})|&#(\d{1,7});|&#x([0-9a-f]{1,6});|&(amp|lt|gt|quot|apos);|\\+|\+/gi

const htmlCharacters = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" } as const

function charactersOf(escaped: string, ...groups: (string | undefined)[]): string {
  const [units, byte, decimal, hex, name] = groups
  if (units !== undefined) {
    const codes = units.matchAll(/[0-9a-f]{4}/gi)
    // Joined first, because two halves of a surrogate pair are one character.
    return bytesOf(Array.from(codes, ([code]) => String.fromCharCode(Number.parseInt(code, 16))).join(''))
  }
  if (byte !== undefined) return String.fromCharCode(Number.parseInt(byte, 16))
  if (name !== undefined) return htmlCharacters[name.toLowerCase() as keyof typeof htmlCharacters]
  if (decimal === undefined && hex === undefined) return escaped === '+' ? ' ' : ''
  const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
  return code <= 0x10ffff ? bytesOf(String.fromCodePoint(code)) : ''
}

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
