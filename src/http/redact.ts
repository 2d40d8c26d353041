/** Keeps secrets of a request out of what errors show of its answer. */

const blank = '[redacted]'

/** Stands in place of a whole text that shows a secret: the rest of such an echo is hardly worth the risk. */
const blankText = '[redacted: it repeats a secret of the request]'

/** Shorter values are too common in ordinary text: blanking for their sake would hide nothing. */
const minSecretLength = 4

/** Escapes within escapes, such as HTML in JSON in a URL, are looked through to this depth. */
const maxNesting = 8

/**
 * The text, or a blank if a secret is in it, in whatever spelling: as it is, or escaped as in JSON, forms, URLs or
 * HTML, also several times over.
 *
 * @param cutOff - whether the text broke off: then the beginning of a secret at its end counts, too
 */
export function redact(text: string, secrets: readonly string[], { cutOff = false } = {}): string {
  const sought = secrets.flatMap(readings).filter((secret) => secret.length >= minSecretLength)
  if (sought.length === 0) return text
  const shows = (reading: string) =>
    sought.some((secret) => reading.includes(secret) || (cutOff && endsInside(reading, secret)))
  return readings(text).some(shows) ? blankText : text
}

/** Blanks whatever looks like a token in a token endpoint's answer, whole or broken, JSON or not. */
export function redactTokens(text: string): string {
  return text
    .replace(/("(?:access|refresh|id)_token"\s*:\s*")(?:[^"\\]|\\.)*/g, `$1${blank}`)
    .replace(/((?:access|refresh|id)_token=)[^&\s]*/g, `$1${blank}`)
    .replace(/eyJ[\w-]*(?:\.[\w-]*){1,4}/g, blank)
}

/** The text as it stands, and with one layer of escapes after the other undone. One character for each byte of UTF-8. */
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

/** JSON's `\u0022`, a byte in a URL, HTML's `&#34;`, `&#x22;` and `&quot;`; a backslash vanishes, a plus is a space. */
const escapePattern =
  /((?:\\+u[0-9a-f]{4})+)|%([0-9a-f]{2})|&#(\d{1,7});|&#x([0-9a-f]{1,6});|&(amp|lt|gt|quot|apos);|\\+|\+/gi

const htmlCharacters = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" } as const

function charactersOf(escaped: string, ...groups: (string | undefined)[]): string {
  const [units, byte, decimal, hex, name] = groups
  if (units !== undefined) {
    const codes = units.match(/[0-9a-f]{4}/gi) ?? []
    return bytesOf(String.fromCharCode(...codes.map((code) => Number.parseInt(code, 16))))
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

/** Whether a text ends with the beginning of a secret, also if an escape broke off behind that beginning. */
function endsInside(text: string, secret: string): boolean {
  const brokenEscape = /(?:%[0-9a-f]?|&[#\w;]{0,9}|u[0-9a-f]{0,3})$/i.exec(text)?.[0].length ?? 0
  return [text.length, text.length - brokenEscape].some((end) => {
    for (let count = Math.min(secret.length - 1, end); count >= minSecretLength; count--) {
      if (text.endsWith(secret.slice(0, count), end)) return true
    }
    return false
  })
}
