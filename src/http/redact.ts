/** Blanks secrets out of what a server sent back before it becomes part of an error. */

const blank = '[redacted]'

/** Shorter values are too common in ordinary text: blanking them would garble it and hide nothing. */
const minSecretLength = 4

/**
 * Replaces every occurrence of each secret, also where it stands escaped as in JSON, forms, URLs or HTML.
 *
 * @param cutOff - whether the text broke off: then the beginning of a secret at its end is blanked, too
 */
export function redact(text: string, secrets: readonly string[], { cutOff = false } = {}): string {
  const sought = secrets.filter((secret) => secret.length >= minSecretLength)
  if (sought.length === 0) return text
  const plain = withoutEscapes(text)
  const ranges = sought.flatMap((secret) => {
    const { bytes } = withoutEscapes(secret)
    return [
      // What stands before a secret may look like the beginning of an escape.
      ...exactOccurrences(text, secret),
      ...occurrences(plain, bytes),
      ...(cutOff ? beginningAtEnd(plain, bytes, text.length) : []),
    ]
  })
  return blankOut(text, ranges)
}

/** Part of a text: from here, up to there. */
type Range = readonly [from: number, to: number]

/** A text with every escape undone, as bytes in a string, and the range of the text that each byte came from. */
interface PlainText {
  readonly bytes: string
  readonly from: readonly number[]
  readonly to: readonly number[]
}

/** JSON's `\u0022`, a byte of a URL, HTML's `&quot;`; each may itself be escaped, which adds to its front. */
const escapes =
  /((?:\\+u[0-9a-f]{4})+)|%(?:25)*([0-9a-f]{2})|&(?:amp;)*(?:#(\d{1,7})|#x([0-9a-f]{1,6})|(amp|lt|gt|quot|apos));|\\+|([^\\%&\x80-\u{10ffff}]+)|./gisu

const htmlCharacters = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" } as const

/** Backslashes vanish and a plus is a space, in secrets as in texts: both stand for themselves or for an escape. */
function withoutEscapes(text: string): PlainText {
  const plain = { bytes: '', from: [] as number[], to: [] as number[] }
  for (const match of text.matchAll(escapes)) {
    const [whole, , , , , , ascii] = match
    const bytes = ascii === undefined ? bytesOf(match) : ascii.replaceAll('+', ' ')
    plain.bytes += bytes
    for (let i = 0; i < bytes.length; i++) {
      plain.from.push(ascii === undefined ? match.index : match.index + i)
      plain.to.push(ascii === undefined ? match.index + whole.length : match.index + i + 1)
    }
  }
  return plain
}

function bytesOf([whole, units, byte, decimal, hex, name]: RegExpMatchArray): string {
  if (byte !== undefined) return String.fromCharCode(Number.parseInt(byte, 16)).replace('+', ' ')
  return Buffer.from(charactersOf()).toString('latin1').replace('+', ' ')

  function charactersOf(): string {
    if (units !== undefined) {
      const codes = units.match(/[0-9a-f]{4}/gi) ?? []
      return String.fromCharCode(...codes.map((code) => Number.parseInt(code, 16)))
    }
    if (name !== undefined) return htmlCharacters[name.toLowerCase() as keyof typeof htmlCharacters]
    const code = decimal === undefined ? Number.parseInt(hex ?? '', 16) : Number(decimal)
    if (Number.isNaN(code)) return whole.startsWith('\\') ? '' : whole
    return code <= 0x10ffff ? String.fromCodePoint(code) : ''
  }
}

function exactOccurrences(text: string, secret: string): Range[] {
  const ranges: Range[] = []
  for (let at = text.indexOf(secret); at !== -1; at = text.indexOf(secret, at + secret.length)) {
    ranges.push([at, at + secret.length])
  }
  return ranges
}

function occurrences(text: PlainText, secret: string): Range[] {
  const ranges: Range[] = []
  for (let at = text.bytes.indexOf(secret); at !== -1; at = text.bytes.indexOf(secret, at + secret.length)) {
    ranges.push([text.from[at] ?? 0, text.to[at + secret.length - 1] ?? 0])
  }
  return ranges
}

/** The longest beginning of a secret that the text ends with, even if an escape broke off after it. */
function beginningAtEnd({ bytes, from }: PlainText, secret: string, length: number): Range[] {
  const brokenEscape = /(?:%[0-9a-f]?|&[#\w;]{0,9}|u[0-9a-f]{0,3})$/i.exec(bytes)?.[0].length ?? 0
  for (const end of [bytes.length, bytes.length - brokenEscape]) {
    for (let count = Math.min(secret.length - 1, end); count >= minSecretLength; count--) {
      if (bytes.endsWith(secret.slice(0, count), end)) return [[from[end - count] ?? 0, length]]
    }
  }
  return []
}

/** Ranges that overlap, because secrets do, become one blank. */
function blankOut(text: string, ranges: readonly Range[]): string {
  let redacted = ''
  let done = 0
  for (const [from, to] of ranges.toSorted(([a], [b]) => a - b)) {
    if (from >= done) redacted += text.slice(done, from) + blank
    done = Math.max(done, to)
  }
  return redacted + text.slice(done)
}

/** Blanks whatever looks like a token in a token endpoint's answer, whole or broken, JSON or not. */
export function redactTokens(text: string): string {
  return text
    .replace(/("(?:access|refresh|id)_token"\s*:\s*")(?:[^"\\]|\\.)*/g, `$1${blank}`)
    .replace(/((?:access|refresh|id)_token=)[^&\s]*/g, `$1${blank}`)
    .replace(/eyJ[\w-]*(?:\.[\w-]*){1,4}/g, blank)
}
