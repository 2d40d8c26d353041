/** JSON texts from outside. */

/** Deeper JSON takes far more than linear time to parse, cannot be written as JSON again, and has no use. */
const maxDepth = 1_000

/** No JSON text of this length is deeper: each level has two characters. Most texts are shorter, and are not checked. */
const shortLength = 2 * maxDepth

/** The value of a JSON text, or `undefined`, which no JSON text has. */
export function parseJson(text: string): unknown {
  try {
    return parseJsonText(text)
  } catch {
    return undefined
  }
}

/** @throws `SyntaxError` for a text that is not JSON, or is nested more than {@link maxDepth} deep */
export function parseJsonText(text: string): unknown {
  refuseDeep(text)
  return JSON.parse(text)
}

/** @throws `SyntaxError` for a JSON text that {@link parseJsonText} would refuse because of its depth */
export function refuseDeep(text: string): void {
  if (text.length > shortLength && isDeep(text)) throw new SyntaxError(`nested more than ${maxDepth} deep`)
}

function isDeep(text: string): boolean {
  let depth = 0
  let isInString = false
  for (let index = 0; index < text.length; index++) {
    const character = text[index]
    if (character === '"') isInString = !isInString
    else if (isInString) index += character === '\\' ? 1 : 0
    else if (character === '[' || character === '{') depth++
    else if (character === ']' || character === '}') depth--
    if (depth > maxDepth) return true
  }
  return false
}
