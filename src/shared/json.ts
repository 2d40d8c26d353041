/** JSON texts from outside. */

/** The value of a JSON text, or `undefined`, which no JSON text has. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
