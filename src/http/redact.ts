/** Blanks secrets out of what a server sent back before it becomes part of an error. */

const blank = '[redacted]'

/** Shorter values are too common in ordinary text: blanking them would garble it and hide nothing. */
const minSecretLength = 4

/** Replaces every occurrence of each secret, also where it stands JSON-escaped, percent-encoded or form-encoded. */
export function redact(text: string, secrets: readonly string[]): string {
  const spellings = secrets
    .filter((secret) => secret.length >= minSecretLength)
    .flatMap((secret) => [
      secret,
      JSON.stringify(secret).slice(1, -1),
      encodeURIComponent(secret),
      new URLSearchParams([['', secret]]).toString().slice(1),
    ])
    // Longest first: a secret may be part of another.
    .sort((a, b) => b.length - a.length)
  return spellings.reduce((redacted, spelling) => redacted.replaceAll(spelling, blank), text)
}

/** Blanks whatever looks like a token in a token endpoint's answer, whole or broken, JSON or not. */
export function redactTokens(text: string): string {
  return text
    .replace(/("(?:access|refresh|id)_token"\s*:\s*")(?:[^"\\]|\\.)*/g, `$1${blank}`)
    .replace(/((?:access|refresh|id)_token=)[^&\s]*/g, `$1${blank}`)
    .replace(/eyJ[\w-]*(?:\.[\w-]*){1,4}/g, blank)
}
