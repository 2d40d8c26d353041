/** Removes secrets and tokens from response text in errors (SECURITY.md). */
import { decodeFormComponent } from './validation.js'

/** The most characters of a foreign text in an error. Only these are searched for secrets. */
const maxShownLength = 64 * 1024

const blankText = '[redacted: it repeats a secret of the request]'

/** The base64 and the beginnings of a shorter secret are not searched for: many texts contain them by chance. */
const minSearchedLength = 4

/**
 * The first {@link maxShownLength} characters of a text, or a blank if they contain a secret: unchanged, in base64, or escaped
 * as in JSON, forms, URLs or HTML.
 *
 * @param cutOff - whether the text broke off, perhaps inside of a secret
 */
export function redact(text: string, secrets: readonly string[], { cutOff = false } = {}): string {
  const isLong = text.length > maxShownLength
  // A copy, because a slice keeps the whole text in memory for as long as the error lives.
  const shown = isLong ? Buffer.from(text.slice(0, maxShownLength), 'utf16le').toString('utf16le') : text
  const isCutOff = isLong || cutOff
  // Without half an escape at its end.
  const texts = readings(
    isCutOff ? shown.replace(/(?:%[0-9a-f]?|\\(?:u[0-9a-f]{0,3})?|&#?\w{0,6})$/i, '') : shown,
  )
  const spellings = secrets
    .filter((secret) => secret.trim() !== '')
    .flatMap((secret) => (secret.length < minSearchedLength ? [secret] : [secret, ...inBase64(secret)]))
  const showsSecret = spellings.some((each) =>
    texts.some((read) => read.includes(each) || (isCutOff && endsInside(read, each))),
  )
  return showsSecret ? blankText : shown
}

/** The values of a gateway's headers that may be keys. Many texts contain a shorter one, such as a version, by chance. */
export function gatewayKeys(headers: Readonly<Record<string, string>> = {}): string[] {
  return Object.values(headers).filter(({ length }) => length >= minSearchedLength)
}

function endsInside(text: string, secret: string): boolean {
  for (let length = minSearchedLength; length < secret.length; length += 1) {
    if (text.endsWith(secret.slice(0, length))) return true
  }
  return false
}

/** A text in base64 and base64url, without the last character if that depends on the bytes behind the text. */
function inBase64(text: string): string[] {
  const bytes = Buffer.from(text)
  const end = bytes.length % 3 === 0 ? undefined : -1
  return (['base64', 'base64url'] as const).map((encoding) =>
    bytes.toString(encoding).replace(/=+$/, '').slice(0, end),
  )
}

/** The text as it is, and read as JSON, as a form or URL, and as HTML. */
function readings(text: string): string[] {
  const found = [text]
  if (text.includes('\\')) found.push(text.replace(/\\(?:u([0-9a-f]{4})|(.))/gis, unescaped))
  if (/[%+]/.test(text))
    found.push(text.replace(/\+|(?:%[0-9a-f]{2})+/gi, (run) => decodeFormComponent(run) ?? run))
  if (text.includes('&'))
    found.push(text.replace(/&(?:#(\d{1,5})|#x([0-9a-f]{1,4})|(amp|lt|gt|quot|apos));/gi, characterOf))
  return found
}

const namedCharacters: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }

function characterOf(_reference: string, decimal?: string, hex?: string, name = ''): string {
  const unit = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
  return namedCharacters[name.toLowerCase()] ?? String.fromCharCode(unit)
}

function unescaped(_escape: string, unit: string | undefined, letter: string): string {
  return unit === undefined ? letter : String.fromCharCode(Number.parseInt(unit, 16))
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
